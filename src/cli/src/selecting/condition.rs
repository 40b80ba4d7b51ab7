//! Conditions such as `nr_threads>4` on the fields and parameters of a job.

use std::{cmp::Ordering, fmt, str::FromStr};

use fairlead_api::JobSummary;
use fairlead_job::compare_values;

/// Comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

impl Relation {
    /// All signs, longer ones first, because `>=` begins with `>`.
    const ALL: [(&'static str, Self); 7] = [
        ("!=", Self::Unequal),
        ("<=", Self::LessOrEqual),
        (">=", Self::MoreOrEqual),
        ("==", Self::Equal),
        ("<", Self::Less),
        (">", Self::More),
        ("=", Self::Equal),
    ];

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::More => order.is_gt(),
            Self::MoreOrEqual => order.is_ge(),
        }
    }
}

/// A condition: `NAME RELATION VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    name: String,
    relation: Relation,
    value: String,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let begins = |at: usize| {
            let rest = text.get(at..)?;
            let found = Relation::ALL
                .iter()
                .find(|(sign, _)| rest.starts_with(sign))?;
            Some((at, found))
        };
        let place = text.char_indices().find_map(|(at, _)| begins(at));
        let Some((at, (sign, relation))) = place.filter(|(at, _)| *at > 0) else {
            return Err("a condition is NAME=VALUE, with =, !=, <, <=, > or >=".to_owned());
        };
        let value = text.get(at + sign.len()..).unwrap_or_default();
        Ok(Self {
            name: text.get(..at).unwrap_or_default().trim().to_owned(),
            relation: *relation,
            value: value.trim().to_owned(),
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut signs = Relation::ALL.iter();
        let sign = signs.find(|(_, relation)| *relation == self.relation);
        let sign = sign.map_or("=", |(sign, _)| sign);
        write!(f, "{}{sign}{}", self.name, self.value)
    }
}

impl Condition {
    /// Returns true if a job meets it. A job without such a field or parameter meets only `!=`.
    pub(crate) fn is_met(&self, job: &JobSummary) -> bool {
        let Some(value) = value_of(job, &self.name) else {
            return self.relation == Relation::Unequal;
        };
        self.relation.holds(compare_values(&value, &self.value))
    }
}

/// Returns a field of a job, or else one of its parameters.
pub(crate) fn value_of(job: &JobSummary, name: &str) -> Option<String> {
    let seconds =
        |from: Option<u64>, to: Option<u64>| Some((to?.saturating_sub(from?) / 1000).to_string());
    let field = match name {
        "stage" => job.job_stage.to_string(),
        "health" => job.job_health.to_string(),
        "account" => job.my_account.clone(),
        "queue" => job.queue.clone(),
        "suite" => job.suite.clone(),
        "testbox" => job.testbox.clone(),
        "tbox_group" => job.tbox_group.clone(),
        "host" => job.host.clone(),
        "submit_id" => job.submit_id.clone(),
        "reason" => job.reason.clone(),
        "failure" => job.failure.clone(),
        "attempt" => job.attempt.to_string(),
        "priority" => job.priority.to_string(),
        "memory_mb" => job.memory_mb.to_string(),
        "cpus" => job.cpus.to_string(),
        "exit_code" => return job.exit_code.map(|code| code.to_string()),
        "seconds" => return seconds(job.running_ms, job.end_ms),
        "waited" => return seconds(Some(job.submit_ms), job.dispatch_ms),
        parameter => return parameter_of(job, parameter),
    };
    Some(field)
}

fn parameter_of(job: &JobSummary, name: &str) -> Option<String> {
    let mut words = job.kv.iter().filter_map(|word| word.split_once('='));
    let found = words.find(|(key, _)| *key == name);
    found.map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &[&str]) -> JobSummary {
        let job = serde_json::json!({
            "job_id": "1", "job_stage": "finish", "job_health": "success", "job_data_readiness": "complete",
            "my_account": "a", "queue": "q", "priority": 2, "suite": "s", "testbox": "t", "tbox_group": "g",
            "attempt": 1, "memory_mb": 4096, "submit_ms": 1000, "dispatch_ms": 5000, "running_ms": 6000,
            "end_ms": 66_000, "kv": words,
        });
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn numbers_are_compared_as_numbers_and_words_as_words() {
        let job = job(&["nr_threads=16", "mode=process", "note=a=b"]);
        for (text, met) in [
            ("nr_threads>4", true),
            ("nr_threads >= 16", true),
            ("nr_threads<9", false),
            ("mode=process", true),
            ("mode!=thread", true),
            ("mode<q", true),
            ("note=a=b", true),
            ("memory_mb<=4096", true),
            ("seconds==60", true),
            ("waited>4", false),
            ("exit_code=0", false),
            ("nothing!=5", true),
            ("nothing=5", false),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.is_met(&job), met, "{text}");
        }
        for bad in ["", "nr_threads", ">4", "=4"] {
            assert!(bad.parse::<Condition>().is_err(), "{bad}");
        }
    }
}
