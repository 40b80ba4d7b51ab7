//! Computes the next state of a cluster's job from its own state and the states that were read of all its jobs.
//!
//! All jobs of a cluster try together, in rounds. The state of the head decides. It notes that all jobs of a round wait
//! for each other (`met`), and from then on they run. Or it goes to the next round, and then no job of the old round
//! begins. Both are a compare-and-set of one document, so they exclude each other. Everything else follows from it,
//! whichever replica checks.

use fairlead_dispatch::Millis;
use fairlead_job::{Backoff, Health, JobId, Stage};
use fairlead_store::{ClusterPlace, JobState, StoredJob};

use crate::{
    attempt::{ended, given_back, to_be_stopped},
    backoff::pause_of,
};

/// A job of the same submit may be stored so much later than another, ms.
const MISSING_MS: u64 = 60_000;
/// How much sooner nodes that had no testbox may have one, when their cluster tries again, ms.
const FIRST_MS: u64 = 3_000;
/// The role whose nodes serve the others: they are stopped when nobody is left to serve.
const SERVER: &str = "server";

/// Why a cluster is over.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Over {
    who: JobId,
    why: String,
    /// It did not end well.
    badly: bool,
}

/// Whether nodes without a testbox are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    None,
    Some,
    /// For longer than the others may wait.
    ForTooLong,
}

/// What was read of a cluster's jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    head: JobId,
    /// The cluster's round.
    round: u32,
    /// The round that its head lets run.
    met: u32,
    /// The last round that its head gave up.
    given_up: u32,
    /// All of them have a testbox and wait for each other.
    all_wait: bool,
    /// Whether some have no testbox, and others wait for them.
    missing: Missing,
    /// How long those that have one wait for them, seconds.
    wait_s: u64,
    /// One ended badly, or was never stored.
    failed: Option<Over>,
    /// One ended well: nobody can begin with it any more.
    succeeded: Option<JobId>,
    /// All nodes but the servers have ended well.
    served: bool,
}

impl View {
    /// `jobs` are those of the cluster, `found` what was read of each. Nobody gives up yet.
    pub fn of(jobs: &[JobId], found: &[Option<StoredJob>], now_ms: u64) -> Self {
        let states: Vec<&JobState> = found.iter().flatten().map(|job| &job.state).collect();
        let places = || states.iter().filter_map(|state| state.cluster.as_ref());
        let round = places().map(|place| place.round).max().unwrap_or(0);
        let head = jobs.first().copied().unwrap_or_default();
        let in_round = |state: &JobState| {
            let place = state.cluster.as_ref();
            place.is_some_and(|place| place.round == round)
        };
        let of_head = states.iter().find(|state| state.job_id == head);
        let of_head = of_head.and_then(|state| state.cluster.as_ref());
        let waits = |state: &&JobState| {
            state.stage == Stage::WaitPeer && !state.stop_asked && in_round(state)
        };
        let others = || states.iter().filter(|state| !serves(state));
        let ended_well =
            |state: &&JobState| state.stage.is_terminal() && state.health == Health::Success;
        Self {
            head,
            round,
            met: of_head.map_or(0, |place| place.met),
            given_up: of_head.map_or(0, |place| place.given_up),
            all_wait: states.len() == jobs.len() && states.iter().all(waits),
            missing: if states.iter().any(|state| state.stage == Stage::Submit)
                && states.iter().any(|state| has_testbox_only(state))
            {
                Missing::Some
            } else {
                Missing::None
            },
            wait_s: places().map(|place| place.wait_s).max().unwrap_or(0),
            failed: failed(jobs, found, now_ms),
            succeeded: states.iter().copied().find(ended_well).map(|s| s.job_id),
            served: states.len() == jobs.len()
                && others().next().is_some()
                && others().all(ended_well),
        }
    }

    /// The cluster's first job, and the round in which some of its jobs have a testbox and others none.
    pub fn partial_round(&self) -> (JobId, Option<u32>) {
        let is_partial = self.missing != Missing::None;
        (self.head, is_partial.then_some(self.round))
    }

    /// The same, knowing since when the missing have been waited for.
    #[must_use]
    pub fn waiting_since(mut self, since: Option<Millis>, now: Millis) -> Self {
        let until_ms = |since: Millis| since.0.saturating_add(self.wait_s.saturating_mul(1000));
        if since.is_some_and(|since| until_ms(since) <= now.0) {
            self.missing = Missing::ForTooLong;
        }
        self
    }

    /// Its head lets this round run.
    fn is_open(&self) -> bool {
        self.met > 0 && self.met == self.round
    }

    /// Why this job, which has not ended, can never run with all its peers.
    fn over(&self, state: &JobState, place: &ClusterPlace) -> Option<Over> {
        if let Some(failed) = &self.failed {
            return Some(failed.clone());
        }
        let who = self.succeeded?;
        // It was let through with those that were quicker.
        let goes_on = place.is_through() || (self.is_open() && place.round == self.round);
        let waits = state.stage == Stage::Submit || !goes_on;
        waits.then(|| Over {
            who,
            why: "has ended already and does not run again".to_owned(),
            badly: false,
        })
    }
}

/// One that ended other than well, or is not there though it should be.
fn failed(jobs: &[JobId], found: &[Option<StoredJob>], now_ms: u64) -> Option<Over> {
    let ended = found.iter().flatten().find(|job| {
        let state = &job.state;
        state.stage.is_terminal() && state.health != Health::Success
    });
    if let Some(job) = ended {
        return Some(Over {
            who: job.state.job_id,
            why: format!("ended with {}", job.state.health),
            badly: true,
        });
    }
    let submit_ms = found.iter().flatten().map(|job| job.state.submit_ms).max();
    let late = submit_ms.is_some_and(|ms| ms.saturating_add(MISSING_MS) <= now_ms);
    let missing = jobs.iter().zip(found).find(|(_, job)| job.is_none());
    missing.filter(|_| late).map(|(who, _)| Over {
        who: *who,
        why: "does not exist".to_owned(),
        badly: true,
    })
}

fn serves(state: &JobState) -> bool {
    let place = state.cluster.as_ref();
    place.is_some_and(|place| place.roles == SERVER)
}

/// Whether it has a testbox and does not run.
fn has_testbox_only(state: &JobState) -> bool {
    let place = state.cluster.as_ref();
    state.stage.is_held() && place.is_some_and(|place| !place.is_through())
}

/// The state of a job after a look at all of its cluster; `None`: as it is.
pub fn next_of(state: &JobState, view: &View, now_ms: u64) -> Option<JobState> {
    let place = state
        .cluster
        .as_ref()
        .filter(|_| !state.stage.is_terminal())?;
    if let Some(over) = view.over(state, place) {
        return end_with(state, place, &over, now_ms);
    }
    if place.round < view.round {
        let goes_on = view.succeeded.is_none();
        return goes_on.then(|| on_to(state, place, view, now_ms));
    }
    if place.round > view.round || place.is_through() {
        let idle = view.served && serves(state) && state.stage == Stage::Running;
        return idle.then(|| served(state, now_ms)).flatten();
    }
    let is_head = state.job_id == view.head;
    if is_head && view.missing == Missing::ForTooLong {
        return Some(give_up(state, now_ms));
    }
    let all_may = if is_head {
        view.all_wait
    } else {
        view.is_open()
    };
    let through = || with_place(state, |place| place.met = place.round);
    (all_may && state.stage == Stage::WaitPeer).then(through)
}

fn with_place(state: &JobState, set: impl FnOnce(&mut ClusterPlace)) -> JobState {
    let mut next = state.clone();
    if let Some(place) = &mut next.cluster {
        set(place);
    }
    next
}

/// The job in the cluster's round: one that runs is told to stop; one that waits goes on waiting, but in a round that
/// was given up, it gives its testbox back.
fn on_to(state: &JobState, place: &ClusterPlace, view: &View, now_ms: u64) -> JobState {
    let next = with_place(state, |place| place.round = view.round);
    if state.stage.is_held() && place.is_through() {
        let reason = "a peer of its cluster must run again, and so must it";
        return stop(&next, Health::AbortWait, reason, now_ms).unwrap_or(next);
    }
    if place.round <= view.given_up {
        return put_back(&next, view.head, now_ms);
    }
    next
}

/// The head when the round is given up: it is the first to go on.
fn give_up(state: &JobState, now_ms: u64) -> JobState {
    let next = with_place(state, |place| {
        place.given_up = place.round;
        place.round = place.round.saturating_add(1);
    });
    put_back(&next, state.job_id, now_ms)
}

/// A job that leaves testboxes to others for a while, so that clusters which want each other's do not wait for ever.
/// All jobs of a cluster pause, also those that had none: they would take what the others gave back. After it, those that
/// had none come first: where one host alone can run them, no peer that could run elsewhere has taken it.
fn put_back(state: &JobState, head: JobId, now_ms: u64) -> JobState {
    let place = state.cluster.as_ref();
    let (round, wait_s) = place.map_or((0, 0), |place| (place.round, place.wait_s));
    let reason = format!(
        "not all nodes of its cluster had a testbox within {wait_s} s: they leave theirs to others for a while"
    );
    let is_held = state.stage.is_held();
    let mut back = if is_held {
        given_back(state, now_ms, &reason)
    } else {
        state.clone()
    };
    if back.stage == Stage::Submit && back.ready {
        let nth = u16::try_from(round).unwrap_or(u16::MAX);
        let usual = Backoff::default();
        let backoff = Backoff {
            // Who does not wait for long does not stay away for long.
            max_s: usual.max_s.min(wait_s),
            ..usual
        };
        let first_ms = if is_held { FIRST_MS } else { 0 };
        let pause_ms = pause_of(head, nth, backoff).saturating_add(first_ms);
        back.ready = false;
        back.start_ms = now_ms.saturating_add(pause_ms).max(1);
    }
    back
}

/// The job told to stop, with the health that it then has; `None`: it is told already.
fn stop(state: &JobState, health: Health, reason: &str, now_ms: u64) -> Option<JobState> {
    let told = to_be_stopped(state, now_ms, reason)?;
    Some(JobState {
        stop_health: Some(health),
        ..told
    })
}

/// A server's work is done when its clients have ended.
fn served(state: &JobState, now_ms: u64) -> Option<JobState> {
    let reason = "all nodes that it served have ended";
    stop(state, Health::Success, reason, now_ms)
}

/// What becomes of a job whose cluster is over.
fn end_with(state: &JobState, place: &ClusterPlace, over: &Over, now_ms: u64) -> Option<JobState> {
    let reason = format!("job {} of its cluster {}", over.who, over.why);
    if state.stage.is_held() && place.is_through() {
        let told = stop(state, Health::AbortWait, &reason, now_ms);
        // It was told to run again: that is over, too.
        return told.or_else(|| {
            let again = place.is_left_behind();
            again.then(|| with_place(state, |place| place.round = place.met))
        });
    }
    // One that failed itself says so, and not that it waits for others.
    let failed_itself = !over.badly && !state.stage.is_held();
    let own = state.attempts.last().filter(|_| failed_itself);
    Some(match own {
        Some(last) => {
            let reason = format!("{}; {reason}", last.reason);
            ended(state, Stage::Finish, last.health, now_ms, &reason)
        }
        None => ended(state, Stage::AbortWait, Health::AbortWait, now_ms, &reason),
    })
}
