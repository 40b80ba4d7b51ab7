//! Changes of how the lab reuses results, from the command line and from lab files: what they say, and the settings that
//! they make.

use fairlead_api::{ReuseSettings, SuiteReuse};
use fairlead_job::reuse_within_s;
use serde_json::Value;

/// Changes of the settings. `None`: unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReuseChange {
    pub(crate) salt: Option<String>,
    pub(crate) audit_percent: Option<u8>,
    pub(crate) performance: Option<Vec<String>>,
    /// Suites in the order in which they are compared with the suite of a job.
    pub(crate) suites: Option<Vec<SuiteReuse>>,
}

impl ReuseChange {
    /// Returns the settings after the change.
    pub(crate) fn of(&self, before: &ReuseSettings) -> ReuseSettings {
        let change = self.clone();
        let before = before.clone();
        ReuseSettings {
            salt: change.salt.unwrap_or(before.salt),
            audit_percent: change.audit_percent.or(before.audit_percent),
            performance: change.performance.unwrap_or(before.performance),
            suites: change.suites.unwrap_or(before.suites),
        }
    }
}

/// Returns the setting for the jobs of a suite, after the scheduler's checks.
pub(crate) fn suite_reuse(suite: &str, within: &str) -> Result<SuiteReuse, String> {
    if suite.is_empty() {
        return Err("a suite has no name".to_owned());
    }
    reuse_within_s(&Value::from(within))?;
    Ok(SuiteReuse {
        suite: suite.to_owned(),
        within: within.to_owned(),
    })
}

/// Returns one suite in the form of the command line.
pub(crate) fn words_of(suite: &SuiteReuse) -> String {
    format!("{}={}", suite.suite, suite.within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unsaid_stays() {
        let before = ReuseSettings {
            salt: "a".to_owned(),
            audit_percent: Some(5),
            performance: vec!["fio*".to_owned()],
            suites: vec![suite_reuse("ltp*", "14d").unwrap()],
        };
        assert_eq!(ReuseChange::default().of(&before), before);
        let change = ReuseChange {
            salt: Some("b".to_owned()),
            audit_percent: Some(0),
            performance: Some(Vec::new()),
            suites: Some(Vec::new()),
        };
        let after = ReuseSettings {
            salt: "b".to_owned(),
            audit_percent: Some(0),
            ..ReuseSettings::default()
        };
        assert_eq!(change.of(&before), after);
    }

    #[test]
    fn a_suite_has_a_name_and_a_duration() {
        assert_eq!(words_of(&suite_reuse("ltp*", "14d").unwrap()), "ltp*=14d");
        for (suite, within, word) in [
            ("", "1d", "no name"),
            ("x", "soon", "soon"),
            ("x", "367d", "366d"),
            ("x", "0", "1s to 366d"),
        ] {
            let problem = suite_reuse(suite, within).unwrap_err();
            assert!(problem.contains(word), "{problem}");
        }
    }
}
