//! Typed replies. Every field has a default, because `filter_path` omits empty fields.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};

use crate::{StoreError, Version};

/// Length above which replies are parsed on a thread for blocking work, bytes.
const PARSE_BYTES: usize = 64 << 10;
/// Longest kept text of an error, characters.
const REASON_CHARS: usize = 1_000;
/// Type of the error of an index or cluster that takes no writes.
pub(super) const BLOCK: &str = "cluster_block_exception";

/// Parses a reply.
pub(super) async fn parse<T>(body: bytes::Bytes) -> Result<T, StoreError>
where
    T: DeserializeOwned + Send + 'static,
{
    let parsed = if body.len() < PARSE_BYTES {
        serde_json::from_slice(&body)
    } else {
        aside(move || serde_json::from_slice(&body)).await?
    };
    parsed.map_err(|error| StoreError::Refused {
        reason: format!("cannot parse an answer of Elasticsearch: {error}"),
    })
}

/// Runs long work on a thread for blocking work.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Unavailable {
        reason: error.to_string(),
    })
}

/// Returns `type` and text of an error's body. The body may be anything if a proxy made it.
pub(super) fn error_of(body: &[u8]) -> (String, String) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Wrapped {
        error: Value,
    }
    let wrapped: Wrapped = serde_json::from_slice(body).unwrap_or_default();
    if let Ok(cause) = serde_json::from_value::<Cause>(wrapped.error.clone()) {
        return (cause.kind.clone(), cause.in_words());
    }
    let text = match wrapped.error {
        Value::String(text) => text,
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    (String::new(), text.chars().take(REASON_CHARS).collect())
}

/// Cause of a refusal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cause {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) reason: Option<String>,
    pub(super) caused_by: Option<Box<Cause>>,
    #[serde(rename = "root_cause")]
    pub(super) roots: Vec<Cause>,
}

impl Cause {
    /// Returns the error and its cause as text.
    pub(super) fn in_words(&self) -> String {
        let reason = self.reason.as_deref().unwrap_or("");
        let mut words = format!("{}: {}", self.kind, reason.trim_end_matches(';'));
        let inner = self.caused_by.as_deref().or_else(|| self.roots.first());
        if let Some(reason) = inner.and_then(|cause| cause.reason.as_deref())
            && !words.contains(reason)
        {
            words.push_str("; ");
            words.push_str(reason);
        }
        with_advice(words.chars().take(REASON_CHARS).collect())
    }
}

/// Returns the text, and the way to end the block that it names.
pub(super) fn with_advice(mut words: String) -> String {
    if words.contains("flood-stage") || words.contains("read-only-allow-delete") {
        words.push_str(
            "; a disk of Elasticsearch is nearly full (flood stage): once there is room it goes on by itself",
        );
    }
    words
}

/// Reply of `_bulk`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Bulk {
    pub(super) items: Vec<BulkEntry>,
}

/// One item of a `_bulk` under the name of its action.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BulkEntry {
    Create(BulkItem),
    Delete(BulkItem),
    Index(BulkItem),
    Update(BulkItem),
}

impl BulkEntry {
    pub(super) fn into_item(self) -> BulkItem {
        match self {
            Self::Create(item) | Self::Delete(item) | Self::Index(item) | Self::Update(item) => {
                item
            }
        }
    }
}

/// One item of a `_bulk`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BulkItem {
    pub(super) status: u16,
    #[serde(rename = "_seq_no")]
    pub(super) seq_no: Option<u64>,
    #[serde(rename = "_primary_term")]
    pub(super) primary_term: Option<u64>,
    pub(super) error: Option<Cause>,
    /// Document after an update that asked for it.
    pub(super) get: Option<ItemGet>,
}

/// The document of an item.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ItemGet {
    #[serde(rename = "_source")]
    pub(super) source: Option<Box<RawValue>>,
}

/// Reply of `_mget`.
#[derive(Debug, Deserialize)]
#[serde(bound = "S: DeserializeOwned")]
pub(super) struct Multi<S> {
    #[serde(default = "Vec::new")]
    pub(super) docs: Vec<Got<S>>,
}

/// One document of an `_mget`.
#[derive(Debug, Deserialize)]
#[serde(bound = "S: DeserializeOwned")]
pub(super) struct Got<S> {
    #[serde(default)]
    pub(super) found: bool,
    #[serde(rename = "_source")]
    pub(super) source: Option<S>,
    #[serde(rename = "_seq_no", default)]
    pub(super) seq_no: u64,
    #[serde(rename = "_primary_term", default)]
    pub(super) primary_term: u64,
    pub(super) error: Option<Cause>,
}

impl<S> Got<S> {
    pub(super) fn version(&self) -> Version {
        Version {
            primary_term: self.primary_term,
            seq_no: self.seq_no,
        }
    }
}

/// Reply of `_search`, or one answer of `_msearch`, with the requested aggregations.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "A: DeserializeOwned + Default")]
pub(super) struct Found<A = NoAggregations> {
    pub(super) timed_out: bool,
    #[serde(rename = "_shards")]
    pub(super) shards: Shards,
    pub(super) hits: Hits,
    pub(super) aggregations: A,
    pub(super) status: u16,
    pub(super) error: Option<Cause>,
}

/// No aggregations were requested.
#[derive(Debug, Default, Deserialize)]
pub(super) struct NoAggregations {}

impl<A> Found<A> {
    /// Returns the answer, or an error if it is partial. A partial answer would look like an empty queue.
    pub(super) fn whole(self) -> Result<Self, StoreError> {
        if let Some(error) = &self.error {
            let reason = error.in_words();
            return Err(if self.status >= 500 || self.status == 429 {
                StoreError::Unavailable { reason }
            } else {
                StoreError::Refused { reason }
            });
        }
        self.shards.all_answered()?;
        if self.timed_out {
            return Err(StoreError::Unavailable {
                reason: "a search was cut off by its time limit".to_owned(),
            });
        }
        Ok(self)
    }
}

/// Number of shards that answered.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shards {
    pub(super) total: u64,
    failed: u64,
    failures: Vec<ShardFailure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ShardFailure {
    reason: Cause,
}

impl Shards {
    pub(super) fn all_answered(&self) -> Result<(), StoreError> {
        if self.failed == 0 {
            return Ok(());
        }
        let why = self
            .failures
            .first()
            .map(|failure| failure.reason.in_words());
        Err(StoreError::Unavailable {
            reason: format!(
                "{} shards did not answer: {}",
                self.failed,
                why.unwrap_or_default()
            ),
        })
    }
}

/// Hits of a search.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Hits {
    pub(super) total: Option<Total>,
    pub(super) hits: Vec<Hit>,
}

/// Total number of hits.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Total {
    pub(super) value: u64,
}

/// One document found.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Hit {
    /// Source as text. A document parsed into a tree takes ten times its memory.
    #[serde(rename = "_source")]
    pub(super) source: Box<RawValue>,
    /// Fields from columns, each a list.
    pub(super) fields: Map<String, Value>,
    #[serde(rename = "_seq_no")]
    pub(super) seq_no: u64,
    #[serde(rename = "_primary_term")]
    pub(super) primary_term: u64,
}

impl Hit {
    pub(super) fn version(&self) -> Version {
        Version {
            primary_term: self.primary_term,
            seq_no: self.seq_no,
        }
    }
}

/// Reply of `_msearch`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "A: DeserializeOwned + Default")]
pub(super) struct MultiFound<A> {
    pub(super) responses: Vec<Found<A>>,
}
