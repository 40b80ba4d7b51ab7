//! Metrics of one replica, for dashboards and alarms: `GET /metrics`, in Prometheus' text format.
//!
//! Counters belong to a replica and not to the process, so one process can have several replicas. Gauges (live jobs,
//! peers) are read on each request.

mod lab;
mod looks;
mod process;
mod states;
mod text;
mod times;

use fairlead_job::Cause;
pub use lab::{LabGauges, QueueReading, Readings};
pub use looks::Looks;
use parking_lot::Mutex;
pub use states::States;
pub use text::{CLASSIC, OPEN_METRICS};
use times::Label;
pub use times::{AllTimes, StoreTimes};

use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// Acknowledged.
    Committed,
    /// Another claim was faster, or the store answered our own write so: another write settled it.
    Conflict,
    /// The store did not answer: another write settled it.
    Unknown,
    /// The store did not take it.
    Refused,
}

impl Claimed {
    const fn word(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Conflict => "conflict",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
        }
    }
}

/// Result of a lost lease or an undelivered grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// The grant was never delivered.
    Undelivered,
    /// The lease was lost.
    Lost,
}

impl Returned {
    const fn word(self) -> &'static str {
        match self {
            Self::Undelivered => "undelivered",
            Self::Lost => "lost",
        }
    }
}

/// An invariant that one written state can break, by its number in docs/invariants.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invariant {
    /// At most one live lease a job.
    I2,
    /// A job runs only where its requirements hold.
    I3,
    /// An attempt ends exactly once.
    I8,
    /// Stages only move forward within an attempt.
    I9,
}

impl Invariant {
    /// All invariants, in order.
    pub const ALL: [Self; 4] = [Self::I2, Self::I3, Self::I8, Self::I9];

    /// Returns its number as a label.
    pub const fn word(self) -> &'static str {
        match self {
            Self::I2 => "I2",
            Self::I3 => "I3",
            Self::I8 => "I8",
            Self::I9 => "I9",
        }
    }
}

/// Bounds of the buckets for the lateness of timers, s.
const LATENESS_S: [f64; 12] = [
    0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 60.0,
];

/// Bounds of the buckets for the time of chores, s.
const CHORE_TIME_S: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Counts by a label.
pub type Counters = Family<Label, Counter>;

/// Metrics of one replica.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    process: Registry,
    pub times: AllTimes,
    claims: Counters,
    returned: Counters,
    attempts: Counters,
    pub submitted: Counter,
    pub granted: Counter,
    pub turns_lost: Counter,
    pub shard_looks: Counter,
    pub reused: Counter,
    pub reuse_mismatches: Counter,
    pub machines_asked: Counter,
    pub machines_retired: Counter,
    pub hints_sent: Counter,
    pub collections: Counter,
    pub content_put: Counter,
    pub content_read: Counter,
    pub hints_lost: Counter,
    chore_time: Family<Label, Histogram, fn() -> Histogram>,
    chores_failed: Counters,
    pub looks: looks::AllLooks,
    violations: Counters,
    /// Versions of small documents that cannot be read, by kind.
    pub unreadable_documents: Counters,
    timer_lateness: Histogram,
    steps: Counter,
    last_step_s: Gauge,
    pub states: States,
    lab: LabGauges,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Self {
            registry: Mutex::default(),
            process: Registry::default(),
            times: AllTimes::new(),
            claims: Family::default(),
            returned: Family::default(),
            attempts: Family::default(),
            submitted: Counter::default(),
            granted: Counter::default(),
            turns_lost: Counter::default(),
            shard_looks: Counter::default(),
            reused: Counter::default(),
            reuse_mismatches: Counter::default(),
            machines_asked: Counter::default(),
            machines_retired: Counter::default(),
            hints_sent: Counter::default(),
            collections: Counter::default(),
            content_put: Counter::default(),
            content_read: Counter::default(),
            hints_lost: Counter::default(),
            chore_time: Family::new_with_constructor(|| Histogram::new(CHORE_TIME_S)),
            chores_failed: Family::default(),
            looks: looks::AllLooks::default(),
            violations: Family::default(),
            unreadable_documents: Family::default(),
            timer_lateness: Histogram::new(LATENESS_S),
            steps: Counter::default(),
            last_step_s: Gauge::default(),
            states: States::default(),
            lab: LabGauges::default(),
        };
        let mut registry = Registry::with_prefix("fairlead");
        all.register(&mut registry);
        let build: Family<Label, Gauge> = Family::default();
        build
            .get_or_create(&[("version", env!("CARGO_PKG_VERSION"))])
            .set(1);
        registry.register("build_info", "1, with the version of this replica", build);
        for invariant in Invariant::ALL {
            drop(
                all.violations
                    .get_or_create(&[("invariant", invariant.word())]),
            );
        }
        all.registry = Mutex::new(registry);
        all.process.register_collector(Box::new(process::Process));
        all
    }
}

impl Metrics {
    /// Notes a run of a timer that was late by this time.
    pub fn timer_ran(&self, late_ms: u64) {
        let late = std::time::Duration::from_millis(late_ms);
        self.timer_lateness.observe(late.as_secs_f64());
    }

    /// Notes the end of a chore of a round, after `took_ms` milliseconds.
    pub fn chore_ended(&self, chore: &'static str, took_ms: u64, is_done: bool) {
        let took = std::time::Duration::from_millis(took_ms);
        let time = self.chore_time.get_or_create(&[("chore", chore)]);
        time.observe(took.as_secs_f64());
        drop(time);
        if !is_done {
            self.chores_failed.get_or_create(&[("chore", chore)]).inc();
        }
    }

    /// Notes a step of the wall clock.
    pub fn clock_stepped(&self, by_ms: i64) {
        self.steps.inc();
        self.last_step_s.set(by_ms / 1000);
    }

    /// Returns all metrics as text, in one of the two formats. `lab`: readings for the gauges of the lab; `None`:
    /// they stay.
    pub fn text(&self, lab: Option<(&Readings, bool)>, is_open: bool) -> String {
        let mut open = String::new();
        // Locked while the gauges are set: who asks at the same time gets other readings.
        let registry = self.registry.lock();
        if let Some((readings, is_named)) = lab {
            self.lab.set(readings, is_named);
        }
        // Writing to a text cannot fail.
        let _ = encode_registry(&mut open, &registry);
        let _ = encode_registry(&mut open, &self.process);
        drop(registry);
        if !is_open {
            return text::classic(&open);
        }
        let _ = encode_eof(&mut open);
        open
    }

    fn register(&self, to: &mut Registry) {
        self.times.register(to);
        self.lab.register(to);
        let families = [
            ("claims", "Claims by outcome", &self.claims),
            ("jobs_returned", "Requeued jobs by reason", &self.returned),
            (
                "attempts_ended",
                "Ended attempts by cause of failure; none: success",
                &self.attempts,
            ),
            (
                "chores_failed",
                "Failed chores by name; each runs again a second later",
                &self.chores_failed,
            ),
            (
                "invariant_violations",
                "Written states that break an invariant of docs/invariants.md",
                &self.violations,
            ),
            (
                "unreadable_documents",
                "Small documents found malformed or of a newer format, by kind; each version counts once",
                &self.unreadable_documents,
            ),
        ];
        for (name, help, family) in families {
            to.register(name, help, family.clone());
        }
        let help = "Delay of timer runs after their due time, in seconds";
        to.register("timer_lateness_seconds", help, self.timer_lateness.clone());
        let help = "Duration of each chore of a round, in seconds";
        to.register("chore_seconds", help, self.chore_time.clone());
        self.looks.register(to);
        self.register_counters(to);
        let help = "Jumps of the wall clock by more than 5 s";
        to.register("clock_steps", help, self.steps.clone());
        let help = "Last jump of the wall clock, in seconds; negative: backwards";
        to.register("clock_step_seconds", help, self.last_step_s.clone());
        self.states.register(to);
    }

    fn register_counters(&self, to: &mut Registry) {
        let counters = [
            ("jobs_submitted", "Jobs acknowledged", &self.submitted),
            ("jobs_granted", "Jobs assigned to hosts", &self.granted),
            (
                "turns_lost",
                "Requests of hosts that a later request at another replica superseded",
                &self.turns_lost,
            ),
            (
                "shard_looks",
                "Reads of all shards of a job, to see what is to be done about it",
                &self.shard_looks,
            ),
            (
                "content_collections",
                "Collections of inputs and outputs that ended well here",
                &self.collections,
            ),
            (
                "content_put_bytes",
                "Bytes of chunks that were put through this replica",
                &self.content_put,
            ),
            (
                "content_read_bytes",
                "Bytes of chunks that were read through this replica",
                &self.content_read,
            ),
            (
                "jobs_reused",
                "Jobs that took the result of another one",
                &self.reused,
            ),
            (
                "reuse_mismatches",
                "Audits whose result differed from the one that jobs took",
                &self.reuse_mismatches,
            ),
            (
                "machines_asked",
                "Machines that this replica asked providers for",
                &self.machines_asked,
            ),
            (
                "machines_retired",
                "Machines of pools that this replica retired",
                &self.machines_retired,
            ),
            ("hints_sent", "Messages to other replicas", &self.hints_sent),
            ("hints_lost", "Failed messages", &self.hints_lost),
        ];
        for (name, help, counter) in counters {
            to.register(name, help, counter.clone());
        }
    }

    pub fn claim(&self, outcome: Claimed) {
        self.claims
            .get_or_create(&[("outcome", outcome.word())])
            .inc();
    }

    /// Returns the invariants that written states broke, with counts.
    pub fn violations(&self) -> Vec<(&'static str, u64)> {
        let counts = Invariant::ALL.into_iter().map(|invariant| {
            let word = invariant.word();
            let count = self.violations.get_or_create(&[("invariant", word)]);
            (word, count.get())
        });
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Notes a written state that breaks an invariant.
    pub fn violated(&self, invariant: Invariant) {
        self.violations
            .get_or_create(&[("invariant", invariant.word())])
            .inc();
    }

    /// Notes the end of an attempt; `cause`: reason of a bad end.
    pub fn attempt_ended(&self, cause: Option<Cause>) {
        let word = cause.map_or("none", Cause::as_str);
        self.attempts.get_or_create(&[("failure", word)]).inc();
    }

    pub fn returned(&self, why: Returned) {
        self.returned.get_or_create(&[("why", why.word())]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_under_their_names() {
        let metrics = Metrics::default();
        metrics.claim(Claimed::Committed);
        metrics.claim(Claimed::Conflict);
        metrics.claim(Claimed::Conflict);
        metrics.returned(Returned::Lost);
        metrics.attempt_ended(Some(Cause::Infra));
        metrics.submitted.inc_by(5);
        metrics.violated(Invariant::I8);
        let text = metrics.text(None, true);
        for line in [
            "fairlead_claims_total{outcome=\"conflict\"} 2",
            "fairlead_jobs_returned_total{why=\"lost\"} 1",
            "fairlead_attempts_ended_total{failure=\"infra\"} 1",
            "fairlead_jobs_submitted_total 5",
            "fairlead_jobs_held 0",
            "fairlead_invariant_violations_total{invariant=\"I8\"} 1",
            "fairlead_invariant_violations_total{invariant=\"I9\"} 0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
