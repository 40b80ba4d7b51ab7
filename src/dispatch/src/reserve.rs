//! Host reservations of the engine: a job that is passed over again and again gets a host.
//!
//! A job reserves a host if it has waited long, is next, and could run there except for the jobs on it. Until it
//! starts, the host admits only higher classes, jobs that should end before it could start, and jobs that fit beside it
//! then: of equal ones the shorter first. There is at most one reservation per class and one per host.

use crate::event::Kind;
use crate::hosts::{Host, Taken};
use crate::ids::{HostId, JobKey};
use crate::index::Job;
use crate::ledger::Ledger;
use crate::run_times::JobKind;
use crate::runs::Runs;
use crate::shape::{Shape, View, first_obstacle};
use std::collections::BTreeMap;

/// Job and the host that is reserved for it.
#[derive(Debug, Clone)]
pub(crate) struct Reservation {
    pub job: JobKey,
    pub host: HostId,
    /// Latest start of the job, ms, unless a job enters that runs too long. It lies twice as far ahead as the start
    /// that was expected when the reservation was made.
    pub promised: u64,
}

/// All reservations, by class.
pub(crate) type Reservations = BTreeMap<u8, Reservation>;

/// Condition of entry to a reserved host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub class: u8,
    pub job: JobKey,
    pub start: Start,
}

/// Time at which a reserved job could start, and the resources that are free beside it then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// Time by which entering jobs must be over, ms.
    pub at: u64,
    pub spare: Taken,
}

impl Limit {
    /// Returns true if this waiting job of this class may enter now.
    pub(crate) fn admits(
        &self,
        ledger: &Ledger,
        key: JobKey,
        (job, shape): (&Job, &Shape),
        class: u8,
        group: &str,
        now: u64,
    ) -> bool {
        let expected = || expected_ms(ledger, job, group).unwrap_or(u64::MAX);
        key == self.job
            || class > self.class
            || self.start.leaves(shape)
            || now.saturating_add(expected()) <= self.start.at
    }
}

impl Start {
    /// Returns the start of a job of this shape on a host as it is at `at`.
    fn of(shape: &Shape, at: u64, view: &View) -> Self {
        let left = |free: u32, needs: u32| u64::from(free.saturating_sub(needs));
        let spare = match shape.kind {
            Kind::Hw => Taken::default(),
            Kind::Vm | Kind::Dc => Taken {
                memory_mb: left(view.free_mb, shape.memory_mb),
                cpus: left(view.free_cpus, shape.cpus),
            },
        };
        Self { at, spare }
    }

    /// Returns true if a job of this shape takes nothing that the reserved job needs, however long it runs.
    fn leaves(&self, shape: &Shape) -> bool {
        shape.kind != Kind::Hw
            && u64::from(shape.memory_mb) <= self.spare.memory_mb
            && u64::from(shape.cpus) <= self.spare.cpus
    }
}

/// Returns the expected run time of a waiting job on hosts of this group, ms; `None`: unknown.
pub(crate) fn expected_ms(ledger: &Ledger, job: &Job, group: &str) -> Option<u64> {
    let kind = JobKind {
        suite: &job.suite,
        class: job.class,
        group,
    };
    let limit = (job.timeout_ms > 0).then_some(job.timeout_ms);
    ledger.run_times.expect_ms(kind).or(limit)
}

/// Returns the longest run time of a job with this time limit; 0 is no limit.
fn longest(timeout_ms: u64) -> u64 {
    if timeout_ms == 0 {
        u64::MAX
    } else {
        timeout_ms
    }
}

/// Returns for each job of a host its expected end, ms, the resources that it gives back, and its start.
fn ends_on(host: &Host, runs: &Runs, ledger: &Ledger, now: u64) -> Vec<(u64, Taken, Option<u64>)> {
    let known = host
        .runs
        .iter()
        .filter_map(|job| Some((job, runs.get(job)?)));
    let ends = known.map(|(job, run)| {
        let begun = ledger.charges.get(job).and_then(|charge| charge.since);
        let since = begun.unwrap_or(now);
        let kind = JobKind {
            suite: &run.suite,
            class: run.class,
            group: &host.group,
        };
        let latest = since.saturating_add(longest(run.timeout_ms));
        let ran = now.saturating_sub(since);
        let times = ledger.run_times.of(kind);
        // Nobody knows of one that ran longer than all before: it may run as long again.
        let left = times.map(|times| times.left_ms(ran).unwrap_or(ran));
        let end = left.map_or(latest, |left| now.saturating_add(left).min(latest));
        (end.max(now), run.load.shared(), begun)
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable_by_key(|(end, ..)| *end);
    ends
}

/// Returns the time at which a job of this shape could start on `host` if the host's jobs end as expected; `None`:
/// never.
///
/// A job that enters may run longer than expected. That delays the start, and other jobs may enter until then, of
/// which some run longer again. A stream of such jobs would never end. Once the `promised` start is over, others
/// therefore enter only while jobs run that began before it.
pub(crate) fn start_at(
    shape: &Shape,
    host: &Host,
    promised: u64,
    (runs, ledger): (&Runs, &Ledger),
    now: u64,
) -> Option<Start> {
    let ends = ends_on(host, runs, ledger, now);
    let closes = if now < promised {
        u64::MAX
    } else {
        let is_earlier = |begun: &Option<u64>| begun.is_some_and(|begun| begun < promised);
        let earlier = ends.iter().filter(|(.., begun)| is_earlier(begun));
        earlier.map(|(end, ..)| *end).max().unwrap_or(now)
    };
    let mut view = host.view_soon();
    let more = |free: u32, by: u64, total: u32| {
        free.saturating_add(u32::try_from(by).unwrap_or(u32::MAX))
            .min(total)
    };
    let mut left = ends.len();
    let mut at = now;
    let mut hw_runs = !view.shared_open;
    loop {
        view.hw_open = left == 0;
        view.shared_open = !hw_runs;
        if first_obstacle(None, shape, &view).is_none() {
            return Some(Start::of(shape, at.min(closes), &view));
        }
        let (end, shared, _) = ends.get(ends.len().checked_sub(left)?).copied()?;
        at = end;
        view.free_mb = more(view.free_mb, shared.memory_mb, view.total_mb);
        view.free_cpus = more(view.free_cpus, shared.cpus, view.total_cpus);
        left -= 1;
        hw_runs = hw_runs && left > 0;
    }
}
