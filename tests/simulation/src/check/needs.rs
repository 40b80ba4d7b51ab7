//! Checks jobs that need others: none begins before those have ended as it wants, and none is given up without a reason.

use fairlead_job::{Condition, Health, Requirement, Stage, Waits};
use fairlead_store::JobState;

use super::{Check, broken};
use crate::world::Violation;

/// Returns the needs of a job. A job that waits for the result of an identical one needs nothing of it.
fn needed(state: &JobState) -> &[Condition] {
    let waits_for_result = state
        .reuse
        .as_ref()
        .is_some_and(|reuse| reuse.joined.is_some());
    match &state.waits {
        Some(Waits::Jobs(on)) if !waits_for_result => &on.conditions,
        _ => &[],
    }
}

impl Check {
    /// Returns the health with which a needed job ended, in truth.
    fn ended_with(&self, condition: &Condition) -> Option<Health> {
        let track = self.history.jobs.get(&condition.job)?;
        let state = &track.state;
        state.stage.is_terminal().then_some(state.health)
    }

    /// Checks a change of a job that waits for others.
    pub(super) fn follows_what_it_needs(
        &mut self,
        before: &JobState,
        after: &JobState,
    ) -> Result<(), Violation> {
        match after.stage {
            Stage::Submit if after.waits.is_none() => self.goes_on_after_others(before),
            Stage::AbortWait => self.is_given_up_for_others(before),
            _ => Ok(()),
        }
    }

    fn goes_on_after_others(&mut self, before: &JobState) -> Result<(), Violation> {
        let needed = needed(before);
        if needed.is_empty() {
            return Ok(());
        }
        let wants_success = |it: &Condition| !it.requirements.is_empty();
        let open = needed.iter().find(|condition| {
            self.ended_with(condition)
                .is_none_or(|health| wants_success(condition) && health != Health::Success)
        });
        let Some(open) = open else {
            self.counts.needed += 1;
            return Ok(());
        };
        broken(
            "I3",
            format!(
                "job {} goes on, and needs job {}, which ended with {:?}",
                before.job_id,
                open.job,
                self.ended_with(open)
            ),
        )
    }

    /// Checks that a job is given up only if one of its needed jobs did not succeed, or does not exist.
    fn is_given_up_for_others(&self, before: &JobState) -> Result<(), Violation> {
        let needed = needed(before);
        let speaks_for_it = |condition: &Condition| {
            let is_there = self.history.jobs.contains_key(&condition.job);
            let wants = |health| {
                condition
                    .requirements
                    .contains(&Requirement::Health(health))
            };
            let fails = |health| wants(Health::Success) && health != Health::Success;
            !is_there || self.ended_with(condition).is_some_and(fails)
        };
        if needed.is_empty() || needed.iter().any(speaks_for_it) {
            return Ok(());
        }
        broken(
            "I3",
            format!(
                "job {} is given up, and no job that it needs failed",
                before.job_id
            ),
        )
    }
}
