//! Handles the answers to requests for work and to heartbeats.

use std::time::Duration;

use fairlead_api::{ConsumeAnswer, ErrorCode, Grant, HeartbeatAnswer, Renewal, StopOrder};

use super::{
    core::{Ask, Core, Phase},
    event::Action,
    failure::Failure,
    host::Time,
    job::Takes,
    told::{Stop, Why, Word},
};

/// Maximum grace period of an order.
const GRACE_MAX: Duration = Duration::from_hours(1);
/// HTTP status of all conflicts.
const CONFLICT: u16 = 409;

impl Core {
    pub(super) fn work_answered(&mut self, call: u64, answer: Result<ConsumeAnswer, Failure>) {
        let is_it = |open: &mut Ask| open.call == call;
        if let Some(older) = self.older.take_if(is_it) {
            self.older_answered(older.sent, answer);
        } else if let Some(ask) = self.ask.take_if(is_it) {
            match answer {
                Ok(answer) => self.take_answer(ask.sent, answer),
                Err(failure) => self.not_answered(ask, failure),
            }
        }
    }

    /// Takes in the answer to a request that was replaced meanwhile.
    fn older_answered(&mut self, sent: Time, answer: Result<ConsumeAnswer, Failure>) {
        match answer {
            Ok(answer) => {
                // The scheduler subtracts these jobs from the offer of the open request.
                if let Some(open) = &mut self.ask {
                    open.room = open.room.without(&answer.jobs);
                }
                self.take_answer(sent, answer);
            }
            // A conflict shows that the newer request arrived first: nothing was granted.
            Err(failure) if failure.status == Some(CONFLICT) => {}
            Err(failure) => {
                self.failed(failure);
                self.ask_anew = true;
            }
        }
    }

    fn take_answer(&mut self, sent: Time, answer: ConsumeAnswer) {
        self.heard(sent, answer.lease_ms, answer.heartbeat_ms);
        self.pauses.ask.reset();
        self.pauses.conflict.reset();
        let orders = answer.stop.len();
        let is_news = self.obey(answer.stop) || !answer.jobs.is_empty();
        if is_news || orders == 0 {
            self.pauses.stale.reset();
        } else {
            // The scheduler answers at once while a request names a job that it wants stopped. Such a job may have
            // ended, with only its last report in transit.
            let pause = self.pauses.stale.step();
            self.ask_at = self.ask_at.max(self.now + pause);
        }
        self.take(answer.jobs);
        if self.host.once && self.is_busy() {
            self.hang_up(Phase::Served);
        }
    }

    fn not_answered(&mut self, ask: Ask, failure: Failure) {
        let (status, code) = (failure.status, failure.code);
        if failure.is_final && status != Some(CONFLICT) && !self.contact.ever {
            self.act(Action::Unwelcome(failure));
        } else {
            self.failed(failure);
        }
        let pause = if code == Some(ErrorCode::HostConflict) {
            self.pauses.conflict.step()
        } else {
            self.pauses.ask.step()
        };
        self.ask_at = self.now + pause;
        if code == Some(ErrorCode::SessionOver) {
            // The scheduler has since heard of another session. It belongs to another agent of this name, or to a
            // delayed request of an earlier start of this one. Asking again in the same session would be refused
            // forever.
            self.session = None;
            self.number = 0;
            self.act(Action::NewSession);
        }
        // A conflict shows that this number is too old: only a new one can help.
        if status != Some(CONFLICT) {
            self.unanswered = Some((ask.request, ask.room));
        }
    }

    pub(super) fn beaten(&mut self, call: u64, answer: Result<HeartbeatAnswer, Failure>) {
        let Some((_, sent)) = self.beat.take_if(|(open, _)| *open == call) else {
            return;
        };
        match answer {
            Ok(answer) => {
                self.heard(sent, answer.lease_ms, answer.heartbeat_ms);
                self.pauses.beat.reset();
                self.beat_at = sent + self.contact.heartbeat;
                self.obey(answer.stop);
                self.tell_limits(&answer.renewed);
            }
            Err(failure) => {
                self.failed(failure);
                let pause = self.pauses.beat.step();
                self.beat_at = self.now + pause.min(self.contact.heartbeat);
            }
        }
    }

    fn heard(&mut self, sent: Time, lease_ms: u64, heartbeat_ms: u64) {
        if self.contact.answered(sent, lease_ms, heartbeat_ms) {
            self.act(Action::Found);
        }
    }

    fn failed(&mut self, failure: Failure) {
        if failure.status.is_some() {
            // The scheduler is reachable.
            self.act(Action::Refused(failure));
        } else if self.contact.failed() {
            self.act(Action::Lost(failure));
        }
    }

    /// Takes each job that fits. The next request does not name the others, so they go back.
    fn take(&mut self, grants: Vec<Grant>) {
        for grant in grants {
            if self.roster.has(&(grant.job_id.clone(), grant.attempt)) {
                // The agent already has this job.
                continue;
            }
            let room = self.free();
            let takes = if self.host.is_hw() {
                Takes::default()
            } else {
                Takes::of(&grant)
            };
            let has_cpus = room.free_cpus.is_none_or(|free| takes.cpus <= free);
            if room.slots == 0 || takes.memory_mb > room.free_mb || !has_cpus {
                self.act(Action::TurnAway { grant, room });
            } else {
                self.begin(grant, takes);
            }
        }
    }

    /// Passes orders on to their jobs, unless these are gone. Returns true if any order was new.
    fn obey(&mut self, orders: Vec<StopOrder>) -> bool {
        let mut is_news = false;
        for order in orders {
            let key = (order.job_id, order.attempt);
            let grace = Duration::from_secs(u64::from(order.grace_s)).min(GRACE_MAX);
            let stop = if order.health.is_empty() {
                Stop::forget(&order.reason, grace)
            } else {
                let why = Why::Order {
                    health: order.health,
                    reason: order.reason,
                };
                Stop { why, grace }
            };
            is_news |= self.order(&key, stop);
        }
        is_news
    }

    /// Tells the jobs at their limits the time that users have added. The answered heartbeat named these jobs: a job
    /// that reaches its limit triggers a new one.
    fn tell_limits(&mut self, renewed: &[Renewal]) {
        let waiting = self
            .roster
            .all_mut()
            .filter_map(|job| job.limit_until.take().map(|_| job.key()));
        for key in waiting.collect::<Vec<_>>() {
            let left = renewed
                .iter()
                .find(|one| (one.job_id.as_str(), one.attempt) == (key.0.as_str(), key.1));
            let left = left.map(|renewal| Duration::from_secs(renewal.left_s));
            let word = Word::Limit(left.filter(|left| !left.is_zero()));
            self.act(Action::Tell { key, word });
        }
    }
}
