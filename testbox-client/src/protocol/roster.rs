//! The roster: the agent's jobs, and the host's free room.
//!
//! A job stays on the roster, and is named to the scheduler, until its end is confirmed. Its memory is free as soon as
//! none of its processes runs.

use std::{collections::BTreeMap, time::Duration};

use fairlead_api::HeldJob;

use super::{
    host::{Host, Key, Room, Time},
    job::Held,
};

/// All jobs of the agent.
#[derive(Debug, Default)]
pub(super) struct Roster {
    jobs: BTreeMap<Key, Held>,
}

impl Roster {
    pub(super) fn insert(&mut self, job: Held) {
        self.jobs.insert(job.key(), job);
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Held> {
        self.jobs.get_mut(key)
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Held> {
        self.jobs.remove(key)
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.jobs.contains_key(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.jobs.keys()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Held> {
        self.jobs.values()
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Held> {
        self.jobs.values_mut()
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Held> {
        self.jobs.values().filter(|job| job.running)
    }

    /// Returns all jobs in the form of requests.
    pub(super) fn named(&self) -> Vec<HeldJob> {
        self.jobs.values().map(|job| job.named.clone()).collect()
    }

    /// Returns the attempts of this job whose processes run, or may run.
    pub(super) fn running_attempts(&self, job_id: &str) -> Vec<Key> {
        let same = self.running().filter(|job| job.named.job_id == job_id);
        same.map(Held::key).collect()
    }

    /// Returns the free room, offered or not.
    pub(super) fn free(&self, host: &Host) -> Room {
        let (mut used_mb, mut used_cpus, mut count) = (0_u32, 0_u32, 0_u32);
        for job in self.running() {
            used_mb = used_mb.saturating_add(job.takes.memory_mb);
            used_cpus = used_cpus.saturating_add(job.takes.cpus);
            count += 1;
        }
        let slots = host.says.jobs_max.saturating_sub(count);
        let free_mb = match (host.is_hw(), slots) {
            (true, 0) => 0,
            (true, _) => host.says.memory_mb,
            (false, _) => host.says.memory_mb.saturating_sub(used_mb),
        };
        let cpus = host.says.cpus;
        Room {
            free_mb,
            free_cpus: cpus.map(|cpus| cpus.saturating_sub(used_cpus)),
            slots,
        }
    }

    /// Returns the offered room. `None`: nothing is offered.
    pub(super) fn room(&self, host: &Host, now: Time) -> Option<Room> {
        let room = self.free(host);
        let held = self.holds().any(|until| until > now);
        let has_cpus = room.free_cpus != Some(0);
        (!held && has_cpus && room.free_mb > 0 && room.slots > 0).then_some(room)
    }

    fn holds(&self) -> impl Iterator<Item = Time> {
        self.jobs.values().filter_map(|job| job.hold_until)
    }

    /// Returns the next time after `now` at which [`Roster::room`] may change.
    pub(super) fn hold_ends_at(&self, now: Time) -> Option<Time> {
        self.holds().filter(|until| *until > now).min()
    }

    /// Returns the time at which [`Roster::cut_off`] has the next jobs.
    pub(super) fn cut_off_at(
        &self,
        last_contact: Option<Time>,
        patience: Duration,
    ) -> Option<Time> {
        let since = self.jobs.values().filter_map(|job| job.cut_off_since);
        since
            .map(|since| last_contact.map_or(since, |at| at.max(since)) + patience)
            .min()
    }

    /// Returns the jobs that must not run unknown to their scheduler, after `patience` without contact.
    pub(super) fn cut_off(
        &mut self,
        now: Time,
        last_contact: Option<Time>,
        patience: Duration,
    ) -> Vec<Key> {
        let is_cut = |since: Time| now >= last_contact.map_or(since, |at| at.max(since)) + patience;
        let cut = self
            .jobs
            .values_mut()
            .filter(|job| job.cut_off_since.is_some_and(is_cut));
        let cut = cut.map(|job| {
            job.cut_off_since = None;
            job.key()
        });
        cut.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::job::Takes;
    use crate::testing::{DC, config, grant};

    const HOLD: Duration = Duration::from_mins(1);

    fn host(kinds: crate::Kinds) -> Host {
        let config = crate::AgentConfig {
            jobs_max: 3,
            ..config("http://x", kinds, "/tmp")
        };
        config.host(
            "session",
            "instance",
            "none",
            (Vec::new(), Vec::new()),
            crate::facts::Facts::new(),
        )
    }

    fn job(id: &str, memory_mb: u32) -> Held {
        let grant = grant(id, serde_json::json!({}));
        let takes = Takes { memory_mb, cpus: 1 };
        Held::granted(&grant, takes, Time::ZERO, 7)
    }

    fn room(free_mb: u32, slots: u32) -> Room {
        Room {
            free_mb,
            free_cpus: None,
            slots,
        }
    }

    #[test]
    fn a_host_offers_what_its_jobs_leave() {
        let host = host(DC);
        let now = Time::ZERO;
        let mut roster = Roster::default();
        assert_eq!(roster.room(&host, now), Some(room(1000, 3)));
        roster.insert(job("1", 300));
        roster.insert(job("2", 300));
        assert_eq!(roster.room(&host, now), Some(room(400, 1)));
        roster.insert(job("3", 400));
        assert_eq!(roster.room(&host, now), None);
        let first = ("1".to_owned(), 1);
        roster.get_mut(&first).unwrap().over(now, None);
        assert_eq!(roster.room(&host, now), Some(room(300, 1)));
        assert_eq!(roster.named().len(), 3, "an undelivered job is still named");
        roster.remove(&first);
        assert_eq!(roster.named().len(), 2);
    }

    #[test]
    fn a_host_without_a_free_cpu_offers_nothing() {
        let mut host = host(DC);
        host.says.cpus = Some(2);
        let mut roster = Roster::default();
        roster.insert(job("1", 100));
        let one_free = Room {
            free_cpus: Some(1),
            ..room(900, 2)
        };
        assert_eq!(roster.room(&host, Time::ZERO), Some(one_free));
        roster.insert(job("2", 100));
        assert_eq!(roster.room(&host, Time::ZERO), None);
    }

    #[test]
    fn a_hw_box_is_free_or_not() {
        let host = host(crate::Kinds::Hw);
        let now = Time::ZERO;
        let mut roster = Roster::default();
        assert_eq!(roster.room(&host, now), Some(room(1000, 1)));
        roster.insert(job("1", 0));
        assert_eq!(roster.room(&host, now), None);
        let only = roster.get_mut(&("1".to_owned(), 1)).unwrap();
        only.over(now, Some(now + HOLD));
        assert_eq!(roster.room(&host, now), None);
        assert_eq!(roster.hold_ends_at(now), Some(now + HOLD));
        assert_eq!(roster.room(&host, now + HOLD), Some(room(1000, 1)));
    }

    #[test]
    fn only_jobs_that_asked_for_it_are_stopped_when_cut_off() {
        let now = Time::ZERO;
        let patience = Duration::from_secs(40);
        let mut roster = Roster::default();
        roster.insert(job("1", 0));
        roster.insert(Held {
            cut_off_since: Some(now),
            ..job("2", 0)
        });
        let heard = now + Duration::from_secs(10);
        let contact = Some(heard);
        let cut_at = roster.cut_off_at(contact, patience);
        assert_eq!(cut_at, Some(heard + patience));
        let none = roster.cut_off(now + patience, contact, patience);
        assert_eq!(none, []);
        let cut = roster.cut_off(heard + patience, contact, patience);
        assert_eq!(cut, [("2".to_owned(), 1)]);
        assert_eq!(roster.cut_off_at(contact, patience), None);
    }
}
