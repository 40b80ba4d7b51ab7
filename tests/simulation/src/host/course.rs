//! One job on a box, from its grant to its confirmed end.

use std::sync::Arc;

use fairlead_api::{JobUpdate, PeersAnswer};
use fairlead_job::{Health, Stage};
use fairlead_testbox::{
    JobLine,
    protocol::{Key, Stop, Why},
};

use super::{
    agent::Shared,
    journal::{End, Journal},
    refusal,
};
use crate::{net::Message, reuse::exit_code, timer::pause};

/// A job in progress.
pub(super) struct Course {
    pub(super) shared: Arc<Shared>,
    pub(super) journal: Journal,
    pub(super) line: JobLine,
}

/// Returns the health with which an order ends a job. `None`: forget it.
fn health_of(stop: &Stop) -> Option<Health> {
    match &stop.why {
        Why::Order { health, .. } => health.parse().ok(),
        Why::Agent | Why::Forget { .. } => None,
    }
}

impl Course {
    fn key(&self) -> Key {
        self.journal.key()
    }

    /// Runs the rest of the job, and delivers its end.
    pub(super) async fn run(mut self) -> Key {
        if self.journal.end.is_none() {
            match self.journal.runs_until_ms {
                None => self.work().await,
                Some(_) => self.workload().await,
            }
            self.line.over(false).await;
            self.line.may_deliver().await;
        }
        self.deliver().await;
        self.key()
    }

    fn note(&mut self, change: impl FnOnce(&mut Journal)) {
        change(&mut self.journal);
        let journal = self.journal.clone();
        self.shared.disk().insert(self.key(), journal);
    }

    async fn tell(&self, stage: Stage) {
        self.line.report(stage, JobUpdate::default()).await;
    }

    /// Notes the end of a job that was stopped before it ran: as ordered, or none.
    fn end_unrun(&mut self, stop: &Stop) {
        let end = health_of(stop).map(|health| End {
            health,
            exit_code: None,
            ran: false,
        });
        self.note(|journal| journal.end = end);
    }

    /// Runs the job, and leaves the result in the journal. Without an end there, the job is forgotten.
    async fn work(&mut self) {
        let makes_folder_ms = self.shared.world.chance().within(1..=30);
        pause(makes_folder_ms).await;
        self.tell(Stage::Boot).await;
        if let Err(stop) = self.line.goes_on(Stage::Boot).await {
            self.end_unrun(&stop);
            return;
        }
        self.tell(Stage::Setup).await;
        let prepares_ms = self.shared.world.chance().within(1..=300);
        pause(prepares_ms).await;
        if self.journal.grant.job.contains_key("cluster_jobs") && !self.meet().await {
            return;
        }
        let now_ms = self.shared.world.now_ms();
        let until_ms = now_ms + self.journal.number("run_ms");
        self.note(|journal| journal.runs_until_ms = Some(until_ms));
        self.shared
            .world
            .run_begins(self.shared.host, &self.journal.grant, until_ms);
        self.tell(Stage::Running).await;
        self.workload().await;
    }

    /// Waits for its peers. Returns false if it is stopped before they come.
    async fn meet(&mut self) -> bool {
        self.tell(Stage::WaitPeer).await;
        let mut line = self.line.clone();
        let met = tokio::select! {
            biased;
            stop = self.line.stopped() => Err(stop),
            met = peers_are_there(&self.shared, &self.journal, &mut line) => met,
        };
        met.map_err(|stop| self.end_unrun(&stop)).is_ok()
    }

    /// Runs the workload to its end, or until it is stopped.
    async fn workload(&mut self) {
        let until_ms = self.journal.runs_until_ms.unwrap_or(0);
        let shared = Arc::clone(&self.shared);
        let stop = tokio::select! {
            biased;
            () = shared.world.timer.until(until_ms) => None,
            stop = self.line.stopped() => Some(stop),
        };
        let end = match stop {
            None => {
                let grant = &self.journal.grant;
                let is_poisoned = shared.plan.is_poisoned;
                let exit_code = exit_code(&grant.job, &grant.job_id, grant.attempt, is_poisoned);
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
                let grace_ms = u64::try_from(stop.grace.as_millis()).unwrap_or(u64::MAX);
                let takes_ms = shared.world.chance().within(0..=grace_ms);
                pause(takes_ms).await;
                // A later order may be stronger.
                let stop = self.line.stop().unwrap_or(stop);
                health_of(&stop).map(|health| End {
                    health,
                    exit_code: Some(143),
                    ran: true,
                })
            }
        };
        shared.world.run_ends(shared.host, &self.key());
        self.note(|journal| journal.end = end);
        if end.is_some() {
            self.tell(Stage::PostRun).await;
        }
    }

    /// Delivers the end.
    async fn deliver(&mut self) {
        let Some(end) = self.journal.end else {
            return;
        };
        let (shared, (id, attempt)) = (&self.shared, self.key());
        shared.world.note(format_args!(
            "{} delivers {id} #{attempt}: {}",
            shared.plan.name, end.health
        ));
        let grant = &self.journal.grant;
        shared.world.check().end_is_reported(grant, end.health);
        let readiness = if end.ran { "uploaded" } else { "norun" };
        let more = JobUpdate {
            job_health: Some(end.health.as_str().to_owned()),
            job_data_readiness: Some(readiness.to_owned()),
            exit_code: end.exit_code,
            ..JobUpdate::default()
        };
        // With any answer, nothing more must be done.
        let _ = self.line.end(more).await;
    }
}

/// Asks until all nodes of the job's cluster are ready.
async fn peers_are_there(
    shared: &Shared,
    journal: &Journal,
    line: &mut JobLine,
) -> Result<(), Stop> {
    line.goes_on(Stage::WaitPeer).await?;
    let (id, attempt) = journal.key();
    let message = Message {
        what: format!(
            "{} waits for the peers of {id} #{attempt}",
            shared.plan.name
        ),
        path: format!(
            "/scheduler/v1/jobs/{id}/wait_peer?attempt={attempt}&job_token={}",
            journal.grant.job_token
        ),
        body: bytes::Bytes::new(),
    };
    loop {
        let answer = shared.reporter.until_answered(&message).await;
        if !answer.is_good() {
            return Err(line.refused(refusal(&answer).text().to_owned()).await);
        }
        let open = answer.json::<PeersAnswer>().is_some_and(|peers| peers.open);
        if open {
            return Ok(());
        }
    }
}
