//! The jobs of the core from grant to end: start, orders, reports.

use std::time::Duration;

use fairlead_api::Grant;

use super::{
    core::Core,
    event::Action,
    failure::Failure,
    host::{Key, Leftover},
    job::{Held, Takes},
    reports::Heard,
    told::{Stop, Why, Word},
};

/// Time for which a hw box takes no new job while the last one's results are in transfer. The pause keeps the transfer
/// from disturbing the next job. The limit keeps a slow scheduler from idling the box.
const HW_HOLD: Duration = Duration::from_mins(1);
/// Time for which a started agent delivers what an earlier one left before it asks for work.
const LEFTOVER_HOLD: Duration = Duration::from_secs(30);
/// Time for which a job at its limit waits for more time.
const MORE_TIME_ANSWER: Duration = Duration::from_secs(3);

impl Core {
    pub(super) fn adopt(&mut self, left: Vec<Leftover>) {
        let hold_until = self.now + LEFTOVER_HOLD;
        for job in left {
            let seed = self.next_seed();
            let held = Held::left(job, hold_until, self.now, seed);
            self.roster.insert(held);
        }
    }

    /// Starts a job once no earlier attempt of it runs. A newer attempt means that the older one is lost, and both must
    /// never run at once.
    pub(super) fn begin(&mut self, grant: Grant, takes: Takes) {
        let older = self.roster.running_attempts(&grant.job_id);
        for key in &older {
            self.forget(key, "a newer attempt was granted", self.host.grace);
        }
        let seed = self.next_seed();
        let mut job = Held::granted(&grant, takes, self.now, seed);
        if older.is_empty() {
            self.act(Action::Start(grant));
        } else {
            job.waits = Some(grant);
        }
        self.roster.insert(job);
    }

    /// Starts the next attempt of a job after the earlier one has ended.
    fn begin_next(&mut self, job_id: &str) {
        let attempts = self.roster.running_attempts(job_id);
        let Some(next) = attempts.first().and_then(|key| self.roster.get_mut(key)) else {
            return;
        };
        let (key, stop) = (next.key(), next.stop.clone());
        let Some(grant) = next.waits.take() else {
            return;
        };
        self.act(Action::Start(grant));
        if let Some(stop) = stop {
            let word = Word::Stop(stop);
            self.act(Action::Tell { key, word });
        }
    }

    /// Orders a job to stop. Returns false if none of it runs, or if it already has an order that is as strong.
    pub(super) fn order(&mut self, key: &Key, stop: Stop) -> bool {
        let job = self.roster.get_mut(key).filter(|job| job.running);
        let Some(job) = job.filter(|job| stop.overrules(job.stop.as_ref())) else {
            return false;
        };
        job.stop = Some(stop.clone());
        if job.waits.is_none() {
            let (key, word) = (key.clone(), Word::Stop(stop));
            self.act(Action::Tell { key, word });
        }
        true
    }

    pub(super) fn forget(&mut self, key: &Key, reason: &str, grace: Duration) {
        self.order(key, Stop::forget(reason, grace));
    }

    /// Orders all jobs to stop gracefully.
    pub(super) fn order_all(&mut self) {
        let running: Vec<Key> = self.roster.running().map(Held::key).collect();
        for key in running {
            let (why, grace) = (Why::Agent, self.host.grace);
            self.order(&key, Stop { why, grace });
        }
    }

    pub(super) fn reported(&mut self, key: &Key, call: u64, answer: Result<(), Failure>) {
        let Some(job) = self.roster.get_mut(key) else {
            return;
        };
        match job.reports.answered(self.now, call, answer) {
            None => {}
            Some(Heard::Word(word)) => self.act(Action::Tell {
                key: key.clone(),
                word,
            }),
            Some(Heard::NotOurs(reason)) => self.forget(key, &reason, self.host.grace),
        }
    }

    pub(super) fn at_limit(&mut self, key: &Key) {
        if let Some(job) = self.roster.get_mut(key) {
            job.limit_until = Some(self.now + MORE_TIME_ANSWER);
            self.beat_now = true;
        }
    }

    pub(super) fn over(&mut self, key: &Key, faulty: bool) {
        let hold_until = self.host.is_hw().then_some(self.now + HW_HOLD);
        let Some(job) = self.roster.get_mut(key) else {
            return;
        };
        job.over(self.now, hold_until);
        if faulty && job.stop.is_none() {
            // A machine that cannot start jobs (a full disk) must not take job after job.
            let pause = self.pauses.fault.step();
            self.ask_at = self.ask_at.max(self.now + pause);
            self.act(Action::Rest(pause));
        } else {
            self.pauses.fault.reset();
        }
        self.begin_next(&key.0);
    }

    pub(super) fn gone(&mut self, key: &Key) {
        self.roster.remove(key);
        self.begin_next(&key.0);
    }

    /// Sends the due reports, and tells jobs about times that have passed.
    pub(super) fn tell_jobs(&mut self) {
        let keys: Vec<Key> = self.jobs().cloned().collect();
        for key in keys {
            let (now, call) = (self.now, self.next_call());
            let Some(job) = self.roster.get_mut(&key) else {
                continue;
            };
            let mut words = job.reports.wake(now);
            if job.limit_until.take_if(|until| *until <= now).is_some() {
                // Either nobody extended the limit, or no scheduler answered in time.
                words.push(Word::Limit(None));
            }
            if let Some(update) = job.reports.send(now, call) {
                let key = key.clone();
                self.act(Action::Report { key, call, update });
            }
            for word in words {
                let key = key.clone();
                self.act(Action::Tell { key, word });
            }
        }
    }
}
