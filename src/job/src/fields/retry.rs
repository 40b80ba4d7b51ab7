//! Retries: after which ends, how often, and with which delays.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    FieldError, Health, Spec,
    fields::read::{
        Charset, LIST_ITEMS_MAX, NAME_BYTES_MAX, known_keys, names, present, refuse, whole, yes,
    },
    units::{duration_s, shown},
};

/// The most tries again that a job may ask for.
const RETRY_MAX: u16 = 100;
/// The longest pause between two tries, seconds: a week.
const PAUSE_S_MAX: u64 = 7 * 86_400;
/// The largest factor from one pause to the next.
const FACTOR_MAX: u32 = 10;
/// Tries again after a lost machine, unless the job says otherwise.
const LOST_MAX: u16 = 1;

/// Cause of a bad end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The machine, the network or the agent: nothing that the job did.
    Infra,
    /// The workload's own exit code.
    Fail,
    /// The job took too long.
    Timeout,
    /// It ran out of memory.
    Oom,
    /// Its kernel crashed.
    Panic,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 5] = [
        Self::Infra,
        Self::Fail,
        Self::Timeout,
        Self::Oom,
        Self::Panic,
    ];

    /// The word in `retry.on` and in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Infra => "infra",
            Self::Fail => "fail",
            Self::Timeout => "timeout",
            Self::Oom => "oom",
            Self::Panic => "panic",
        }
    }
}

impl Health {
    /// Returns the cause of such an end. `None`: the end was not bad, or no failure is at fault. For example, a
    /// person stopped the job, or it could never run.
    pub fn cause(self) -> Option<Cause> {
        match self {
            Self::Fail => Some(Cause::Fail),
            Self::Oom => Some(Cause::Oom),
            Self::KernelPanic
            | Self::Panic
            | Self::Oops
            | Self::Sanitizer
            | Self::Lockup
            | Self::Lockdep
            | Self::Warning
            | Self::Leak => Some(Cause::Panic),
            Self::SoftTimeout
            | Self::TimeoutRunning
            | Self::TimeoutWaitPeer
            | Self::TimeoutPostRun
            | Self::TimeoutManualCheck
            | Self::TimeoutRenew => Some(Cause::Timeout),
            Self::WgetKernelFail
            | Self::WgetInitrdFail
            | Self::InitrdBroken
            | Self::LoadDiskFail
            | Self::ErrorMount
            | Self::MicrocodeMismatch
            | Self::NfsHang
            | Self::Disturbed
            | Self::AbortProvider
            | Self::TimeoutDispatch
            | Self::TimeoutBoot
            | Self::TimeoutSetup => Some(Cause::Infra),
            Self::Unknown
            | Self::Success
            | Self::Cancel
            | Self::Terminate
            | Self::Abort
            | Self::AbortInvalid
            | Self::AbortWait
            | Self::TimeoutSubmit => None,
        }
    }
}

/// Pauses between tries: the first, and how they grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// Before the second try, seconds. Default 1.
    pub first_s: u64,
    /// From one pause to the next, 1 to 10. Default 2.
    pub factor: u32,
    /// The longest, seconds, at most a week. Default 300.
    pub max_s: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first_s: 1,
            factor: 2,
            max_s: 300,
        }
    }
}

impl Backoff {
    /// The pause before try `next` (from 2), in ms, before chance takes its part.
    pub fn pause_ms(self, next: u16) -> u64 {
        let steps = u32::from(next.saturating_sub(2));
        let grown = u64::from(self.factor).saturating_pow(steps);
        let pause_s = self.first_s.saturating_mul(grown).min(self.max_s);
        pause_s.saturating_mul(1000)
    }
}

/// How a job is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// How often after the machine was at fault. Default 1.
    pub infra_max: u16,
    /// How often after the job itself was. Default 0.
    pub own_max: u16,
    /// After which of its own failures.
    pub own: Vec<Cause>,
    /// Pauses; `None`: the usual ones.
    pub backoff: Option<Backoff>,
    /// True if not on a host where it failed, if another could run it. Default false.
    pub elsewhere: bool,
}

/// Reads `retry_elsewhere`, and `retry`: a number, or `{max, on, backoff: {first, factor, max}}`. `on` lists causes;
/// without it all count. Missing values keep their defaults.
pub(crate) fn retry(spec: &Spec) -> Result<Retry, FieldError> {
    let mut retry = Retry {
        infra_max: LOST_MAX,
        own_max: 0,
        own: Vec::new(),
        backoff: None,
        elsewhere: yes(spec, "retry_elsewhere")?,
    };
    let Some(value) = present(spec, "retry") else {
        return Ok(retry);
    };
    let all = [&Value::from("infra,fail,timeout,oom,panic")];
    let (max, on) = match value {
        Value::Object(map) => {
            known_keys(
                "retry",
                map,
                &["max", "on", "backoff"],
                "{max: 2, on: [infra, fail]}",
            )?;
            retry.backoff = backoff(present(map, "backoff"))?;
            let max = present(map, "max").map_or(Ok(1), |max| count("retry.max", max))?;
            (max, present(map, "on").unwrap_or(all[0]))
        }
        number => (count("retry", number)?, all[0]),
    };
    for word in names(
        "retry.on",
        Some(on),
        Charset::Text,
        NAME_BYTES_MAX,
        LIST_ITEMS_MAX,
    )? {
        let Some(cause) = Cause::ALL.into_iter().find(|cause| cause.as_str() == word) else {
            let problem = format!("'{word}' is not a kind of failure");
            let known = Cause::ALL.map(Cause::as_str).join(", ");
            return refuse("retry.on", problem, &format!("one of {known}"));
        };
        if cause == Cause::Infra {
            retry.infra_max = max;
        } else {
            retry.own_max = max;
            retry.own.push(cause);
        }
    }
    Ok(retry)
}

fn count(field: &str, value: &Value) -> Result<u16, FieldError> {
    let count = whole(field, value, 0, i64::from(RETRY_MAX))?;
    Ok(u16::try_from(count).unwrap_or_default())
}

fn backoff(value: Option<&Value>) -> Result<Option<Backoff>, FieldError> {
    const FIELD: &str = "retry.backoff";
    let map = match value {
        None => return Ok(None),
        Some(Value::Object(map)) => map,
        Some(other) => {
            let problem = format!("{} where a map was expected", shown(other));
            return refuse(FIELD, problem, "write {first: 10s, factor: 2, max: 5m}");
        }
    };
    known_keys(
        FIELD,
        map,
        &["first", "factor", "max"],
        "{first: 10s, factor: 2, max: 5m}",
    )?;
    let usual = Backoff::default();
    let seconds = |key: &str, usual: u64| match map.get(key).map_or(Ok(None), duration_s) {
        Ok(said) if said.is_none_or(|said| said <= PAUSE_S_MAX) => Ok(said.unwrap_or(usual)),
        Ok(_) => refuse(
            &format!("{FIELD}.{key}"),
            format!("more than {PAUSE_S_MAX} seconds"),
            "at most a week",
        ),
        Err(error) => refuse(
            &format!("{FIELD}.{key}"),
            error.to_string(),
            "write for example 10s",
        ),
    };
    let first_s = seconds("first", usual.first_s)?;
    let max_s = seconds("max", usual.max_s.max(first_s))?;
    let factor = match present(map, "factor") {
        None => usual.factor,
        Some(value) => {
            let factor = whole("retry.backoff.factor", value, 1, i64::from(FACTOR_MAX))?;
            u32::try_from(factor).unwrap_or(usual.factor)
        }
    };
    if first_s > max_s {
        let problem =
            format!("the first delay, {first_s} s, is longer than the maximum, {max_s} s");
        return refuse(FIELD, problem, "give a larger max");
    }
    Ok(Some(Backoff {
        first_s,
        factor,
        max_s,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Result<Retry, FieldError> {
        retry(&Spec::from_iter([("retry".to_owned(), value)]))
    }

    #[test]
    fn pauses_grow_to_the_longest() {
        let backoff = of(json!({"backoff": {"first": "10s", "factor": 3, "max": "2m"}}));
        let backoff = backoff.unwrap().backoff.unwrap();
        let pauses: Vec<u64> = (2..7).map(|next| backoff.pause_ms(next) / 1000).collect();
        assert_eq!(pauses, [10, 30, 90, 120, 120]);
        assert_eq!(Backoff::default().pause_ms(u16::MAX), 300_000);
        let longer = of(json!({"backoff": {"first": "1h"}}))
            .unwrap()
            .backoff
            .unwrap();
        assert_eq!((longer.first_s, longer.max_s), (3_600, 3_600));
    }

    #[test]
    fn only_what_is_named_is_tried_again() {
        let some = of(json!({"max": 4, "on": ["timeout", "oom"]})).unwrap();
        assert_eq!((some.infra_max, some.own_max), (1, 4));
        assert_eq!(some.own, [Cause::Timeout, Cause::Oom]);
        let all = of(json!(2)).unwrap();
        assert_eq!((all.infra_max, all.own_max, all.own.len()), (2, 2, 4));
        let elsewhere = Spec::from_iter([("retry_elsewhere".to_owned(), json!(true))]);
        assert!(!all.elsewhere && retry(&elsewhere).unwrap().elsewhere);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (bad, field) in [
            (json!({"backoff": 5}), "retry.backoff"),
            (json!({"backoff": {"frist": 1}}), "retry.backoff"),
            (
                json!({"backoff": {"first": "1h", "max": "1m"}}),
                "retry.backoff",
            ),
            (json!({"backoff": {"first": "8d"}}), "retry.backoff.first"),
            (json!({"backoff": {"factor": 0}}), "retry.backoff.factor"),
        ] {
            assert_eq!(of(bad.clone()).unwrap_err().field, field, "{bad}");
        }
    }

    #[test]
    fn every_timeout_has_a_cause_but_that_of_waiting() {
        for health in Health::ALL
            .iter()
            .filter(|health| health.as_str().contains("timeout"))
        {
            assert_eq!(
                health.cause().is_none(),
                *health == Health::TimeoutSubmit,
                "{health}"
            );
        }
    }
}
