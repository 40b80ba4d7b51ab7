//! The way to the engine's task: events and questions, in order.
//!
//! Sending never waits, so nobody deadlocks with the engine. It is bounded by its senders: submits hold a
//! permit until they are told, hosts have one open request each, and claims are the engine's own.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
};

use fairlead_dispatch::{Engine, Event, Millis};
use tokio::sync::{Notify, oneshot};

/// A question to the engine, answered between two events.
pub(crate) type Question = Box<dyn FnOnce(&Engine, Millis) + Send>;

/// One message.
pub(crate) enum Message {
    /// Something happened.
    Event(Box<Event>),
    /// Somebody asks.
    Question(Question),
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => f.debug_tuple("Event").field(event).finish(),
            Self::Question(_) => f.write_str("Question"),
        }
    }
}

/// The engine's inbox.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    messages: Mutex<VecDeque<Message>>,
    arrived: Notify,
}

impl Mailbox {
    /// Tells the engine.
    pub(crate) fn tell(&self, event: Event) {
        self.push(Message::Event(Box::new(event)));
    }

    /// Asks the engine; `None` when it has stopped.
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, Millis) -> R + Send + 'static,
    ) -> Option<R> {
        let (tell, told) = oneshot::channel();
        self.push(Message::Question(Box::new(move |engine, now| {
            // The asker may be gone; then nobody wants to know.
            let _ = tell.send(question(engine, now));
        })));
        told.await.ok()
    }

    fn push(&self, message: Message) {
        self.messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(message);
        self.arrived.notify_one();
    }

    /// Everything that has arrived, in order.
    pub(crate) fn take(&self) -> VecDeque<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something arrives (or did, since the last `take`).
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}
