//! Judges each written state of a job by the invariants of docs/invariants.md. Pure.
//!
//! The rules of this folder make such states impossible. A count above zero means a fault of this program, or a write by
//! another one.

use fairlead_job::Stage;
use fairlead_store::JobState;

use fairlead_base::metrics::Invariant;

/// Returns the invariant that a claimed state violates: too little memory, or a host that the job must avoid.
pub fn broken_by_claim(state: &JobState) -> Option<Invariant> {
    let has_cpus = state.host_cpus == 0 || state.cpus <= state.host_cpus;
    let has_room = has_cpus && state.memory_mb <= state.host_memory_mb;
    (!has_room || state.not_on.contains(&state.host)).then_some(Invariant::I3)
}

/// Returns the invariant that the change from `before` to `after` violates, if any.
pub fn broken_by_change(before: &JobState, after: &JobState) -> Option<Invariant> {
    let is_same_attempt = before.attempt == after.attempt;
    if before.stage.is_terminal() {
        let is_same_end =
            is_same_attempt && (before.stage, before.health) == (after.stage, after.health);
        return (!is_same_end).then_some(Invariant::I8);
    }
    let moves = after.stage != before.stage && after.stage != Stage::Submit;
    let goes_back = moves && !before.stage.may_become(after.stage);
    // A testbox that was thought lost may end its attempt while the job waits for the next one.
    let ends_late = before.stage == Stage::Submit
        && after.stage.is_terminal()
        && after.attempt.saturating_add(1) == before.attempt;
    let is_older = after.attempt < before.attempt && !ends_late;
    if is_older || (is_same_attempt && goes_back) {
        return Some(Invariant::I9);
    }
    if !before.stage.is_held() || !after.stage.is_held() {
        return None;
    }
    // A job that was only dispatched is handed to its host's new session under a new token.
    let is_handed_again = (before.stage, after.stage) == (Stage::Dispatch, Stage::Dispatch);
    let is_same_lease =
        before.host == after.host && (before.claim_token == after.claim_token || is_handed_again);
    (!is_same_lease).then_some(Invariant::I2)
}

#[cfg(test)]
mod tests {
    use fairlead_job::Health;

    use super::*;
    use fairlead_fixtures::state;

    fn held(stage: Stage) -> JobState {
        JobState {
            stage,
            host: "h".to_owned(),
            claim_token: "t".to_owned(),
            memory_mb: 8,
            host_memory_mb: 16,
            ..state(1)
        }
    }

    fn ended() -> JobState {
        JobState {
            health: Health::Success,
            ..held(Stage::Finish)
        }
    }

    #[test]
    fn the_usual_life_of_a_job_breaks_no_invariant() {
        let again = JobState {
            attempt: 2,
            ..state(1)
        };
        let to_new_session = JobState {
            claim_token: "u".to_owned(),
            ..held(Stage::Dispatch)
        };
        let changes = vec![
            (state(1), held(Stage::Dispatch)),
            (held(Stage::Dispatch), to_new_session),
            (held(Stage::Dispatch), held(Stage::Boot)),
            (held(Stage::Boot), held(Stage::Running)),
            (held(Stage::Running), again.clone()),
            (held(Stage::Dispatch), state(1)),
            (held(Stage::Running), ended()),
            (ended(), ended()),
            (again.clone(), ended()),
        ];
        for (before, after) in changes {
            assert_eq!(broken_by_change(&before, &after), None, "{after:?}");
        }
        assert_eq!(broken_by_claim(&held(Stage::Dispatch)), None);
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let other = JobState {
            claim_token: "u".to_owned(),
            ..held(Stage::Boot)
        };
        let elsewhere = JobState {
            host: "i".to_owned(),
            ..held(Stage::Dispatch)
        };
        let failed = JobState {
            health: Health::Fail,
            ..ended()
        };
        let again = JobState {
            attempt: 2,
            ..state(1)
        };
        let changes = vec![
            (held(Stage::Dispatch), other, Invariant::I2),
            (held(Stage::Dispatch), elsewhere, Invariant::I2),
            (ended(), failed, Invariant::I8),
            (ended(), state(1), Invariant::I8),
            (held(Stage::Running), held(Stage::Boot), Invariant::I9),
            (again, held(Stage::Boot), Invariant::I9),
        ];
        for (before, after, invariant) in changes {
            assert_eq!(
                broken_by_change(&before, &after),
                Some(invariant),
                "{after:?}"
            );
        }
        let small = JobState {
            host_memory_mb: 4,
            ..held(Stage::Dispatch)
        };
        let unwanted = JobState {
            not_on: vec!["h".to_owned()],
            ..held(Stage::Dispatch)
        };
        for claimed in [small, unwanted] {
            assert_eq!(broken_by_claim(&claimed), Some(Invariant::I3));
        }
    }
}
