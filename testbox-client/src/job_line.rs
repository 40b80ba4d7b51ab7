//! Connects a job with the loop of its agent: the job reports its progress, and receives orders.

use std::{future::pending, time::Duration};

use fairlead_api::JobUpdate;
use fairlead_job::Stage;
use tokio::sync::{mpsc, watch};

use crate::protocol::{Event, Failure, Key, Stop, Told};

/// A job's connection to the core. Clones belong to the same job.
#[derive(Debug, Clone)]
pub struct JobLine {
    key: Key,
    events: mpsc::Sender<Event>,
    told: watch::Receiver<Told>,
}

impl JobLine {
    /// Creates the connection of a job to the reader of `events`, with the sender by which the job is told.
    pub fn new(key: Key, events: mpsc::Sender<Event>) -> (watch::Sender<Told>, Self) {
        let (teller, told) = watch::channel(Told::default());
        (teller, Self { key, events, told })
    }

    /// Returns everything that the job was told.
    pub fn told(&mut self) -> &mut watch::Receiver<Told> {
        &mut self.told
    }

    /// Returns the current order to stop.
    pub fn stop(&self) -> Option<Stop> {
        self.told.borrow().stop.clone()
    }

    async fn say(&self, event: impl FnOnce(Key) -> Event) {
        // The receiver is gone if the agent has ended.
        let _ = self.events.send(event(self.key.clone())).await;
    }

    /// Returns once `found` accepts something that the job was told. It never returns if nobody tells it any more.
    async fn hears<T>(&mut self, mut found: impl FnMut(&Told) -> Option<T>) -> T {
        let mut value = None;
        let heard = self.told.wait_for(|told| {
            value = found(told);
            value.is_some()
        });
        let is_told = heard.await.is_ok();
        match value {
            Some(value) if is_told => value,
            _ => pending().await,
        }
    }

    /// Reports that the job reached this stage, with `more` data.
    pub async fn report(&self, stage: Stage, more: JobUpdate) {
        self.say(|key| Event::Stage {
            key,
            stage,
            more: Box::new(more),
        })
        .await;
    }

    /// Waits for an order to stop.
    pub async fn stopped(&mut self) -> Stop {
        self.hears(|told| told.stop.clone()).await
    }

    /// Waits until the job need not wait for the report of this stage any more. The error is an order to stop.
    pub async fn goes_on(&mut self, stage: Stage) -> Result<(), Stop> {
        self.hears(|told| match &told.stop {
            Some(stop) => Some(Err(stop.clone())),
            None => (told.go_on == Some(stage)).then_some(Ok(())),
        })
        .await
    }

    /// Reports that another request for the job was refused, and waits for the resulting order to stop.
    pub async fn refused(&mut self, reason: String) -> Stop {
        self.say(|key| Event::Refused { key, reason }).await;
        self.stopped().await
    }

    /// Asks for more time for a job at its limit. `None`: no more.
    pub async fn more_time(&mut self) -> Option<Duration> {
        let (before, _) = self.told.borrow().limit;
        self.say(|key| Event::AtLimit { key }).await;
        self.hears(|told| (told.limit.0 != before).then_some(told.limit.1))
            .await
    }

    /// Reports that all processes of the job have ended. `faulty`: this machine could not start it.
    pub async fn over(&self, faulty: bool) {
        self.say(|key| Event::Over { key, faulty }).await;
    }

    /// Waits until the job's results may be delivered.
    pub async fn may_deliver(&mut self) {
        self.hears(|told| told.deliver.then_some(())).await;
    }

    /// Reports the end of the job, and waits for the result of that report.
    pub async fn end(&mut self, more: JobUpdate) -> Result<(), Failure> {
        self.report(Stage::Finish, more).await;
        self.hears(|told| told.ended.clone()).await
    }
}
