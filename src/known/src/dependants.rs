//! Jobs that wait for other jobs, by the job that they wait for. It only finds the jobs to check after a change; the
//! store has the truth.

use std::collections::BTreeMap;

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::JobState;
use parking_lot::Mutex;

use fairlead_lifecycle::wait_on::waits_for;

/// Time for which a dependant that seems to wait no more is checked again, ms. A write that the store never
/// acknowledged can be read for a while and then vanish.
pub const VANISHES_MS: u64 = 60_000;

/// Result of a check of a dependant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// It still waits.
    Waits,
    /// It was read as waiting no more.
    SeemsOver,
    /// It waits no more, and the store acknowledged that.
    Over,
}

/// Waiting jobs by the job that they wait for, each with the time since it seems to wait no more.
type Known = BTreeMap<JobId, BTreeMap<JobId, Option<Millis>>>;

/// Jobs that wait for others.
#[derive(Debug, Default)]
pub struct Dependants(Mutex<Known>);

impl Dependants {
    fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        work(&mut self.0.lock())
    }

    /// Adds a job if it waits for others.
    pub fn add(&self, child: &JobState) {
        let on = waits_for(child).map(|on| on.conditions.as_slice());
        for condition in on.unwrap_or_default() {
            self.with(|known| {
                let children = known.entry(condition.job).or_default();
                children.insert(child.job_id, None);
            });
        }
    }

    /// Returns the jobs to check after this job changed, or after the time for another check.
    pub fn of(&self, parent: JobId) -> Vec<JobId> {
        self.with(|known| {
            let children = known.get(&parent);
            children.map_or_else(Vec::new, |children| children.keys().copied().collect())
        })
    }

    /// Returns all jobs that others wait for.
    pub fn parents(&self) -> Vec<JobId> {
        self.with(|known| known.keys().copied().collect())
    }

    /// Notes the result of a check of one dependant.
    pub fn looked(&self, parent: JobId, child: JobId, how: Looked, now: Millis) {
        self.with(|known| {
            let Some(children) = known.get_mut(&parent) else {
                return;
            };
            let Some(since) = children.get_mut(&child) else {
                return;
            };
            match (how, *since) {
                (Looked::Waits, _) => *since = None,
                (Looked::SeemsOver, None) => *since = Some(now),
                (Looked::SeemsOver, Some(at)) if !is_past(at, now) => {}
                (Looked::SeemsOver | Looked::Over, _) => {
                    children.remove(&child);
                }
            }
            if children.is_empty() {
                known.remove(&parent);
            }
        });
    }
}

fn is_past(since: Millis, now: Millis) -> bool {
    since.0.saturating_add(VANISHES_MS) <= now.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use fairlead_dispatch::Millis;
    use fairlead_fixtures::{state, waits};
    use fairlead_job::JobId;
    use fairlead_store::JobState;

    #[test]
    fn what_was_only_read_is_looked_at_again_before_it_is_forgotten() {
        let (parent, child) = (JobId::new(1), JobId::new(9));
        let all = Dependants::default();
        all.add(&JobState {
            waits: Some(waits(&json!({"wait_on": {"1": null}}))),
            ..state(9)
        });
        let looked = |how, now| {
            all.looked(parent, child, how, Millis(now));
            all.of(parent)
        };
        assert_eq!(looked(Looked::SeemsOver, 10), [child]);
        // The earlier read has vanished: the job waits.
        assert_eq!(looked(Looked::Waits, 20), [child]);
        assert_eq!(looked(Looked::SeemsOver, 40), [child]);
        assert_eq!(looked(Looked::SeemsOver, 39 + VANISHES_MS), [child]);
        assert_eq!(looked(Looked::SeemsOver, 40 + VANISHES_MS), []);
        assert_eq!(all.parents(), []);
    }

    #[test]
    fn what_was_acknowledged_is_forgotten_at_once() {
        let all = Dependants::default();
        all.add(&JobState {
            waits: Some(waits(&json!({"wait_on": {"1": null, "2": null}}))),
            ..state(9)
        });
        all.looked(JobId::new(1), JobId::new(9), Looked::Over, Millis(0));
        assert_eq!(all.parents(), [JobId::new(2)]);
    }
}
