//! The policy of a lab's queues as the engine takes it, and changes of it from the command line.

use std::{collections::BTreeSet, str::FromStr};

use fairlead_api::QueueView;
use fairlead_dispatch::{Allowance, Policy, QueuePolicy, labels};
use fairlead_replay::PastJob;

use crate::exit::Failure;

/// A change of a queue: `NAME:KEY=VALUE[,KEY=VALUE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueueChange {
    name: String,
    weight: Option<u32>,
    priority: Option<u8>,
    running: Option<u64>,
}

impl FromStr for QueueChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "write NAME:weight=N, with priority=N or running=N after a comma".to_owned();
        let (name, settings) = text
            .rsplit_once(':')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(form)?;
        let mut change = Self {
            name: name.to_owned(),
            weight: None,
            priority: None,
            running: None,
        };
        for setting in settings.split(',') {
            let (key, value) = setting.split_once('=').ok_or_else(form)?;
            let number: u32 = value
                .trim()
                .parse()
                .map_err(|_| format!("'{value}' is no number: {}", form()))?;
            match key.trim() {
                "weight" if (1..=10_000).contains(&number) => change.weight = Some(number),
                "weight" => return Err(format!("weight {number}: it is 1 to 10000")),
                "priority" => {
                    let class = u8::try_from(number).ok().filter(|class| *class <= 9);
                    let class = class.ok_or(format!("priority {number}: it is 0 to 9"))?;
                    change.priority = Some(class);
                }
                "running" => change.running = Some(number.into()),
                other => return Err(format!("'{other}' is no setting: {}", form())),
            }
        }
        Ok(change)
    }
}

/// Returns the engine's policy for the queues of a lab, without pauses. Jobs of paused queues would wait forever.
pub(super) fn of_queues(queues: &[QueueView]) -> Policy {
    let mut policy = Policy::default();
    for queue in queues {
        let of = QueuePolicy {
            priority: queue.priority,
            weight: queue.weight,
            paused: false,
            background_permille: queue.background_permille,
        };
        policy.queues.insert(queue.name.clone(), of);
        let running = &queue.limits.running;
        let allowance = Allowance {
            running_soft: running.soft,
            running_hard: running.hard,
            ..Allowance::default()
        };
        if allowance != Allowance::default() {
            policy.queue_limits.insert(queue.name.clone(), allowance);
        }
    }
    policy
}

/// Returns the policy with all changes. Fails for a queue that neither the policy nor a job names.
pub(super) fn changed(
    policy: &Policy,
    changes: &[QueueChange],
    jobs: &[PastJob],
) -> Result<Policy, Failure> {
    let used: BTreeSet<&str> = jobs
        .iter()
        .map(|job| labels::queue_of(&job.queue))
        .collect();
    let mut policy = policy.clone();
    for change in changes {
        let name = &change.name;
        if !policy.queues.contains_key(name) && !used.contains(name.as_str()) {
            let some: Vec<&str> = used.iter().copied().take(5).collect();
            return Err(Failure::usage(
                format!("--queue {name}: neither the lab nor a job has this queue"),
                format!("the jobs have queues such as {}", some.join(", ")),
            ));
        }
        let queue = policy.queues.entry(name.clone()).or_default();
        queue.weight = change.weight.unwrap_or(queue.weight);
        queue.priority = change.priority.unwrap_or(queue.priority);
        if let Some(most) = change.running {
            let limits = policy.queue_limits.entry(name.clone()).or_default();
            limits.running_hard = Some(most);
        }
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        let change: QueueChange = "ci:weight=30,priority=4".parse().unwrap();
        assert_eq!((change.weight, change.priority), (Some(30), Some(4)));
        assert_eq!((change.name.as_str(), change.running), ("ci", None));
        for (text, says) in [
            ("ci", "NAME:weight=N"),
            (":weight=3", "NAME:weight=N"),
            ("ci:weight", "NAME:weight=N"),
            ("ci:weight=x", "'x' is no number"),
            ("ci:weight=0", "1 to 10000"),
            ("ci:priority=10", "0 to 9"),
            ("ci:colour=1", "'colour' is no setting"),
        ] {
            let told = text.parse::<QueueChange>().unwrap_err();
            assert!(told.contains(says), "{told}");
        }
    }

    #[test]
    fn a_change_leaves_what_it_does_not_name() {
        let mut policy = Policy::default();
        let of = QueuePolicy {
            priority: 5,
            weight: 7,
            ..QueuePolicy::default()
        };
        policy.queues.insert("ci".to_owned(), of);
        let change = |text: &str| vec![text.parse::<QueueChange>().unwrap()];
        let heavy = changed(&policy, &change("ci:weight=70,running=2"), &[]).unwrap();
        let ci = &heavy.queues["ci"];
        assert_eq!((ci.weight, ci.priority), (70, 5));
        assert_eq!(heavy.queue_limits["ci"].running_hard, Some(2));
        let refused = changed(&policy, &change("other:weight=70"), &[]).unwrap_err();
        assert!(refused.to_string().contains("--queue other"), "{refused}");
    }
}
