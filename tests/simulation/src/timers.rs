//! Timers of simulated people: a few with short periods during the faults. When they are paused, each due time is
//! accounted for, and each run is its own job (I10).

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::Spec;
use fairlead_store::DocKind;
use serde_json::{Value, json};

use super::{
    chance::Chance,
    net::Message,
    timer::pause,
    truth::Truth,
    user,
    world::{Violation, World},
};

/// Maximum number of timers in a seed.
const TIMERS_MAX: u64 = 2;
/// Random stream of the timers.
const STREAM: u64 = 2;
/// Number of handled intervals from which on a timer merges the two oldest.
const STRETCHES_MAX: usize = 8;
/// Account of the timers.
const ACCOUNT: &str = "tim";

/// Returns the timer and run that a job belongs to.
pub(super) fn run_of(body: &Spec) -> Option<String> {
    let (timer, due) = (
        body.get("timer")?.as_str()?,
        body.get("timer_due")?.as_str()?,
    );
    Some(format!("the run of {timer} due at {due}"))
}

/// Returns the timers of this seed, by name.
fn drawn(world: &World) -> Vec<(String, Value)> {
    let chance = &mut Chance::new(world.scenario.seed, STREAM);
    let many = chance.within(0..=TIMERS_MAX);
    let mut timer = |number: u64| {
        let name = format!("timer-{number}");
        let mut job = user::job(&world.scenario, chance);
        let more = json!({
            "my_account": ACCOUNT, "timer": name, "retry": 0, "queue": null, "start_at": null, "deadline": null,
            "every": chance.within(3..=20),
            "overlap": chance.one_of(&["skip", "queue", "replace"], "skip"),
            "missed": chance.one_of(&["once", "skip"], "once"),
        });
        if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
            job.extend(more);
        }
        (name, job)
    };
    (0..many).map(&mut timer).collect()
}

impl World {
    /// Submits the timers of this seed.
    pub(super) async fn makes_timers(self: Arc<Self>) {
        for (name, job) in drawn(&self) {
            let message = Message::new(name, "/scheduler/v1/timers", &job);
            self.person_asks("timer", &message).await;
        }
    }

    /// Pauses all timers. Runs that are due before are started, and none after.
    pub(super) async fn pauses_timers(self: &Arc<Self>) {
        for (name, _) in drawn(self) {
            let path = format!("/scheduler/v1/timers/{name}/pause?account={ACCOUNT}");
            let message = Message::new(format!("pause {name}"), path, &json!({}));
            while self
                .truth()
                .docs(DocKind::Timer)
                .any(|doc| doc.body["name"] == name.as_str() && doc.body["paused"] != true)
            {
                self.person_asks("pause", &message).await;
                pause(100).await;
            }
        }
    }
}

/// Returns the number of due times that a timer has handled. 0: it remembers too many intervals to tell.
fn seen_to(stretches: &Value, period_ms: u64) -> u64 {
    let stretches = stretches.as_array().map_or(&[][..], Vec::as_slice);
    if stretches.len() >= STRETCHES_MAX {
        return 0;
    }
    let times = |stretch: &Value| {
        let at = |n: usize| stretch[n].as_u64().unwrap_or(0);
        at(1).saturating_sub(at(0)) / period_ms + 1
    };
    stretches.iter().map(times).sum()
}

/// Checks that each due time of each timer was run, skipped or missed. Each run must be a job, and no other job may
/// exist. If clocks step, the last run may be of a clock that was set back since, so only handled times certainly came.
pub(super) fn add_up(truth: &Truth, clocks_step: bool) -> Result<(), Violation> {
    let mut jobs: BTreeMap<&str, u64> = BTreeMap::new();
    for body in truth.bodies().filter(|body| run_of(body).is_some()) {
        let timer = body.get("timer").and_then(Value::as_str);
        *jobs.entry(timer.unwrap_or_default()).or_default() += 1;
    }
    for doc in truth.docs(DocKind::Timer) {
        let count = |field: &str| doc.body[field].as_u64().unwrap_or(0);
        let name = doc.body["name"].as_str().unwrap_or_default();
        let made = jobs.get(name).copied().unwrap_or(0);
        let broken = |what: String| {
            Err(Violation {
                invariant: "I10",
                what: format!("{what}: {}", doc.body),
            })
        };
        if made != count("runs") || count("refused") > 0 || !doc.body["pending"].is_null() {
            return broken(format!("timer {name} made {made} jobs"));
        }
        let period_ms = doc.body["when"]["every"].as_u64().unwrap_or(1) * 1_000;
        let last_ms = doc.body["last"]["due_ms"].as_u64().unwrap_or(0);
        let times = if clocks_step {
            seen_to(&doc.body["done"], period_ms)
        } else {
            last_ms.saturating_sub(count("from_ms")) / period_ms
        };
        let told = count("runs") + count("skipped") + count("missed");
        if told < times {
            return broken(format!("{times} times came, {told} are accounted for"));
        }
    }
    Ok(())
}
