//! Limits of accounts and queues on the command line.

use fairlead_api::{Bounds, Limits, LimitsChange};

/// Limits to set.
#[derive(Debug, clap::Args)]
pub(crate) struct LimitArgs {
    /// Limit of waiting jobs: N, soft=N,hard=M, or none
    #[arg(long, value_name = "LIMIT", value_parser = bounds)]
    waiting: Option<Bounds>,
    /// Limit of jobs on testboxes at one time: N, soft=N,hard=M, or none
    #[arg(long, value_name = "LIMIT", value_parser = bounds)]
    running: Option<Bounds>,
    /// Limit of testbox hours within 24 hours: N, soft=N,hard=M, or none
    #[arg(long, value_name = "LIMIT", value_parser = bounds)]
    hours: Option<Bounds>,
    /// Limit of shards that have not ended: N, or none
    #[arg(long, value_name = "LIMIT", value_parser = bounds)]
    shards: Option<Bounds>,
    /// Limit of an account: MB of its inputs and outputs together: N, or none
    #[arg(long, value_name = "LIMIT", value_parser = bounds)]
    content_mb: Option<Bounds>,
    /// Limit of an account: MB of inputs and outputs put within 24 hours: N, or none
    #[arg(long, value_name = "LIMIT", value_parser = bounds)]
    content_day_mb: Option<Bounds>,
    /// Limit of an account: MB of the result files of its kept jobs: N, or none
    #[arg(long, value_name = "LIMIT", value_parser = bounds)]
    results_mb: Option<Bounds>,
}

impl LimitArgs {
    pub(crate) fn change(&self) -> LimitsChange {
        LimitsChange {
            waiting: self.waiting,
            running: self.running,
            hours: self.hours,
            shards: self.shards,
            content_mb: self.content_mb,
            content_day_mb: self.content_day_mb,
            results_mb: self.results_mb,
        }
    }
}

/// Parses a limit: `100` is hard, `soft=50` soft, `soft=50,hard=100` both. `none` removes both.
pub(crate) fn bounds(text: &str) -> Result<Bounds, String> {
    let mut bounds = Bounds::default();
    if text == "none" {
        return Ok(bounds);
    }
    for part in text.split(',') {
        let (place, number) = match part.split_once('=') {
            None => (&mut bounds.hard, part),
            Some(("soft", number)) => (&mut bounds.soft, number),
            Some(("hard", number)) => (&mut bounds.hard, number),
            Some((other, _)) => return Err(format!("'{other}' is neither soft nor hard")),
        };
        if place.is_some() {
            return Err(format!("'{part}' is repeated"));
        }
        let number = number.parse::<u64>();
        *place = Some(
            number.map_err(|_| format!("'{part}' is not a whole number; use soft=50,hard=100"))?,
        );
    }
    Ok(bounds)
}

/// Returns limits for a table, each with its present use if known.
pub(crate) fn beside(limits: &Limits, used: impl Fn(&str) -> Option<u64>) -> String {
    let each = [
        ("waiting", limits.waiting),
        ("running", limits.running),
        ("hours", limits.hours),
        ("shards", limits.shards),
        ("content_mb", limits.content_mb),
        ("content_day_mb", limits.content_day_mb),
        ("results_mb", limits.results_mb),
    ];
    let each = each.into_iter().filter(|(_, bounds)| !bounds.is_none());
    let words = each.map(|(what, bounds)| {
        let used = used(what).map_or_else(String::new, |used| format!("{used} of "));
        format!("{what} {used}{}", words_of(bounds))
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Returns one limit in the form of [`bounds`].
pub(crate) fn words_of(bounds: Bounds) -> String {
    let both = [("soft", bounds.soft), ("hard", bounds.hard)];
    let said = both
        .into_iter()
        .filter_map(|(kind, most)| Some(format!("{kind}={}", most?)));
    let said = said.collect::<Vec<_>>().join(",");
    if said.is_empty() {
        "none".to_owned()
    } else {
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_shown() {
        for (text, soft, hard) in [
            ("10", None, Some(10)),
            ("soft=5", Some(5), None),
            ("soft=5,hard=9", Some(5), Some(9)),
            ("hard=0", None, Some(0)),
            ("none", None, None),
        ] {
            assert_eq!(bounds(text), Ok(Bounds { soft, hard }), "{text}");
        }
        for bad in ["", "x", "soft=", "firm=3", "1,2", "-1"] {
            assert!(bounds(bad).is_err(), "{bad}");
        }
        let limits = Limits {
            waiting: bounds("7").unwrap(),
            running: bounds("soft=5,hard=9").unwrap(),
            ..Limits::default()
        };
        let used = |what: &str| (what == "running").then_some(3);
        let shown = "waiting hard=7; running 3 of soft=5,hard=9";
        assert_eq!(beside(&limits, used), shown);
        assert_eq!(beside(&Limits::default(), used), "");
    }
}
