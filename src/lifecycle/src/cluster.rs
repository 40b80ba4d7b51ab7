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

/// Maximum delay between the writes of two jobs of one submit, ms.
const MISSING_MS: u64 = 60_000;
/// Head start of nodes that had no testbox when their cluster tries again, ms.
const FIRST_MS: u64 = 3_000;
/// Role of the nodes that serve the others. They are stopped when no other node is left.
const SERVER: &str = "server";

/// Reason why a cluster is over.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Over {
    who: JobId,
    why: String,
    /// True if the job ended badly.
    badly: bool,
}

/// State of the nodes without a testbox that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    None,
    Some,
    /// They are missing for longer than the others may wait.
    ForTooLong,
}

/// State of a cluster, from a read of all of its jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    head: JobId,
    /// Present round of the cluster.
    round: u32,
    /// Round that its head lets run.
    met: u32,
    /// Last round that its head gave up.
    given_up: u32,
    /// True if all nodes have a testbox and wait for each other.
    all_wait: bool,
    /// Nodes without a testbox that others wait for.
    missing: Missing,
    /// Maximum time that nodes with a testbox wait for the others, seconds.
    wait_s: u64,
    /// A job that ended badly, or was never stored.
    failed: Option<Over>,
    /// A job that ended well. No job can start together with it any more.
    succeeded: Option<JobId>,
    /// True if all nodes except the servers ended well.
    served: bool,
}

impl View {
    /// Returns the view of the cluster's `jobs`. `found` has the stored state of each. No round is given up yet.
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

    /// Returns the cluster's first job, and the round if only some of its jobs have a testbox.
    pub fn partial_round(&self) -> (JobId, Option<u32>) {
        let is_partial = self.missing != Missing::None;
        (self.head, is_partial.then_some(self.round))
    }

    /// Returns the view, completed with the time since when missing nodes are waited for.
    #[must_use]
    pub fn waiting_since(mut self, since: Option<Millis>, now: Millis) -> Self {
        let until_ms = |since: Millis| since.0.saturating_add(self.wait_s.saturating_mul(1000));
        if since.is_some_and(|since| until_ms(since) <= now.0) {
            self.missing = Missing::ForTooLong;
        }
        self
    }

    /// Returns true if its head lets the present round run.
    fn is_open(&self) -> bool {
        self.met > 0 && self.met == self.round
    }

    /// Returns the reason why this running or waiting job can never run with all its peers.
    fn over(&self, state: &JobState, place: &ClusterPlace) -> Option<Over> {
        if let Some(failed) = &self.failed {
            return Some(failed.clone());
        }
        let who = self.succeeded?;
        // The job was let through together with quicker ones.
        let goes_on = place.is_through() || (self.is_open() && place.round == self.round);
        let waits = state.stage == Stage::Submit || !goes_on;
        waits.then(|| Over {
            who,
            why: "has ended already and does not run again".to_owned(),
            badly: false,
        })
    }
}

/// Returns a job that did not end well, or that is missing although it should exist.
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

/// Returns true if the job has a testbox and does not run yet.
fn has_testbox_only(state: &JobState) -> bool {
    let place = state.cluster.as_ref();
    state.stage.is_held() && place.is_some_and(|place| !place.is_through())
}

/// Returns the next state of a job, from the view of its cluster. `None`: unchanged.
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

/// Returns the job in the cluster's round. A running job is told to stop. A waiting job goes on waiting, but returns
/// its testbox if its round was given up.
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

/// Returns the head after it gives up the round. The head goes on first.
fn give_up(state: &JobState, now_ms: u64) -> JobState {
    let next = with_place(state, |place| {
        place.given_up = place.round;
        place.round = place.round.saturating_add(1);
    });
    put_back(&next, state.job_id, now_ms)
}

/// Returns a job that leaves testboxes to others for a while, so that clusters that need each other's testboxes do not
/// deadlock. All jobs of the cluster pause, because those without a testbox would take the returned ones. Afterwards
/// those that had none go first. So no peer with a choice of hosts takes the only host that can run them.
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
            // A short wait is followed by a short pause.
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

/// Tells the job to stop, with the health that it then ends with. `None`: it was already told to.
fn stop(state: &JobState, health: Health, reason: &str, now_ms: u64) -> Option<JobState> {
    let told = to_be_stopped(state, now_ms, reason)?;
    Some(JobState {
        stop_health: Some(health),
        ..told
    })
}

/// Stops a server, because its clients have ended.
fn served(state: &JobState, now_ms: u64) -> Option<JobState> {
    let reason = "all nodes that it served have ended";
    stop(state, Health::Success, reason, now_ms)
}

/// Returns the state of a job whose cluster is over.
fn end_with(state: &JobState, place: &ClusterPlace, over: &Over, now_ms: u64) -> Option<JobState> {
    let reason = format!("job {} of its cluster {}", over.who, over.why);
    if state.stage.is_held() && place.is_through() {
        let told = stop(state, Health::AbortWait, &reason, now_ms);
        // The job was told to run again, which is now void.
        return told.or_else(|| {
            let again = place.is_left_behind();
            again.then(|| with_place(state, |place| place.round = place.met))
        });
    }
    // A job that failed itself reports that, and not that it waits for others.
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
