//! Counts of the jobs of a list by a field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Jobs of a list with one value of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JobGroup {
    /// The value; empty: they have none.
    pub value: String,
    /// All of them.
    pub jobs: u64,
    /// Those in stage submit.
    pub waiting: u64,
    /// Those that hosts have.
    pub running: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those that people cancelled or terminated.
    #[serde(default)]
    pub stopped: u64,
    /// Those that ended in another way.
    pub failed: u64,
    /// When the first of them was submitted, UTC epoch ms.
    #[serde(default)]
    pub since_ms: u64,
    /// Their suite; absent: they have several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suite: String,
}

impl JobGroup {
    /// Makes one group of those with the same value, and sorts them. `is_by_time`: the newest first, as for submits; else
    /// those with most jobs.
    pub fn gather(groups: impl IntoIterator<Item = Self>, is_by_time: bool) -> Vec<Self> {
        let mut by_value: BTreeMap<String, Self> = BTreeMap::new();
        for group in groups {
            match by_value.get_mut(&group.value) {
                Some(known) => known.add(&group),
                None => {
                    by_value.insert(group.value.clone(), group);
                }
            }
        }
        let mut groups: Vec<Self> = by_value.into_values().collect();
        let rank = |group: &Self| {
            if is_by_time {
                group.since_ms
            } else {
                group.jobs
            }
        };
        groups.sort_by_key(|group| std::cmp::Reverse(rank(group)));
        groups
    }

    fn add(&mut self, other: &Self) {
        self.since_ms = self.since_ms.min(other.since_ms);
        if self.suite != other.suite {
            self.suite.clear();
        }
        self.jobs += other.jobs;
        self.waiting += other.waiting;
        self.running += other.running;
        self.succeeded += other.succeeded;
        self.stopped += other.stopped;
        self.failed += other.failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(value: &str, suite: &str, jobs: u64, since_ms: u64) -> JobGroup {
        JobGroup {
            value: value.to_owned(),
            suite: suite.to_owned(),
            jobs,
            failed: jobs,
            since_ms,
            ..JobGroup::default()
        }
    }

    #[test]
    fn groups_of_one_value_are_one() {
        let parts = [
            group("old", "boot", 2, 10),
            group("new", "boot", 4, 30),
            group("old", "boot", 3, 20),
            group("new", "fio", 1, 40),
        ];
        let old = group("old", "boot", 5, 10);
        let new = group("new", "", 5, 30);
        let gathered = |is_by_time| JobGroup::gather(parts.clone(), is_by_time);
        assert_eq!(gathered(true), [new.clone(), old.clone()]);
        // Of as many jobs each: by value.
        assert_eq!(gathered(false), [new, old]);
    }

    #[test]
    fn most_jobs_come_first() {
        let parts = [group("a", "boot", 1, 30), group("b", "boot", 2, 10)];
        let names = |is_by_time| {
            let groups = JobGroup::gather(parts.clone(), is_by_time);
            groups.into_iter().map(|it| it.value).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["b", "a"]);
        assert_eq!(names(true), ["a", "b"]);
    }
}
