//! Webhooks that are to be sent: their keys and stored documents.

use fairlead_job::{CALLBACK, CallbackEvents, JobId, NOTIFY};
use fairlead_store::{DocKind, JobState};
use serde::{Deserialize, Serialize};

use fairlead_base::storage::small_doc::SmallDoc;

/// Event of a job that webhooks report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The job ended.
    Ended,
    /// The first of its shards failed for good.
    Failing,
    /// The job ended with a health other than success.
    Failed,
    /// The job succeeded after the previous one had failed.
    PassedAgain,
}

impl Event {
    /// Events that webhooks wait for. The end itself decides which event it reports.
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

/// Job field that names the receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    #[default]
    Callback,
    /// Receiver of notifications. An account may set a default for its jobs.
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

    /// Returns the reported events of a job. `None`: the job has no such field.
    pub const fn events(self, state: &JobState) -> Option<CallbackEvents> {
        match self {
            Self::Callback => state.callback,
            Self::Notify => state.notify,
        }
    }
}

/// Progress of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Its event has not happened yet.
    #[default]
    Waiting,
    /// It is being delivered, perhaps after failed tries.
    Trying,
    /// The receiver accepted it.
    Sent,
    /// All tries failed.
    Dead,
    /// Nothing to report: no requested event happened.
    Skipped,
}

impl Standing {
    /// Returns true if nothing more happens by itself.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Sent | Self::Dead | Self::Skipped)
    }
}

/// Stored webhook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    /// Time of the next check, UTC epoch ms. 0: never.
    pub at_ms: u64,
    pub job_id: JobId,
    pub account: String,
    #[serde(default)]
    pub field: Field,
    /// Event that it waits for.
    pub event: Event,
    /// Requested events.
    #[serde(default = "ended")]
    pub on: CallbackEvents,
    /// Event that all tries report. `None`: not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tells: Option<Event>,
    #[serde(default)]
    pub standing: Standing,
    /// Time of its creation or of its last change of standing, UTC epoch ms.
    #[serde(default)]
    pub since_ms: u64,
    /// Number of tries.
    #[serde(default)]
    pub tries: u32,
    /// End of the present try by a replica, UTC epoch ms.
    #[serde(default)]
    pub tried_until_ms: u64,
    /// Problem of the last try, or the reason why there was none. Empty: it was accepted.
    #[serde(default)]
    pub problem: String,
}

impl SmallDoc for Webhook {
    const KIND: DocKind = DocKind::Webhook;
}

/// Returns the requested events of documents from older versions.
const fn ended() -> CallbackEvents {
    CallbackEvents::ENDED
}

/// Identity of a webhook: job, field, and the awaited event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub job: JobId,
    pub field: Field,
    pub event: Event,
}

impl Key {
    /// Returns the keys of all fields.
    pub fn each(job: JobId, event: Event) -> impl Iterator<Item = Self> {
        let fields = Field::ALL.into_iter();
        fields.map(move |field| Self { job, field, event })
    }
}

/// Returns the id of the document, by which the receiver knows it as well.
pub fn id_of(key: Key) -> String {
    let (job, event) = (key.job, key.event.as_str());
    match key.field {
        Field::Callback => format!("{job}.{event}"),
        Field::Notify => format!("{job}.{NOTIFY}.{event}"),
    }
}

/// Returns the key of an id. `None`: the id is not that of a webhook.
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

/// Delay before a replica checks a job whose end was not reported, ms.
pub const CHECK_MS: u64 = 60_000;

impl Webhook {
    /// Returns a webhook whose event has just happened or is still to come.
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

    /// Checks that a document from before notices is the callback of an end.
    #[test]
    fn an_older_document_is_the_callback_of_an_end() {
        let stored = json!({"at_ms": 5, "job_id": "7", "account": "a", "event": "ended"});
        let webhook: Webhook = serde_json::from_value(stored).unwrap();
        assert_eq!(webhook.field, Field::Callback);
        assert_eq!((webhook.on, webhook.tells), (CallbackEvents::ENDED, None));
    }
}
