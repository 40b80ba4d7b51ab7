//! Jobs that need others of their submit, and jobs that take all that a host has.

use serde_json::{Map, Value, json};

use super::{chance::Chance, scenario::HostPlan};

/// Makes a job need all memory and CPUs of this host.
pub(super) fn take_all_of(host: &HostPlan, job: &mut Map<String, Value>) {
    if host.is_hw() {
        return;
    }
    job.insert("memory".to_owned(), format!("{}M", host.memory_mb).into());
    if let Some(cpus) = host.cpus {
        job.insert("need_cpus".to_owned(), cpus.into());
    }
}

/// Names a job by its number in the submit. May make it need one or two of the previous jobs.
pub(super) fn link(chance: &mut Chance, number: u64, job: &mut Value) {
    let name = |number: u64| format!("j{number}");
    job["name"] = name(number).into();
    if number == 0 || !chance.hits(500) {
        return;
    }
    let mut needed: Vec<String> = (0..2)
        .map(|_| name(chance.within(0..=number - 1)))
        .collect();
    needed.dedup();
    job["needs"] = json!(needed);
    if chance.hits(400) {
        job["if"] = "always".into();
    }
}
