//! Jobs that may take results of others, and what hosts make of them.
//!
//! Some hosts are poisoned: jobs succeed there that fail everywhere else. Some jobs are flaky: they fail now and then. All
//! of it has its own randomness, so seeds without it stay as they are.

use std::sync::Arc;

use fairlead_job::Spec;
use fairlead_store::{DocKind, DocWrite, Expect};
use serde_json::{Value, json};

use super::{
    chance::Chance,
    net::{Answer, Message},
    scenario::Scenario,
    timer::pause,
    user,
    world::World,
};

/// Random streams of poisoned hosts, of settings, and of recipes.
const HOSTS_STREAM: u64 = 20;
const SETTINGS_STREAM: u64 = 21;
const RECIPES_STREAM: u64 = 22;
/// Number of recipes: different workloads.
const RECIPES: u64 = 5;
/// Recipes that fail now and then, that fail except on poisoned hosts, and that run in parts.
const FLAKY: u64 = 0;
const POISON: u64 = 1;
const IN_PARTS: u64 = 2;
/// Fraction (1 in N) of the runs of a flaky job that fail.
const FLAKY_EVERY: u64 = 3;
/// Accounts of such jobs. The first one shares its results.
pub(super) const ACCOUNTS: [&str; 2] = ["ann", "bob"];
/// Percentages of reusable jobs that run as audits, in some seeds.
const AUDIT_PERCENTS: [u64; 3] = [10, 30, 60];

/// Fields of a job here that determine its workload and its possible hosts.
const KEYED: [&str; 18] = [
    "any_of",
    "arch",
    "disk_fails",
    "else",
    "exit",
    "flaky",
    "memory",
    "n",
    "need_cpus",
    "not_tags",
    "os_version",
    "run_ms",
    "sched.devices",
    "script",
    "suite",
    "tags",
    "target_machines",
    "testbox",
];

/// Returns the workload of a submitted job as one text. Equal texts mean equal runs.
pub(super) fn key_of(body: &Spec) -> String {
    let said = KEYED.iter().filter_map(|field| {
        let value = body.get(*field).filter(|value| !value.is_null())?;
        Some(format!("{field}={value}"))
    });
    said.collect::<Vec<_>>().join(" ")
}

/// Returns the maximum age of a result that the job takes, seconds. 0: it takes none.
pub(super) fn within_s(body: &Spec) -> u64 {
    let within = body.get("reuse").and_then(|reuse| reuse["within"].as_str());
    let seconds = within.and_then(|text| text.strip_suffix('s')?.parse().ok());
    seconds.unwrap_or(0)
}

/// Returns a job with one of the recipes, of a random account.
pub(super) fn job(scenario: &Scenario, chance: &mut Chance) -> Value {
    let recipe = chance.within(0..=RECIPES - 1);
    let mut job = user::job(
        scenario,
        &mut Chance::new(scenario.seed, RECIPES_STREAM + recipe),
    );
    let within_s = chance.one_of(&[2, 20, 1_000_000, 1_000_000], 20);
    let more = json!({
        "my_account": chance.one_of(&ACCOUNTS, "ann"),
        "priority": i64::try_from(chance.within(0..=4)).unwrap_or(0) - 2,
        "retry": chance.within(0..=2),
        "n": recipe,
        "run_ms": job["run_ms"].as_u64().unwrap_or(0) % 3_000,
        "exit": u64::from(recipe == POISON),
        "flaky": if recipe == FLAKY { FLAKY_EVERY } else { 0 },
        "start_at": null, "queue_timeout": null, "deadline": null, "queue": null,
        "reuse": if chance.hits(100) { json!("no") } else { json!({"within": format!("{within_s}s")}) },
    });
    if let (Some(job), Value::Object(more)) = (job.as_object_mut(), more) {
        job.extend(more);
    }
    if recipe == IN_PARTS && scenario.has_shards() {
        job["shards"] = json!({ "count": 3 });
    }
    // One part of the key is varied.
    match chance.within(0..=9) {
        0 => job["n"] = (recipe + RECIPES).into(),
        1 => job["script"] = "other".into(),
        2 => job["os_version"] = "other".into(),
        _ => {}
    }
    job
}

/// Returns true if a job of a submit uses a recipe.
pub(super) fn is_drawn(scenario: &Scenario, chance: &mut Chance) -> bool {
    scenario.has_reuse() && chance.hits(750)
}

/// Returns the poisoned host of a seed.
pub(super) fn poisoned(seed: u64) -> Option<usize> {
    let chance = &mut Chance::new(seed, HOSTS_STREAM);
    chance.hits(500).then(|| chance.index(3))
}

/// Returns the exit code of a workload on a host.
pub(super) fn exit_code(job: &Spec, id: &str, attempt: u16, is_poisoned: bool) -> i32 {
    let number = |field: &str| job.get(field).and_then(Value::as_u64).unwrap_or(0);
    let fails = match number("flaky") {
        0 => number("exit") > 0 && !(is_poisoned && number("n") == POISON),
        every => {
            let id: u64 = id.parse().unwrap_or(0);
            (id / 7 + u64::from(attempt)).is_multiple_of(every)
        }
    };
    i32::from(fails)
}

impl World {
    /// Sets how the lab reuses results, and which accounts share them.
    pub(super) async fn settles_reuse(self: Arc<Self>) {
        if !self.scenario.has_reuse() {
            return;
        }
        // The account exists as in a lab with accounts, because an open lab gives no rights.
        let [sharing, _] = ACCOUNTS;
        let shares = DocWrite {
            id: sharing.to_owned(),
            expect: Expect::Any,
            body: Some(json!({"format": 1, "role": "user", "share_results": true})),
        };
        // No account existed before.
        let _ = self.truth().put(DocKind::Account, &shares);
        let chance = &mut Chance::new(self.scenario.seed, SETTINGS_STREAM);
        let percent = chance.one_of(&AUDIT_PERCENTS, 10);
        let message = Message::new(
            "audits",
            "/scheduler/v1/reuse",
            &json!({ "audit_percent": percent }),
        );
        let is_done = |answer: Option<Answer>| answer.is_some_and(|answer| answer.is_good());
        while !is_done(self.person_asks("audits", &message).await) {
            pause(500).await;
        }
    }
}
