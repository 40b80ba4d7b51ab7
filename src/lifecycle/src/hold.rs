//! A job that a person holds back: it waits, whatever else it waits for, until somebody releases it.

use fairlead_job::Stage;
use fairlead_store::JobState;

use crate::{alarm::begin, parent::is_released, shards::check_whole};
use fairlead_base::errors::JobError;

/// Fails unless all of the job waits.
pub fn check_changeable(state: &JobState) -> Result<(), JobError> {
    let id = state.job_id;
    check_whole(state)?;
    if state.stage != Stage::Submit {
        let stage = state.stage;
        return Err(JobError::NotChangeable { id, stage });
    }
    if state.cluster.is_some() {
        return Err(JobError::IsNode(id));
    }
    if is_released(state) {
        return Err(JobError::ShardsWait(id));
    }
    Ok(())
}

/// Returns the waiting job held by `who`. `None`: somebody holds it already.
pub fn held(state: &JobState, who: &str) -> Option<JobState> {
    if !state.held_by.is_empty() {
        return None;
    }
    Some(JobState {
        held_by: who.to_owned(),
        ready: false,
        ..state.clone()
    })
}

/// Returns the held job released. `None`: nobody holds it.
pub fn let_go(state: &JobState, now_ms: u64) -> Option<JobState> {
    if state.held_by.is_empty() {
        return None;
    }
    let free = JobState {
        held_by: String::new(),
        ..state.clone()
    };
    Some(begin(free, now_ms))
}

/// Returns the reason why a held job waits. `None`: nobody holds it.
pub fn why_held(state: &JobState) -> Option<String> {
    let (by, id) = (&state.held_by, state.job_id);
    (!by.is_empty()).then(|| format!("{by} holds it: fairlead release {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_fixtures::state;

    #[test]
    fn a_held_job_is_ready_again_only_when_nothing_else_keeps_it() {
        let ready = JobState {
            ready: true,
            ..state(1)
        };
        let kept = held(&ready, "ann").unwrap();
        assert!(!kept.ready && kept.held_by == "ann");
        assert_eq!(held(&kept, "bob"), None);
        let free = let_go(&kept, 9).unwrap();
        assert_eq!((free.ready, free.ready_ms), (true, 9));
        assert_eq!(let_go(&free, 9), None);
        // A job stays held when its time comes.
        let later = JobState {
            ready: false,
            start_ms: 5,
            ..state(1)
        };
        let kept = held(&later, "ann").unwrap();
        let after = crate::alarm::at_alarm(&kept, 6).unwrap();
        assert_eq!((after.ready, after.start_ms), (false, 0));
        assert!(let_go(&after, 7).unwrap().ready);
        assert!(!let_go(&kept, 3).unwrap().ready);
        // The limit of a job's wait does not count while it is held.
        let limited = JobState {
            queue_timeout_s: 1,
            ready_ms: 1,
            ..ready
        };
        let kept = held(&limited, "ann").unwrap();
        assert_eq!(crate::alarm::at_alarm(&kept, 1_000_000), None);
    }
}
