//! The engine's inbox: events and questions, in order.
//!
//! Sending never waits, so it cannot deadlock with the engine. The senders bound it: submits hold a permit until they
//! are told, each host has one open request, and claims come from the engine itself. News of many jobs is split into
//! several events, so that none takes the engine long.

use std::{
    collections::VecDeque,
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use fairlead_dispatch::{EVENT_JOBS_MAX, Engine, Event, JobFacts, Millis};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// A question to the engine, answered between two events.
pub type Question = Box<dyn FnOnce(&Engine, Millis) + Send>;

/// One message.
pub enum Message {
    /// An event.
    Event(Box<Event>),
    /// A question.
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
pub struct Mailbox {
    messages: Mutex<VecDeque<Message>>,
    /// Number of messages that have arrived and that the engine has not handled.
    depth: AtomicUsize,
    arrived: Notify,
}

impl Mailbox {
    /// Sends an event to the engine.
    pub fn tell(&self, event: Event) {
        self.push(in_parts(event).map(|part| Message::Event(Box::new(part))));
    }

    /// Asks the engine; `None` if it has stopped.
    pub async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, Millis) -> R + Send + 'static,
    ) -> Option<R> {
        let (tell, told) = oneshot::channel();
        let question = Message::Question(Box::new(move |engine, now| {
            // The asker may be gone; then nobody wants to know.
            let _ = tell.send(question(engine, now));
        }));
        self.push([question]);
        told.await.ok()
    }

    fn push(&self, messages: impl IntoIterator<Item = Message>) {
        let mut all = self.messages.lock();
        let before = all.len();
        all.extend(messages);
        let more = all.len().saturating_sub(before);
        self.depth.fetch_add(more, Ordering::Relaxed);
        drop(all);
        self.arrived.notify_one();
    }

    /// Returns the number of messages that have arrived and that the engine has not handled.
    pub fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Notes that the engine has handled this many of the taken messages.
    pub fn worked_off(&self, messages: usize) {
        self.depth.fetch_sub(messages, Ordering::Relaxed);
    }

    /// Removes and returns all messages, in order.
    pub fn take(&self) -> VecDeque<Message> {
        std::mem::take(&mut *self.messages.lock())
    }

    /// Waits until something arrives (or did, since the last `take`).
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

/// Splits an event into several with a bounded number of jobs each. The jobs of a page come before its end.
fn in_parts(event: Event) -> impl Iterator<Item = Event> {
    let (jobs, last) = match event {
        Event::JobsLearned(jobs) if jobs.len() > EVENT_JOBS_MAX => (jobs, None),
        Event::PullEnded {
            dimension,
            page: Some(mut page),
        } if page.jobs.len() > EVENT_JOBS_MAX => {
            let jobs = std::mem::take(&mut page.jobs);
            let page = Some(page);
            (jobs, Some(Event::PullEnded { dimension, page }))
        }
        other => (Vec::new(), Some(other)),
    };
    let mut jobs = jobs.into_iter();
    let parts = std::iter::from_fn(move || {
        let part: Vec<JobFacts> = jobs.by_ref().take(EVENT_JOBS_MAX).collect();
        (!part.is_empty()).then_some(Event::JobsLearned(part))
    });
    parts.chain(last)
}
