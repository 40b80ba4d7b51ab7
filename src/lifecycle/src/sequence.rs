//! Turns in a sequence: who gets one, what it does to a job, and which jobs are replaced.

use std::collections::BTreeMap;

use fairlead_job::{JobId, Replace, Stage};
use fairlead_store::JobState;

use crate::{
    alarm::{begin, is_ripe},
    parent::is_released,
    shards::taken_out,
};

/// Period of `per_minute`, ms.
const MINUTE_MS: u64 = 60_000;

/// Unfinished members of a sequence.
#[derive(Debug, Clone, Default)]
pub struct Open<'a> {
    /// Members with a turn.
    pub with_turn: BTreeMap<JobId, &'a JobState>,
    /// Members that only wait for a turn, oldest first.
    pub waiting: Vec<&'a JobState>,
    /// Members that wait for something else first, and have no place yet, oldest first.
    pub unripe: Vec<&'a JobState>,
    /// Start times of ended members that had a turn, UTC epoch ms.
    pub begun_ms: Vec<u64>,
}

/// Decision about the next turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    /// Members that get a turn, oldest first.
    pub next: Vec<JobId>,
    /// Time at which the limit per minute allows another turn, UTC epoch ms.
    pub again_ms: Option<u64>,
}

impl Open<'_> {
    /// Returns the members that get a turn at `now_ms`, in the order of submits and within their limits. A member that
    /// must wait blocks those behind it. A member with a turn that has not started counts as started in this minute.
    pub fn turns(&self, now_ms: u64) -> Turns {
        let of_turn = self.with_turn.values().map(|state| state.dispatch_ms);
        let begun_ms = of_turn.chain(self.begun_ms.iter().copied());
        let mut lately_ms: Vec<u64> = begun_ms
            .filter(|ms| *ms > 0 && is_recent(*ms, now_ms))
            .collect();
        lately_ms.sort_unstable();
        let to_begin = |state: &&&JobState| state.stage == Stage::Submit;
        let mut to_begin = self.with_turn.values().filter(to_begin).count();
        let mut turns = Turns::default();
        for state in &self.waiting {
            let beside = self.with_turn.len().saturating_add(turns.next.len());
            if beside >= usize::from(state.sequence_limit.max(1)) {
                break;
            }
            let per_minute = usize::from(state.sequence_per_minute);
            if per_minute > 0 && lately_ms.len().saturating_add(to_begin) >= per_minute {
                // Before the next turn, this many starts must be older than a minute.
                let over = (lately_ms.len() + to_begin).saturating_sub(per_minute);
                let oldest_ms = lately_ms.get(over).copied();
                turns.again_ms = oldest_ms.map(|ms| ms.saturating_add(MINUTE_MS));
                break;
            }
            to_begin = to_begin.saturating_add(1);
            turns.next.push(state.job_id);
        }
        turns
    }

    /// Returns the priority for a member with a turn until it runs: the best among those behind it in its queue.
    /// `None`: its own.
    pub fn raised(&self, state: &JobState) -> Option<i16> {
        let behind = self.waiting.iter().filter(|it| it.queue == state.queue);
        let best = behind.map(|it| it.priority).max()?;
        (state.stage == Stage::Submit && best > state.priority).then_some(best)
    }

    /// Returns the members that the newest placed job with `replace` replaces, with that job. They are all waiting
    /// members of other submits, or the oldest of all until its limit holds.
    pub fn replaced(&self) -> Option<(JobId, Vec<JobId>)> {
        let placed = self.waiting.iter().chain(self.with_turn.values());
        let all: BTreeMap<JobId, (&JobState, bool)> = placed
            .map(|state| (*state, true))
            .chain(self.unripe.iter().map(|state| (*state, false)))
            .map(|(state, is_placed)| (state.job_id, (state, is_placed)))
            .collect();
        let mut newest_first = all.values().rev().copied();
        let replaces =
            |(state, is_placed): &(&JobState, bool)| *is_placed && state.sequence_replace.is_some();
        let (newest, _) = newest_first.find(replaces)?;
        let newest_first = newest_first.map(|(state, _)| state);
        let is_own = |state: &JobState| {
            state.job_id == newest.job_id
                || (!state.submit_id.is_empty() && state.submit_id == newest.submit_id)
        };
        let own = all.values().filter(|(state, _)| is_own(state)).count();
        let kept = match newest.sequence_replace {
            Some(Replace::All) => usize::from(newest.sequence_limit.max(1)).saturating_sub(own),
            Some(Replace::Waiting) | None => 0,
        };
        let others = newest_first.filter(|state| !is_own(state)).skip(kept);
        let replaced: Vec<JobId> = others
            .filter(|state| takes_out(newest.sequence_replace, state))
            .map(|state| state.job_id)
            .collect();
        (!replaced.is_empty()).then_some((newest.job_id, replaced))
    }
}

/// Returns true if a job that started at this time started within the last minute.
pub fn is_recent(begun_ms: u64, now_ms: u64) -> bool {
    begun_ms.saturating_add(MINUTE_MS) > now_ms
}

/// Returns true if a job with this `replace` removes this member.
fn takes_out(replace: Option<Replace>, state: &JobState) -> bool {
    let waits = state.stage == Stage::Submit && !is_released(state);
    match replace {
        None => false,
        Some(Replace::Waiting) => waits,
        Some(Replace::All) => !state.stop_asked,
    }
}

/// Returns the job removed because `newest` replaces it. `None`: it has started, was already told to stop, or has
/// ended.
pub fn replaced_by(state: &JobState, newest: &JobState, now_ms: u64) -> Option<JobState> {
    let reason = format!("replaced by job {} of '{}'", newest.job_id, newest.sequence);
    takes_out(newest.sequence_replace, state)
        .then(|| taken_out(state, now_ms, &reason))
        .flatten()
}

/// Returns the host keys of a job that must run on the host of its predecessor. A job that names other hosts keeps its
/// own.
pub fn kept_on(keys: &[String], host: &str) -> Vec<String> {
    let on_host = |key: &String| match key.split_once('@') {
        Some(("hw", _)) => Some(format!("hw@{host}")),
        Some((_, named)) => (named == host).then(|| key.clone()),
        None if key.starts_with("hw.") => Some(format!("hw@{host}")),
        None => Some(format!("{key}@{host}")),
    };
    let mut kept: Vec<String> = keys.iter().filter_map(on_host).collect();
    kept.sort_unstable();
    kept.dedup();
    if kept.is_empty() { keys.to_vec() } else { kept }
}

/// Returns true if a change of a member may pass on a turn: it ended, or took or left its place.
pub fn may_pass_on(before: &JobState, after: &JobState) -> bool {
    let ends = after.stage.is_terminal() && !before.stage.is_terminal();
    ends || (after.stage == Stage::Submit && is_ripe(before) != is_ripe(after))
}

/// Returns true if a member with a turn waits for other jobs or for a person. A failed try keeps its turn until the
/// next one.
fn has_lapsed(state: &JobState) -> bool {
    let waits_on = state.waits.is_some() || !state.held_by.is_empty();
    state.stage == Stage::Submit && state.sequence_turn && waits_on && !is_released(state)
}

/// Returns the job without the turn that it cannot use now. `None`: it has no turn, or can use it.
pub fn without_turn(state: &JobState) -> Option<JobState> {
    has_lapsed(state).then(|| JobState {
        sequence_turn: false,
        ..state.clone()
    })
}

/// Returns the job with its turn. `None`: it has one, waits for something else, or waits no more.
pub fn with_turn(state: &JobState, host: &str, now_ms: u64) -> Option<JobState> {
    if state.stage != Stage::Submit || state.sequence_turn || !is_ripe(state) {
        return None;
    }
    let mut next = state.clone();
    next.sequence_turn = true;
    if next.sequence_same_host && !host.is_empty() {
        next.host_keys = kept_on(&state.host_keys, host);
    }
    Some(begin(next, now_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_fixtures::state;

    fn member(n: u64) -> JobState {
        JobState {
            sequence: "k".to_owned(),
            sequence_limit: 2,
            submit_id: n.to_string(),
            ready: false,
            ..state(n)
        }
    }

    fn running(n: u64, dispatch_ms: u64) -> JobState {
        JobState {
            stage: Stage::Running,
            sequence_turn: true,
            dispatch_ms,
            ..member(n)
        }
    }

    fn open<'a>(with_turn: &[&'a JobState], waiting: &[&'a JobState]) -> Open<'a> {
        Open {
            with_turn: with_turn.iter().map(|it| (it.job_id, *it)).collect(),
            waiting: waiting.to_vec(),
            ..Open::default()
        }
    }

    fn ids(numbers: &[u64]) -> Vec<JobId> {
        numbers.iter().map(|n| JobId::new(*n)).collect()
    }

    #[test]
    fn as_many_get_a_turn_as_the_first_of_them_allows() {
        let (a, b, c) = (member(1), member(2), member(3));
        let next = |open: Open<'_>| open.turns(9).next;
        assert_eq!(next(open(&[], &[&a, &b, &c])), ids(&[1, 2]));
        let first = running(1, 1);
        assert_eq!(next(open(&[&first], &[&b, &c])), ids(&[2]));
        let second = running(2, 1);
        assert_eq!(next(open(&[&first, &second], &[&c])), []);
        let alone = JobState {
            sequence_limit: 0,
            ..member(2)
        };
        // A member that must be alone blocks those behind it.
        assert_eq!(next(open(&[&first], &[&alone, &c])), []);
        assert_eq!(next(open(&[], &[&alone, &c])), ids(&[2, 3]));
    }

    #[test]
    fn so_many_begin_in_a_minute() {
        let rated = |n| JobState {
            sequence_limit: 100,
            sequence_per_minute: 2,
            ..member(n)
        };
        let (a, b, c) = (rated(11), rated(12), rated(13));
        let waiting = [&a, &b, &c];
        assert_eq!(open(&[], &waiting).turns(70_000).next, ids(&[11, 12]));
        let (old, young) = (running(1, 5_000), running(2, 20_000));
        let turns = open(&[&old, &young], &waiting).turns(64_999);
        assert_eq!((turns.next, turns.again_ms), (vec![], Some(65_000)));
        let turns = open(&[&old, &young], &waiting).turns(65_000);
        assert_eq!((turns.next, turns.again_ms), (ids(&[11]), Some(80_000)));
        // A member that has its turn and waits for a host will start at an unknown time.
        let chosen = JobState {
            sequence_turn: true,
            ..rated(3)
        };
        let turns = open(&[&young, &chosen], &waiting).turns(65_000);
        assert_eq!((turns.next, turns.again_ms), (vec![], Some(80_000)));
        let ended = Open {
            begun_ms: vec![10, 30_000, 40_000],
            ..open(&[], &waiting)
        };
        assert_eq!(ended.turns(65_000).again_ms, Some(90_000));
    }

    #[test]
    fn a_sequence_stands_by_its_best_job() {
        let urgent = JobState {
            priority: 7,
            ..member(2)
        };
        let elsewhere = JobState {
            priority: 9,
            queue: "other".to_owned(),
            ..member(3)
        };
        let first = member(1);
        let both = open(&[&first], &[&urgent, &elsewhere]);
        assert_eq!(both.raised(&first), Some(7));
        assert_eq!(both.raised(&running(1, 1)), None);
        assert_eq!(open(&[&first], &[&elsewhere]).raised(&first), None);
        assert_eq!(open(&[&urgent], &[&first]).raised(&urgent), None);
    }

    #[test]
    fn the_newest_replaces_older_ones_of_other_submits() {
        let replacing = |n, replace| JobState {
            sequence_replace: Some(replace),
            ..member(n)
        };
        let (first, second) = (running(1, 1), member(2));
        let newest = replacing(4, Replace::Waiting);
        let beside = JobState {
            submit_id: newest.submit_id.clone(),
            ..member(3)
        };
        let replaced = open(&[&first], &[&second, &beside, &newest]).replaced();
        assert_eq!(replaced, Some((newest.job_id, ids(&[2]))));
        // Its limit leaves room for one more job, the newest of the others.
        let of_two = replacing(4, Replace::All);
        let replaced = open(&[&first], &[&second, &of_two]).replaced();
        assert_eq!(replaced, Some((of_two.job_id, ids(&[1]))));
        let all = JobState {
            sequence_limit: 0,
            ..replacing(4, Replace::All)
        };
        let replaced = open(&[&first], &[&second, &all]).replaced();
        assert_eq!(replaced, Some((all.job_id, ids(&[2, 1]))));
        let stopped = replaced_by(&first, &all, 9).unwrap();
        assert!(stopped.stop_asked, "{stopped:?}");
        assert_eq!(replaced_by(&stopped, &all, 9), None);
        let cancelled = replaced_by(&second, &newest, 9).unwrap();
        assert_eq!(cancelled.stage, Stage::Cancel);
        assert!(cancelled.reason.contains("replaced by job"));
        assert_eq!(replaced_by(&first, &newest, 9), None);
        // Members that came later are not older.
        let later = member(5);
        let replaced = open(&[], &[&all, &later]).replaced();
        assert_eq!(replaced, None);
        // A member without a place replaces no other, and is replaced itself.
        let unripe = |state| Open {
            unripe: vec![state],
            ..open(&[], &[&second])
        };
        assert_eq!(unripe(&newest).replaced(), None);
        let early = member(1);
        let replaced = Open {
            unripe: vec![&early],
            ..open(&[], &[&newest])
        };
        assert_eq!(replaced.replaced(), Some((newest.job_id, ids(&[1]))));
    }
}
