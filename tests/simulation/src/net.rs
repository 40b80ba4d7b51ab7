//! Messages of hosts and users to replicas, over lines that lose, delay and double.
//!
//! A sender may give up; the replica then hears of it a little later, or much later.

use std::{future::pending, sync::Arc};

use bytes::Bytes;
use fairlead_scheduler::Replica;
use tokio::sync::oneshot;

use super::{
    process::Process,
    timer::{pause, within},
    world::{Broken, World},
};

/// Sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Host(usize),
    User,
}

/// A request in transit.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// Description for the history.
    pub(super) what: String,
    pub(super) path: String,
    pub(super) body: Bytes,
}

impl Message {
    pub(super) fn new(
        what: impl Into<String>,
        path: impl Into<String>,
        body: &impl serde::Serialize,
    ) -> Self {
        Self {
            what: what.into(),
            path: path.into(),
            body: serde_json::to_vec(body).unwrap_or_default().into(),
        }
    }

    fn request(&self) -> http::Request<Bytes> {
        let request = http::Request::builder()
            .method(http::Method::POST)
            .uri(&self.path)
            .header("content-type", "application/json");
        // All paths are built here from letters and digits, so the request is valid.
        request.body(self.body.clone()).unwrap_or_default()
    }
}

/// Answer to a request.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn is_good(&self) -> bool {
        self.status == 200
    }

    pub(super) fn json<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Returns the code of a refusal.
    pub(super) fn code(&self) -> Option<fairlead_api::ErrorCode> {
        let body: fairlead_api::ErrorBody = self.json()?;
        Some(body.code)
    }

    /// Returns true if it is a list with an item of this code.
    pub(super) fn has_item(&self, code: fairlead_api::ErrorCode) -> bool {
        let items: Option<Vec<serde_json::Value>> = self.json();
        let mut items = items.into_iter().flatten();
        items.any(|item| item["code"] == code.as_str())
    }
}

/// Failure without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nobody listens there. The request was certainly not carried out.
    Refused,
    /// It is unknown whether the request was carried out.
    Lost,
}

type Outcome = Result<Answer, Failed>;

impl World {
    /// Asks the replica in this place, with a timeout.
    pub(super) async fn ask(
        self: &Arc<Self>,
        asker: Asker,
        slot: usize,
        message: Message,
        limit_ms: u64,
    ) -> Outcome {
        let (tell, told) = oneshot::channel();
        let world = Arc::clone(self);
        self.tasks.spawn(async move {
            world.travel(asker, slot, message, tell).await;
        });
        let answered = within(limit_ms, async {
            match told.await {
                Ok(outcome) => outcome,
                // The request is lost, and no answer will come.
                Err(_) => pending().await,
            }
        });
        answered.await.unwrap_or(Err(Failed::Lost))
    }

    fn travel_ms(&self) -> u64 {
        let slow = self.hits(self.faults().message_slow);
        self.chance().within(if slow { 500..=6_000 } else { 0..=8 })
    }

    fn is_cut(&self, asker: Asker, slot: usize) -> bool {
        match asker {
            Asker::Host(host) => self.is_broken(Broken::Line { host, slot }),
            Asker::User => false,
        }
    }

    async fn travel(
        self: Arc<Self>,
        asker: Asker,
        slot: usize,
        message: Message,
        mut tell: oneshot::Sender<Outcome>,
    ) {
        let faults = self.faults();
        let (is_lost, answer_is_lost) = (
            self.hits(faults.request_lost),
            self.hits(faults.answer_lost),
        );
        pause(self.travel_ms()).await;
        if is_lost || self.is_cut(asker, slot) {
            self.note(format_args!("{} to r{slot} is lost", message.what));
            return;
        }
        let Some((process, replica)) = self.slots.get(slot).and_then(super::process::Slot::up)
        else {
            // A machine that is gone does not always refuse.
            if self.chance().hits(700) {
                // The sender may have given up.
                let _ = tell.send(Err(Failed::Refused));
            }
            return;
        };
        process.gate().await;
        if tell.is_closed() && self.chance().hits(500) {
            return;
        }
        self.note(format_args!("{} at {}", message.what, process.name));
        if self.hits(faults.request_doubled) {
            self.check().may_be_repeated(&message.what);
            let twin =
                Arc::clone(&self).twin(Arc::clone(&process), Arc::clone(&replica), message.clone());
            self.tasks.spawn(twin);
        }
        let answer = self.serve(&process, &replica, &message, &mut tell).await;
        drop(replica);
        let name = &process.name;
        let Some(answer) = answer else {
            self.note(format_args!("{} at {name} is given up", message.what));
            return;
        };
        match &answer {
            Ok(answer) => {
                let (what, status) = (&message.what, answer.status);
                self.note(format_args!("{name} answers {what}: {status}"));
            }
            Err(_) => self.note(format_args!("{name} died over {}", message.what)),
        }
        pause(self.travel_ms()).await;
        if !answer_is_lost && !self.is_cut(asker, slot) {
            // The sender may have given up.
            let _ = tell.send(answer);
        }
    }

    /// Sends the same request again, and ignores its answer.
    async fn twin(self: Arc<Self>, process: Arc<Process>, replica: Arc<Replica>, message: Message) {
        let late_ms = self.chance().within(0..=3_000);
        pause(late_ms).await;
        let (mut tell, told) = oneshot::channel();
        let keeps_line = self.chance().hits(500);
        let told = keeps_line.then_some(told);
        process.gate().await;
        self.note(format_args!("{} at {}, again", message.what, process.name));
        self.serve(&process, &replica, &message, &mut tell).await;
        drop(told);
    }

    /// Serves a request. `None`: the sender has given up, and the replica was told.
    async fn serve(
        &self,
        process: &Process,
        replica: &Replica,
        message: &Message,
        tell: &mut oneshot::Sender<Outcome>,
    ) -> Option<Outcome> {
        let half_open = self.chance().hits(100);
        let heard_ms = self
            .chance()
            .within(if half_open { 5_000..=30_000 } else { 0..=50 });
        let hung_up = async {
            tell.closed().await;
            pause(heard_ms).await;
            process.gate().await;
        };
        tokio::select! {
            biased;
            () = process.died.cancelled() => {
                // Either its machine closes the connection, or the machine is gone, too.
                self.chance().hits(500).then_some(Err(Failed::Lost))
            }
            answer = replica.call(message.request()) => {
                process.gate().await;
                Some(Ok(Answer { status: answer.status().as_u16(), body: answer.into_body() }))
            }
            () = hung_up => None,
        }
    }
}
