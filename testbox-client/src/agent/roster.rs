//! The jobs that the agent has, and how much of the host is free. Pure: no clock, no network.
//!
//! A job stays on the roster, and is named to the scheduler, until its end is confirmed. Its memory is
//! free as soon as nothing of it runs.

use std::{collections::BTreeMap, time::Duration};

use fairlead_api::{Grant, HeldJob};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    AgentConfig, Kinds,
    executor::{Stop, StopHandle, Why},
};

/// A hw box takes no new job while the last one's results are on their way, so that the way does not
/// disturb the next; but no longer than this, so that a slow scheduler does not idle it.
pub(crate) const HW_HOLD: Duration = Duration::from_mins(1);
/// How long a started agent tries to deliver what an earlier one left, before it asks for work.
pub(crate) const LEFTOVER_HOLD: Duration = Duration::from_secs(30);

/// Which job: id and attempt.
pub(crate) type Key = (String, u16);

/// One job on the roster.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) named: HeldJob,
    /// Memory that it takes, MB.
    pub(crate) memory_mb: u32,
    /// Whether something of it runs, or may.
    pub(crate) running: bool,
    /// No work is asked for before this time while the job is on the roster.
    pub(crate) hold_until: Option<Instant>,
    pub(crate) stop: StopHandle,
    /// Cancelled when nothing of it runs any more.
    pub(crate) gone: CancellationToken,
    /// When it was granted, if it is to be stopped when no scheduler can be reached.
    pub(crate) cut_off_since: Option<Instant>,
}

/// What the host has to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) free_mb: u32,
    pub(crate) slots: u32,
}

impl Room {
    /// What is left of it when these were granted.
    pub(crate) fn without(self, granted: &[Grant]) -> Self {
        let granted_mb = granted.iter().map(|grant| grant.memory_mb).sum();
        let taken = u32::try_from(granted.len()).unwrap_or(u32::MAX);
        Self {
            free_mb: self.free_mb.saturating_sub(granted_mb),
            slots: self.slots.saturating_sub(taken),
        }
    }

    /// Whether all of `other` is within this.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.free_mb >= other.free_mb && self.slots >= other.slots
    }
}

/// All jobs of the agent.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    jobs: BTreeMap<Key, Held>,
}

impl Roster {
    pub(crate) fn insert(&mut self, job: Held) {
        let key = (job.named.job_id.clone(), job.named.attempt);
        self.jobs.insert(key, job);
    }

    pub(crate) fn get(&self, job_id: &str, attempt: u16) -> Option<&Held> {
        self.jobs.get(&(job_id.to_owned(), attempt))
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Held> {
        self.jobs.remove(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = &Held> {
        self.jobs.values().filter(|job| job.running)
    }

    /// All jobs, as the scheduler wants to hear them.
    pub(crate) fn named(&self) -> Vec<HeldJob> {
        self.jobs.values().map(|job| job.named.clone()).collect()
    }

    /// An attempt of this job that still runs.
    pub(crate) fn running_attempt(&self, job_id: &str) -> Option<&Held> {
        self.running().find(|job| job.named.job_id == job_id)
    }

    /// Nothing of the job runs any more; with `hold_until`, the box rests so long for its delivery.
    pub(crate) fn over(&mut self, job_id: &str, attempt: u16, hold_until: Option<Instant>) {
        if let Some(job) = self.jobs.get_mut(&(job_id.to_owned(), attempt)) {
            job.running = false;
            job.hold_until = hold_until;
            job.cut_off_since = None;
        }
    }

    /// What is free, whether or not it is offered.
    pub(crate) fn free(&self, config: &AgentConfig) -> Room {
        let (mut used_mb, mut count) = (0_u32, 0_u32);
        for job in self.running() {
            used_mb = used_mb.saturating_add(job.memory_mb);
            count += 1;
        }
        let slots = config.slots().saturating_sub(count);
        let free_mb = match config.kinds {
            Kinds::Hw if slots == 0 => 0,
            Kinds::Hw => config.memory_mb,
            Kinds::Host { .. } => config.memory_mb.saturating_sub(used_mb),
        };
        Room { free_mb, slots }
    }

    /// What is offered now; `None`: nothing.
    pub(crate) fn room(&self, config: &AgentConfig, now: Instant) -> Option<Room> {
        let room = self.free(config);
        let held = self.holds().any(|until| until > now);
        (!held && room.free_mb > 0 && room.slots > 0).then_some(room)
    }

    fn holds(&self) -> impl Iterator<Item = Instant> {
        self.jobs.values().filter_map(|job| job.hold_until)
    }

    /// The next moment at which [`Roster::room`] or [`Roster::cut_off`] may change by time alone.
    pub(crate) fn wakes_at(
        &self,
        now: Instant,
        last_contact: Option<Instant>,
        patience: Duration,
    ) -> Option<Instant> {
        let cuts = self.jobs.values().filter_map(|job| job.cut_off_since);
        let cuts = cuts.map(|since| last_contact.map_or(since, |at| at.max(since)) + patience);
        self.holds().filter(|until| *until > now).chain(cuts).min()
    }

    /// Stops the jobs that asked for it, after `patience` without contact. They end unreported: the
    /// scheduler gives them to somebody else.
    pub(crate) fn cut_off(
        &mut self,
        now: Instant,
        last_contact: Option<Instant>,
        patience: Duration,
        grace: Duration,
    ) {
        for job in self.jobs.values_mut() {
            let Some(since) = job.cut_off_since else {
                continue;
            };
            if now >= last_contact.map_or(since, |at| at.max(since)) + patience {
                job.cut_off_since = None;
                job.stop.forget("cut off from every scheduler", grace);
            }
        }
    }

    /// Stops everything that runs, politely.
    pub(crate) fn stop_all(&self, grace: Duration) {
        for job in self.running() {
            job.stop.order(Stop {
                why: Why::Agent,
                grace,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(kinds: Kinds) -> AgentConfig {
        AgentConfig {
            jobs_max: 3,
            ..AgentConfig::new(vec!["x".to_owned()], "h", kinds, 1000, "/tmp")
        }
    }

    fn job(id: &str, memory_mb: u32) -> Held {
        Held {
            named: HeldJob {
                job_id: id.to_owned(),
                attempt: 1,
                claim_token: "t".to_owned(),
            },
            memory_mb,
            running: true,
            hold_until: None,
            stop: StopHandle::new().0,
            gone: CancellationToken::new(),
            cut_off_since: None,
        }
    }

    fn room(free_mb: u32, slots: u32) -> Room {
        Room { free_mb, slots }
    }

    #[test]
    fn a_host_offers_what_its_jobs_leave() {
        let config = config(Kinds::Host { vm: true, dc: true });
        let now = Instant::now();
        let mut roster = Roster::default();
        assert_eq!(roster.room(&config, now), Some(room(1000, 3)));
        roster.insert(job("1", 300));
        roster.insert(job("2", 300));
        assert_eq!(roster.room(&config, now), Some(room(400, 1)));
        roster.insert(job("3", 400));
        assert_eq!(roster.room(&config, now), None);
        roster.over("1", 1, None);
        assert_eq!(roster.room(&config, now), Some(room(300, 1)));
        assert_eq!(roster.named().len(), 3, "an undelivered job is still named");
        roster.remove(&("1".to_owned(), 1));
        assert_eq!(roster.named().len(), 2);
    }

    #[test]
    fn a_hw_box_is_free_or_not() {
        let config = config(Kinds::Hw);
        let now = Instant::now();
        let mut roster = Roster::default();
        assert_eq!(roster.room(&config, now), Some(room(1000, 1)));
        roster.insert(job("1", 0));
        assert_eq!(roster.room(&config, now), None);
        roster.over("1", 1, Some(now + HW_HOLD));
        assert_eq!(roster.room(&config, now), None);
        assert_eq!(roster.wakes_at(now, None, HW_HOLD), Some(now + HW_HOLD));
        assert_eq!(roster.room(&config, now + HW_HOLD), Some(room(1000, 1)));
    }

    #[test]
    fn only_jobs_that_asked_for_it_are_stopped_when_cut_off() {
        let now = Instant::now();
        let patience = Duration::from_secs(40);
        let mut roster = Roster::default();
        roster.insert(job("1", 0));
        roster.insert(Held {
            cut_off_since: Some(now),
            ..job("2", 0)
        });
        let heard = now + Duration::from_secs(10);
        assert_eq!(
            roster.wakes_at(now, Some(heard), patience),
            Some(heard + patience)
        );
        let (handle, orders) = StopHandle::new();
        roster.jobs.get_mut(&("2".to_owned(), 1)).unwrap().stop = handle;
        roster.cut_off(now + patience, Some(heard), patience, patience);
        assert!(orders.borrow().is_none());
        roster.cut_off(heard + patience, Some(heard), patience, patience);
        assert!(orders.borrow().is_some());
        assert_eq!(roster.wakes_at(now, Some(heard), patience), None);
    }
}
