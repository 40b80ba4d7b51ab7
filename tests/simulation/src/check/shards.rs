//! Checks jobs that run in parts: each shard is made once, and the whole has one result, which follows from them (I14).

use std::collections::BTreeMap;

use fairlead_job::Health;
use fairlead_store::JobState;

use super::{Check, broken};
use crate::world::Violation;

impl Check {
    /// Checks a new shard: its parent exists, was released, and has not ended.
    pub(super) fn shard_is_made(&self, shard: &JobState) -> Result<(), Violation> {
        let id = shard.job_id;
        let Some(place) = shard.shard else {
            return Ok(());
        };
        let parent = self.history.jobs.get(&place.of).map(|track| &track.state);
        let Some(parent) = parent else {
            return broken("I14", format!("shard {id} has no parent"));
        };
        let sharding = parent.shards.as_deref().cloned().unwrap_or_default();
        if place.has_own_body() {
            // The job is acknowledged only if it counts, which the end of the parent shows.
            let is_right = sharding.is_group() && place.of.behind(place.n) == id;
            return if is_right {
                Ok(())
            } else {
                broken(
                    "I14",
                    format!("job {id} joins {}, which is no group", place.of),
                )
            };
        }
        let is_right = (1..=sharding.count).contains(&place.n)
            && place.of.behind(place.n) == id
            && sharding.released_ms > 0
            && !parent.stage.is_terminal();
        if is_right {
            return Ok(());
        }
        broken(
            "I14",
            format!(
                "shard {id} is made of parent {} in stage {}",
                place.of, parent.stage
            ),
        )
    }

    /// Returns true if this only fills a number of a group under which no job joined.
    pub(super) fn is_nobodys(&self, shard: &JobState) -> bool {
        let place = shard.shard.filter(|place| !place.has_own_body());
        let parent = place.and_then(|place| self.history.jobs.get(&place.of));
        let sharding = parent.and_then(|track| track.state.shards.as_ref());
        sharding.is_some_and(|sharding| sharding.is_group())
    }

    /// Checks a job that was acknowledged as joined: the group, which has ended, must have counted it.
    pub(super) fn is_counted(&self, shard: &JobState) -> Result<(), Violation> {
        let Some(place) = shard.shard.filter(|place| place.has_own_body()) else {
            return Ok(());
        };
        let parent = self.history.jobs.get(&place.of).map(|track| &track.state);
        let count = parent
            .and_then(|parent| parent.shards.as_ref())
            .map_or(0, |it| it.count);
        if place.n <= count {
            return Ok(());
        }
        let id = shard.job_id;
        broken(
            "I14",
            format!(
                "acknowledged job {id} is number {} of a group of {count}",
                place.n
            ),
        )
    }

    /// Checks the end of a parent: all of its shards have ended, and it reports their results.
    pub(super) fn parent_ends(&self, parent: &JobState) -> Result<(), Violation> {
        let id = parent.job_id;
        let sharding = parent.shards.as_deref().cloned().unwrap_or_default();
        if sharding.released_ms == 0 {
            let none = sharding
                .ids(id)
                .all(|id| !self.history.jobs.contains_key(&id));
            return if none && parent.health != Health::Success {
                Ok(())
            } else {
                broken(
                    "I14",
                    format!("job {id} ends with shards that were never released"),
                )
            };
        }
        if sharding.is_uncounted() {
            return if parent.health == Health::Success {
                broken("I14", format!("group {id} is a success without jobs"))
            } else {
                Ok(())
            };
        }
        let mut ends: BTreeMap<Health, u16> = BTreeMap::new();
        for shard in sharding.ids(id) {
            let state = self.history.jobs.get(&shard).map(|track| &track.state);
            let Some(state) = state.filter(|state| state.stage.is_terminal()) else {
                return broken("I14", format!("job {id} ends before its shard {shard}"));
            };
            if !self.is_nobodys(state) {
                *ends.entry(state.health).or_default() += 1;
            }
        }
        if ends != sharding.ends {
            let said = &sharding.ends;
            return broken("I14", format!("job {id} says {said:?} of {ends:?}"));
        }
        let all_good = ends.keys().all(|health| *health == Health::Success);
        let is_good = parent.health == Health::Success;
        if is_good != (all_good && !parent.stop_asked) {
            return broken(
                "I14",
                format!("job {id} ends with {} of {ends:?}", parent.health),
            );
        }
        Ok(())
    }
}
