//! Compares a job's needs with a host of a scenario.

use fairlead_job::{Alternative, TboxType};
use fairlead_store::JobState;

use crate::scenario::HostPlan;

/// Returns the keys that a host offers.
fn keys(plan: &HostPlan) -> Vec<String> {
    let group = plan.name.split("--").next().unwrap_or_default();
    let each = plan.kinds.iter().map(|kind| match *kind {
        "hw" => vec![
            format!("hw.{}", plan.arch),
            format!("hw@{}", plan.name),
            format!("hw@{group}"),
        ],
        kind => vec![
            format!("{kind}.{}", plan.arch),
            format!("{kind}.{}@{}", plan.arch, plan.name),
        ],
    });
    each.flatten().collect()
}

/// Returns a description of what a host lacks for a job.
pub(super) fn lacks(state: &JobState, plan: &HostPlan) -> Option<String> {
    let keys = keys(plan);
    if !state.host_keys.iter().any(|key| keys.contains(key)) {
        return Some(format!("all of {:?}", state.host_keys));
    }
    if !state.arch.is_empty() && state.arch != plan.arch {
        return Some(state.arch.clone());
    }
    if state.memory_mb > plan.memory_mb {
        return Some(format!("{} MB", state.memory_mb));
    }
    if plan.cpus.is_some_and(|cpus| state.cpus > cpus) {
        return Some(format!("{} CPUs", state.cpus));
    }
    let has = |tag: &String| plan.tags.contains(&tag.as_str());
    let tag = state.tags.iter().find(|tag| !has(tag));
    if let Some(tag) = state.not_tags.iter().find(|tag| has(tag)) {
        return Some(format!("no {tag}"));
    }
    let meets = |one: &Alternative| one.tags.iter().all(has) && !one.not_tags.iter().any(has);
    if !state.any_of.is_empty() && !state.any_of.iter().any(meets) {
        return Some(format!("one of {:?}", state.any_of));
    }
    let device = state
        .devices
        .iter()
        .find(|device| !plan.devices.contains(&device.as_str()));
    let kind_is_there = plan.is_hw() == (state.tbox_type == TboxType::Hw);
    tag.or(device)
        .cloned()
        .or_else(|| (!kind_is_there).then(|| state.tbox_type.as_str().to_owned()))
}
