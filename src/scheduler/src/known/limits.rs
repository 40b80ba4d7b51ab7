//! Limits of accounts and queues, as in their documents.

use fairlead_api::{Bounds, ErrorCode, Limits, LimitsChange};

use crate::base::errors::Refusal;

/// Largest limit.
pub(crate) const LIMIT_MAX: u64 = 1_000_000_000;

/// The limits after a change of them.
pub(crate) fn changed(before: Limits, change: &LimitsChange) -> Result<Limits, Refusal> {
    let after = Limits {
        waiting: change.waiting.unwrap_or(before.waiting),
        running: change.running.unwrap_or(before.running),
        hours: change.hours.unwrap_or(before.hours),
    };
    let each = [
        ("waiting", after.waiting),
        ("running", after.running),
        ("hours", after.hours),
    ];
    for (what, bounds) in each {
        check(what, bounds)?;
    }
    Ok(after)
}

fn check(what: &str, bounds: Bounds) -> Result<(), Refusal> {
    let bad = |problem: String, hint: String| {
        let message = format!("limits.{what}: {problem}");
        Err(Refusal::new(ErrorCode::BadField, message, hint))
    };
    let largest = bounds.soft.max(bounds.hard);
    if let Some(largest) = largest.filter(|largest| *largest > LIMIT_MAX) {
        return bad(
            format!("{largest} is over {LIMIT_MAX}"),
            "omit it for no limit".to_owned(),
        );
    }
    match (bounds.soft, bounds.hard) {
        (Some(soft), Some(hard)) if soft > hard => bad(
            format!("the soft limit {soft} is over the hard limit {hard}"),
            "jobs over the soft limit go behind others; jobs at the hard limit wait".to_owned(),
        ),
        _ => Ok(()),
    }
}
