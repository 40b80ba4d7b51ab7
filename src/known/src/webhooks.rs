//! Webhooks that are to be sent: their stored documents, and which of them to look at.

use std::sync::Arc;

use fairlead_job::{CALLBACK, CallbackEvents, JobId, NOTIFY};
use fairlead_store::{DocKind, JobState};
use serde::{Deserialize, Serialize};

use crate::webhook_places::WebhookPlaces;
use fairlead_base::storage::{controller::Controller, small_doc::SmallDoc};

/// What is told of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It has ended.
    Ended,
    /// The first of its shards failed for good.
    Failing,
    /// It has ended with another health than success.
    Failed,
    /// It has ended with success, and the one before it had failed.
    PassedAgain,
}

impl Event {
    /// Those that are waited for. What an end tells is decided when it is there.
    const AWAITED: [Self; 2] = [Self::Ended, Self::Failing];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Failing => "failing",
            Self::Failed => "failed",
            Self::PassedAgain => "passed_again",
        }
    }
}

/// Which field of a job says who is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    #[default]
    Callback,
    /// The account may say it for its jobs.
    Notify,
}

impl Field {
    pub const ALL: [Self; 2] = [Self::Callback, Self::Notify];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Callback => CALLBACK,
            Self::Notify => NOTIFY,
        }
    }

    /// The events of a job that are told; `None`: none is.
    pub const fn events(self, state: &JobState) -> Option<CallbackEvents> {
        match self {
            Self::Callback => state.callback,
            Self::Notify => state.notify,
        }
    }
}

/// How far a webhook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Its event has not come.
    #[default]
    Waiting,
    /// It is tried, perhaps again.
    Trying,
    /// The receiver took it.
    Sent,
    /// It was tried as often as it is.
    Dead,
    /// Nobody is to be told: no event came that was asked for.
    Skipped,
}

impl Standing {
    /// Whether nothing more happens by itself.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Sent | Self::Dead | Self::Skipped)
    }
}

/// A webhook, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    /// When somebody looks at it again, UTC epoch ms; 0: never.
    pub at_ms: u64,
    pub job_id: JobId,
    pub account: String,
    #[serde(default)]
    pub field: Field,
    /// What is waited for.
    pub event: Event,
    /// Which events were asked for.
    #[serde(default = "ended")]
    pub on: CallbackEvents,
    /// What all tries tell; none: it is not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tells: Option<Event>,
    #[serde(default)]
    pub standing: Standing,
    /// When it was written, or last changed its standing.
    #[serde(default)]
    pub since_ms: u64,
    /// How often it was tried.
    #[serde(default)]
    pub tries: u32,
    /// A replica tries it until then, UTC epoch ms.
    #[serde(default)]
    pub tried_until_ms: u64,
    /// What became of the last try, or why there is none; empty: it was taken.
    #[serde(default)]
    pub problem: String,
}

impl SmallDoc for Webhook {
    const KIND: DocKind = DocKind::Webhook;
}

/// What documents of older versions ask for.
const fn ended() -> CallbackEvents {
    CallbackEvents::ENDED
}

/// Which webhook: the job, the field, and the event that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub job: JobId,
    pub field: Field,
    pub event: Event,
}

impl Key {
    /// One of each field.
    pub fn each(job: JobId, event: Event) -> impl Iterator<Item = Self> {
        let fields = Field::ALL.into_iter();
        fields.map(move |field| Self { job, field, event })
    }
}

/// The document's id, which is also what the receiver knows it by.
pub fn id_of(key: Key) -> String {
    let (job, event) = (key.job, key.event.as_str());
    match key.field {
        Field::Callback => format!("{job}.{event}"),
        Field::Notify => format!("{job}.{NOTIFY}.{event}"),
    }
}

/// The same from an id; `None`: it is none.
pub fn key_of(id: &str) -> Option<Key> {
    let (job, rest) = id.split_once('.')?;
    let (field, event) = match rest.split_once('.') {
        Some((NOTIFY, event)) => (Field::Notify, event),
        Some(_) => return None,
        None => (Field::Callback, rest),
    };
    let mut awaited = Event::AWAITED.into_iter();
    let event = awaited.find(|known| known.as_str() == event)?;
    let job = job.parse().ok()?;
    Some(Key { job, field, event })
}

/// How soon somebody looks at a job whose end nobody told, ms.
pub const CHECK_MS: u64 = 60_000;

impl Webhook {
    /// One whose event is yet to come, or has just come.
    pub fn new(state: &JobState, key: Key, now_ms: u64) -> Self {
        let Key { field, event, .. } = key;
        let wait_ms = if event == Event::Failing { 0 } else { CHECK_MS };
        Self {
            at_ms: now_ms.saturating_add(wait_ms).max(1),
            job_id: state.job_id,
            account: state.account.clone(),
            field,
            event,
            on: field.events(state).unwrap_or_default(),
            tells: None,
            standing: Standing::Waiting,
            since_ms: now_ms,
            tries: 0,
            tried_until_ms: 0,
            problem: String::new(),
        }
    }
}

/// Webhooks to look at soon, by this replica's own clock.
#[derive(Debug)]
pub struct Webhooks {
    pub looks: Arc<Controller<Key>>,
    /// Those whose messages are on their way.
    pub places: Arc<WebhookPlaces>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_says_job_field_and_event() {
        let job: JobId = "2611210236110700000".parse().unwrap();
        for event in Event::AWAITED {
            for key in Key::each(job, event) {
                assert_eq!(key_of(&id_of(key)), Some(key));
            }
        }
        let (field, event) = (Field::Callback, Event::Ended);
        let old = Key { job, field, event };
        assert_eq!(id_of(old), format!("{job}.ended"));
        for bad in [
            "7",
            "7.",
            "x.ended",
            "7.failed",
            "7.other.ended",
            "7.notify.",
        ] {
            assert_eq!(key_of(bad), None, "{bad}");
        }
    }

    /// As it was written before there were notices.
    #[test]
    fn an_older_document_is_the_callback_of_an_end() {
        let stored = json!({"at_ms": 5, "job_id": "7", "account": "a", "event": "ended"});
        let webhook: Webhook = serde_json::from_value(stored).unwrap();
        assert_eq!(webhook.field, Field::Callback);
        assert_eq!((webhook.on, webhook.tells), (CallbackEvents::ENDED, None));
    }
}
