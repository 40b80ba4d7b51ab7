//! Reports of one job: in order, each repeated until it is answered, even after a long outage.

use std::{collections::VecDeque, time::Duration};

use fairlead_api::{ErrorCode, JobUpdate};
use fairlead_job::Stage;

use super::{backoff::Backoff, failure::Failure, host::Time, told::Word};

/// Time for which a start waits for the scheduler to confirm stage boot.
const BOOT_ANSWER: Duration = Duration::from_secs(5);
/// Time for which stage reports are still tried after the end of the workload. The report of the end follows and says
/// more.
const AFTER_THE_END: Duration = Duration::from_secs(5);

/// Meaning of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The job gets this message.
    Word(Word),
    /// The job is no longer this agent's, for this reason.
    NotOurs(String),
}

/// Reports of one job.
#[derive(Debug)]
pub(super) struct Reports {
    attempt: u16,
    job_token: String,
    /// Reports that are not answered yet.
    waiting: VecDeque<(Stage, JobUpdate)>,
    /// Number of the first of these reports, if it was sent.
    open: Option<u64>,
    /// True if a report was answered.
    begun: bool,
    /// True if a stage report was refused. No other one is sent.
    refused: bool,
    retry_at: Time,
    backoff: Backoff,
    /// End of the start's wait for its answer.
    boot_by: Option<Time>,
    /// End of the tries of stage reports, set when all processes of the job have ended.
    until: Option<Time>,
    /// True if the job knows that no report is tried any more.
    told: bool,
}

impl Reports {
    pub(super) fn new(attempt: u16, job_token: String, seed: u64) -> Self {
        Self {
            attempt,
            job_token,
            waiting: VecDeque::new(),
            open: None,
            begun: false,
            refused: false,
            retry_at: Time::ZERO,
            backoff: Backoff::patient(seed),
            boot_by: None,
            until: None,
            told: false,
        }
    }

    pub(super) fn add(&mut self, now: Time, stage: Stage, more: JobUpdate) {
        if self.refused && stage != Stage::Finish {
            return;
        }
        if stage == Stage::Boot {
            self.boot_by = Some(now + BOOT_ANSWER);
        }
        let update = JobUpdate {
            attempt: Some(self.attempt),
            job_token: Some(self.job_token.clone()),
            job_stage: Some(stage.as_str().to_owned()),
            ..more
        };
        self.waiting.push_back((stage, update));
    }

    /// Notes that all processes of the job have ended.
    pub(super) fn over(&mut self, now: Time) {
        self.until = Some(now + AFTER_THE_END);
    }

    /// Returns the messages for the job that are due by time.
    pub(super) fn wake(&mut self, now: Time) -> Vec<Word> {
        let mut words = Vec::new();
        if self.boot_by.is_some_and(|by| by <= now) {
            self.boot_by = None;
            words.push(Word::GoOn(Stage::Boot));
        }
        let Some(until) = self.until.filter(|_| !self.told) else {
            return words;
        };
        if until <= now {
            self.waiting.clear();
            self.settled();
        }
        if self.waiting.is_empty() {
            self.told = true;
            words.push(Word::Deliver);
        }
        words
    }

    /// Returns the report to send now, with this number.
    pub(super) fn send(&mut self, now: Time, call: u64) -> Option<JobUpdate> {
        if self.open.is_some() || self.retry_at > now {
            return None;
        }
        let (_, update) = self.waiting.front()?;
        self.open = Some(call);
        Some(update.clone())
    }

    /// Returns the next time at which [`Reports::wake`] or [`Reports::send`] has something.
    pub(super) fn wakes_at(&self) -> Option<Time> {
        let retry = (!self.waiting.is_empty() && self.open.is_none()).then_some(self.retry_at);
        let until = self.until.filter(|_| !self.told);
        [self.boot_by, until, retry].into_iter().flatten().min()
    }

    pub(super) fn answered(
        &mut self,
        now: Time,
        call: u64,
        answer: Result<(), Failure>,
    ) -> Option<Heard> {
        if self.open != Some(call) {
            return None;
        }
        if answer.as_ref().is_err_and(|failure| !failure.is_final()) {
            self.open = None;
            self.retry_at = now + self.backoff.step();
            return None;
        }
        self.settled();
        let (stage, _) = self.waiting.pop_front()?;
        if stage == Stage::Finish {
            return Some(Heard::Word(Word::Ended(answer)));
        }
        if stage == Stage::Boot {
            self.boot_by = None;
        }
        if let Err(failure) = answer {
            // The scheduler is already beyond this stage. For the first report it means that the job was put back
            // before its start.
            let is_late = failure.code() == Some(ErrorCode::WrongStage) && self.begun;
            if !is_late {
                self.refused = true;
                self.waiting.clear();
                return Some(Heard::NotOurs(failure.text().to_owned()));
            }
        }
        self.begun = true;
        let is_waited_for = matches!(stage, Stage::Boot | Stage::WaitPeer);
        is_waited_for.then_some(Heard::Word(Word::GoOn(stage)))
    }

    /// Notes that no report is in transit, so that the next may be sent at once.
    fn settled(&mut self) {
        self.open = None;
        self.retry_at = Time::ZERO;
        self.backoff.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn reports() -> Reports {
        Reports::new(1, "token".to_owned(), 7)
    }

    fn refusal(code: ErrorCode) -> Result<(), Failure> {
        Err(Failure::refused(409, Some(code), "no"))
    }

    #[test]
    fn reports_go_out_in_order_and_again_until_they_are_answered() {
        let mut reports = reports();
        reports.add(Time::ZERO, Stage::Boot, JobUpdate::default());
        reports.add(Time::ZERO, Stage::Setup, JobUpdate::default());
        let sent = |update: Option<JobUpdate>| update.and_then(|update| update.job_stage);
        assert_eq!(sent(reports.send(Time::ZERO, 1)).as_deref(), Some("boot"));
        assert_eq!(reports.send(Time::ZERO, 2), None);
        let lost = Err(Failure::lost("nobody there"));
        assert_eq!(reports.answered(Time::ZERO, 1, lost), None);
        assert_eq!(reports.send(Time::ZERO, 3), None);
        let again = reports.wakes_at().unwrap();
        assert!(again < SECOND, "{again:?}");
        assert_eq!(sent(reports.send(again, 4)).as_deref(), Some("boot"));
        let go_on = Some(Heard::Word(Word::GoOn(Stage::Boot)));
        assert_eq!(reports.answered(again, 4, Ok(())), go_on);
        assert_eq!(sent(reports.send(again, 5)).as_deref(), Some("setup"));
        assert_eq!(reports.answered(again, 1, Ok(())), None, "an old answer");
        assert_eq!(reports.answered(again, 5, Ok(())), None);
        assert_eq!(reports.wakes_at(), None);
    }

    #[test]
    fn a_start_waits_for_its_answer_but_not_for_ever() {
        let mut reports = reports();
        reports.add(SECOND, Stage::Boot, JobUpdate::default());
        assert!(reports.send(SECOND, 1).is_some());
        assert_eq!(reports.wake(SECOND), []);
        assert_eq!(reports.wakes_at(), Some(SECOND + BOOT_ANSWER));
        let told = reports.wake(SECOND + BOOT_ANSWER);
        assert_eq!(told, [Word::GoOn(Stage::Boot)]);
    }

    #[test]
    fn only_the_first_report_may_not_come_late() {
        let mut reports = reports();
        reports.add(Time::ZERO, Stage::Boot, JobUpdate::default());
        reports.add(Time::ZERO, Stage::Setup, JobUpdate::default());
        reports.send(Time::ZERO, 1);
        let not_ours = Some(Heard::NotOurs("no".to_owned()));
        let late = || refusal(ErrorCode::WrongStage);
        assert_eq!(reports.answered(Time::ZERO, 1, late()), not_ours);
        assert_eq!(reports.send(Time::ZERO, 2), None, "no other is sent");
        let mut reports = self::reports();
        reports.add(Time::ZERO, Stage::Boot, JobUpdate::default());
        reports.add(Time::ZERO, Stage::Setup, JobUpdate::default());
        reports.send(Time::ZERO, 1);
        reports.answered(Time::ZERO, 1, Ok(()));
        reports.send(Time::ZERO, 2);
        assert_eq!(reports.answered(Time::ZERO, 2, late()), None);
        reports.add(Time::ZERO, Stage::Running, JobUpdate::default());
        reports.send(Time::ZERO, 3);
        let conflict = refusal(ErrorCode::Conflict);
        assert_eq!(reports.answered(Time::ZERO, 3, conflict), not_ours);
    }

    #[test]
    fn an_end_is_reported_when_no_stage_is_tried_any_more() {
        let mut reports = reports();
        reports.add(Time::ZERO, Stage::PostRun, JobUpdate::default());
        reports.send(Time::ZERO, 1);
        reports.over(Time::ZERO);
        assert_eq!(reports.wake(Time::ZERO), []);
        assert_eq!(reports.wakes_at(), Some(AFTER_THE_END));
        assert_eq!(reports.wake(AFTER_THE_END), [Word::Deliver]);
        reports.add(AFTER_THE_END, Stage::Finish, JobUpdate::default());
        assert_eq!(reports.wakes_at(), Some(Time::ZERO), "at once");
        assert!(reports.send(AFTER_THE_END, 2).is_some());
        assert_eq!(reports.answered(AFTER_THE_END, 1, Ok(())), None);
        let ended = Some(Heard::Word(Word::Ended(Ok(()))));
        assert_eq!(reports.answered(AFTER_THE_END, 2, Ok(())), ended);
    }
}
