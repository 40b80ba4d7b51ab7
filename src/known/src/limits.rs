//! Limits of accounts and queues, as in their documents.

use fairlead_api::{Bounds, Limits, LimitsChange};

use fairlead_base::errors::PeopleError;

/// Largest limit.
pub const LIMIT_MAX: u64 = 1_000_000_000;

/// Returns the limits after a change.
pub fn changed(before: Limits, change: &LimitsChange) -> Result<Limits, PeopleError> {
    let after = Limits {
        waiting: change.waiting.unwrap_or(before.waiting),
        running: change.running.unwrap_or(before.running),
        hours: change.hours.unwrap_or(before.hours),
        shards: change.shards.unwrap_or(before.shards),
        content_mb: change.content_mb.unwrap_or(before.content_mb),
        content_day_mb: change.content_day_mb.unwrap_or(before.content_day_mb),
        results_mb: change.results_mb.unwrap_or(before.results_mb),
    };
    let hard_only = [
        ("shards", after.shards),
        ("content_mb", after.content_mb),
        ("content_day_mb", after.content_day_mb),
        ("results_mb", after.results_mb),
    ];
    if let Some((what, _)) = hard_only.iter().find(|(_, bounds)| bounds.soft.is_some()) {
        return Err(PeopleError::NoSoftLimit { what });
    }
    let each = [
        ("waiting", after.waiting),
        ("running", after.running),
        ("hours", after.hours),
        ("shards", after.shards),
        ("content_mb", after.content_mb),
        ("content_day_mb", after.content_day_mb),
        ("results_mb", after.results_mb),
    ];
    for (what, bounds) in each {
        check(what, bounds)?;
    }
    Ok(after)
}

fn check(what: &'static str, bounds: Bounds) -> Result<(), PeopleError> {
    let largest = bounds.soft.max(bounds.hard);
    if let Some(given) = largest.filter(|largest| *largest > LIMIT_MAX) {
        let max = LIMIT_MAX;
        return Err(PeopleError::LimitTooHigh { what, given, max });
    }
    match (bounds.soft, bounds.hard) {
        (Some(soft), Some(hard)) if soft > hard => {
            Err(PeopleError::SoftOverHard { what, soft, hard })
        }
        _ => Ok(()),
    }
}
