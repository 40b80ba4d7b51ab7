//! One job on a box, from its grant to its confirmed end.

use std::sync::Arc;

use fairlead_api::{ErrorCode, PeersAnswer};
use fairlead_job::{Health, Stage};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    agent::Shared,
    client::ANSWER_MS,
    roster::{End, Journal, Key, Stop},
};
use crate::{
    net::{Answer, Message},
    timer::{pause, within},
};

/// How long a start waits for the confirmation of stage boot, ms.
const BOOT_ANSWER_MS: u64 = 5_000;
/// How long reports of stages are still tried when the workload is over, ms.
const AFTER_THE_END_MS: u64 = 5_000;

/// A report of a stage, and who waits for its answer.
struct Report {
    stage: Stage,
    answered: Option<oneshot::Sender<()>>,
}

/// A job on its way.
pub(super) struct Course {
    pub(super) shared: Arc<Shared>,
    pub(super) journal: Journal,
    /// How long the box rests for its delivery, ms.
    pub(super) hold_ms: u64,
}

/// Goes on with a job of an earlier agent: its workload runs on, or its end is to be delivered.
pub(super) async fn resume(shared: Arc<Shared>, journal: Journal) {
    let course = Course {
        shared,
        journal,
        hold_ms: 0,
    };
    course.run(None).await;
}

impl Course {
    fn key(&self) -> Key {
        self.journal.key()
    }

    /// Runs what is left of the job and delivers its end. `after`: an earlier attempt of it that must be
    /// gone first.
    pub(super) async fn run(mut self, after: Option<CancellationToken>) {
        if let Some(earlier) = after {
            earlier.cancelled().await;
        }
        if self.journal.end.is_none() {
            let (reports, reported) = mpsc::unbounded_channel();
            let over = CancellationToken::new();
            let shared = Arc::clone(&self.shared);
            let (key, grant) = (self.key(), self.journal.grant.clone());
            let working = async {
                match self.journal.runs_until_ms {
                    None => self.work(&reports).await,
                    Some(_) => self.workload(&reports).await,
                }
                self.is_over();
                over.cancel();
                drop(reports);
            };
            tokio::join!(working, report_all(&shared, &key, &grant, reported, &over));
        }
        self.deliver().await;
    }

    fn stop(&self) -> Option<Stop> {
        let stop = self
            .shared
            .roster
            .with(&self.key(), |held| held.stop.clone());
        stop.flatten()
    }

    /// Waits for an order to stop.
    async fn stopped(&self) -> Stop {
        loop {
            if let Some(stop) = self.stop() {
                return stop;
            }
            let bell = self
                .shared
                .roster
                .with(&self.key(), |held| Arc::clone(&held.stopped));
            match bell {
                Some(bell) => bell.notified().await,
                None => std::future::pending().await,
            }
        }
    }

    fn note(&mut self, change: impl FnOnce(&mut Journal)) {
        change(&mut self.journal);
        let journal = self.journal.clone();
        self.shared
            .roster
            .with(&self.key(), |held| held.journal = journal);
    }

    /// How a job that was stopped before it ran ends: as ordered, or not at all.
    fn end_unrun(&mut self, stop: &Stop) {
        let end = stop.health.map(|health| End {
            health,
            exit_code: None,
            ran: false,
        });
        self.note(|journal| journal.end = end);
    }

    /// Does the work; what came of it is in the journal. Without an end there: the job is forgotten.
    async fn work(&mut self, reports: &mpsc::UnboundedSender<Report>) {
        let makes_folder_ms = self.shared.world.chance().within(1..=30);
        pause(makes_folder_ms).await;
        let (answered, answer) = oneshot::channel();
        // Nobody listens any more: the job was taken away.
        let _ = reports.send(Report {
            stage: Stage::Boot,
            answered: Some(answered),
        });
        tokio::select! {
            biased;
            _ = within(BOOT_ANSWER_MS, answer) => {}
            _ = self.stopped() => {}
        }
        if let Some(stop) = self.stop() {
            self.end_unrun(&stop);
            return;
        }
        tell(reports, Stage::Setup);
        let prepares_ms = self.shared.world.chance().within(1..=300);
        pause(prepares_ms).await;
        if self.journal.grant.job.contains_key("cluster_jobs") && !self.meet(reports).await {
            return;
        }
        let now_ms = self.shared.world.now_ms();
        let until_ms = now_ms + self.journal.number("run_ms");
        self.note(|journal| journal.runs_until_ms = Some(until_ms));
        self.shared
            .world
            .run_begins(self.shared.host, &self.journal.grant, until_ms);
        tell(reports, Stage::Running);
        self.workload(reports).await;
    }

    /// Waits for its peers; `false`: it is stopped before they come.
    async fn meet(&mut self, reports: &mpsc::UnboundedSender<Report>) -> bool {
        let (answered, answer) = oneshot::channel();
        // Nobody listens any more: the job was taken away.
        let _ = reports.send(Report {
            stage: Stage::WaitPeer,
            answered: Some(answered),
        });
        let shared = Arc::clone(&self.shared);
        let (key, grant) = (self.key(), self.journal.grant.clone());
        let stop = tokio::select! {
            biased;
            stop = self.stopped() => stop,
            open = peers_are_there(&shared, &grant, answer) => match open {
                Ok(()) => return true,
                Err(refused) => {
                    forget(&shared, &key, &refused);
                    self.stopped().await
                }
            },
        };
        self.end_unrun(&stop);
        false
    }

    /// The workload runs to its end, or until it is stopped.
    async fn workload(&mut self, reports: &mpsc::UnboundedSender<Report>) {
        let until_ms = self.journal.runs_until_ms.unwrap_or(0);
        let shared = Arc::clone(&self.shared);
        let stop = tokio::select! {
            biased;
            () = shared.world.timer.until(until_ms) => None,
            stop = self.stopped() => Some(stop),
        };
        let end = match stop {
            None => {
                let exit_code = i32::try_from(self.journal.number("exit")).unwrap_or(1);
                let health = match (self.journal.number("disk_fails"), exit_code) {
                    (0, 0) => Health::Success,
                    (0, _) => Health::Fail,
                    _ => Health::LoadDiskFail,
                };
                Some(End {
                    health,
                    exit_code: Some(exit_code),
                    ran: true,
                })
            }
            Some(stop) => {
                let takes_ms = shared.world.chance().within(0..=stop.grace_ms);
                pause(takes_ms).await;
                // An order that came meanwhile may overrule.
                let stop = self.stop().unwrap_or(stop);
                stop.health.map(|health| End {
                    health,
                    exit_code: Some(143),
                    ran: true,
                })
            }
        };
        shared.world.run_ends(shared.host, &self.key());
        self.note(|journal| journal.end = end);
        if end.is_some() {
            tell(reports, Stage::PostRun);
        }
    }

    /// Nothing of it runs any more.
    fn is_over(&self) {
        let key = self.key();
        let hold_until_ms = match self.hold_ms {
            0 => 0,
            hold_ms => self.shared.world.now_ms() + hold_ms,
        };
        self.shared.roster.with(&key, |held| {
            held.running = false;
            held.hold_until_ms = hold_until_ms;
            held.cut_off_since_ms = None;
            held.gone.cancel();
        });
        // The agent is there as long as its courses.
        let _ = self.shared.freed.send(key);
    }

    /// Brings the end home, and takes the job off the roster.
    async fn deliver(&self) {
        let key = self.key();
        if let Some(end) = self.journal.end {
            let readiness = if end.ran { "uploaded" } else { "norun" };
            let code = end.exit_code.map(|code| format!("&exit_code={code}"));
            let query = format!(
                "&job_health={}&job_data_readiness={readiness}{}",
                end.health,
                code.unwrap_or_default()
            );
            let message = update(&self.shared, &self.journal.grant, Stage::Finish, &query);
            self.shared.world.note(format_args!(
                "{} delivers {} #{}: {}",
                self.shared.plan.name, key.0, key.1, end.health
            ));
            self.shared
                .world
                .check()
                .end_is_reported(&self.journal.grant, end.health);
            let answer = self.shared.reporter.until_answered(&message).await;
            self.shared.world.end_answered(
                self.shared.host,
                &self.journal.grant,
                end.health,
                &answer,
            );
        }
        self.shared.roster.remove(&key);
        // The agent is there as long as its courses.
        let _ = self.shared.freed.send(key);
    }
}

/// Asks until all nodes of the job's cluster are there; a refusal says that it is no longer this box's.
async fn peers_are_there(
    shared: &Shared,
    grant: &fairlead_api::Grant,
    answer: oneshot::Receiver<()>,
) -> Result<(), Answer> {
    // It is closed once the job is no longer ours.
    let _ = answer.await;
    let (id, attempt) = (&grant.job_id, grant.attempt);
    let message = Message {
        what: format!(
            "{} waits for the peers of {id} #{attempt}",
            shared.plan.name
        ),
        path: format!(
            "/scheduler/v1/jobs/{id}/wait_peer?attempt={attempt}&job_token={}",
            grant.job_token
        ),
        body: bytes::Bytes::new(),
    };
    loop {
        let answer = shared.reporter.until_answered(&message).await;
        if !answer.is_good() {
            return Err(answer);
        }
        let open = answer.json::<PeersAnswer>().is_some_and(|peers| peers.open);
        if open {
            return Ok(());
        }
    }
}

fn tell(reports: &mpsc::UnboundedSender<Report>, stage: Stage) {
    // Nobody listens any more: the job was taken away.
    let _ = reports.send(Report {
        stage,
        answered: None,
    });
}

fn update(shared: &Shared, grant: &fairlead_api::Grant, stage: Stage, more: &str) -> Message {
    let (id, attempt) = (&grant.job_id, grant.attempt);
    let path = format!(
        "/scheduler/v1/jobs/{id}/update?attempt={attempt}&job_token={}&job_stage={stage}{more}",
        grant.job_token
    );
    Message {
        what: format!("{} report {id} #{attempt} {stage}", shared.plan.name),
        path,
        body: bytes::Bytes::new(),
    }
}

/// Sends all reports of one job, in order. A refusal means that the job is no longer this box's.
async fn report_all(
    shared: &Shared,
    key: &Key,
    grant: &fairlead_api::Grant,
    mut reports: mpsc::UnboundedReceiver<Report>,
    over: &CancellationToken,
) {
    let sending = async {
        let mut begun = false;
        while let Some(report) = reports.recv().await {
            let message = update(shared, grant, report.stage, "");
            let answer = shared.reporter.until_answered(&message).await;
            let late = answer.code() == Some(ErrorCode::WrongStage) && begun;
            if !answer.is_good() && !late {
                forget(shared, key, &answer);
                return;
            }
            begun = true;
            if let Some(answered) = report.answered {
                // Whoever waited has gone on without.
                let _ = answered.send(());
            }
        }
    };
    let too_late = async {
        over.cancelled().await;
        pause(AFTER_THE_END_MS.min(ANSWER_MS)).await;
    };
    tokio::select! {
        biased;
        () = sending => {}
        () = too_late => {}
    }
}

fn forget(shared: &Shared, key: &Key, answer: &Answer) {
    shared.world.note(format_args!(
        "{} is refused for {} #{}: {} {}",
        shared.plan.name,
        key.0,
        key.1,
        answer.status,
        answer.code().map_or("", ErrorCode::as_str),
    ));
    shared.roster.with(key, |held| {
        held.order(Stop {
            health: None,
            grace_ms: 1_000,
        });
    });
}
