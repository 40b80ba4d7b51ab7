//! Sequences whose jobs wait for their turn, by key.

use std::{collections::BTreeSet, sync::Arc};

use fairlead_job::{JobId, Stage};
use fairlead_store::{DocKind, JobState};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;

use fairlead_base::storage::{controller::Controller, small_doc::SmallDoc};

/// Who has a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceTurn {
    pub holder: JobId,
    /// Those that have one beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<JobId>,
    /// When jobs began that are named no more, UTC epoch ms; those of the last minute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun_ms: Vec<u64>,
    /// Where the last of its jobs ran; empty: none did.
    #[serde(default)]
    pub host: String,
    /// Since when, UTC epoch ms.
    #[serde(default)]
    pub at_ms: u64,
}

impl SequenceTurn {
    /// All that have a turn.
    pub fn holders(&self) -> Vec<JobId> {
        let mut holders = vec![self.holder];
        holders.extend(&self.others);
        holders
    }
}

impl SmallDoc for SequenceTurn {
    const KIND: DocKind = DocKind::Sequence;
}

/// One sequence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub account: String,
    pub key: String,
}

impl Key {
    pub fn of(state: &JobState) -> Option<Self> {
        (!state.sequence.is_empty()).then(|| Self {
            account: state.account.clone(),
            key: state.sequence.clone(),
        })
    }

    /// The document's id.
    pub fn id(&self) -> String {
        let text = json!([self.account, self.key]).to_string();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// A number to choose a replica by.
    pub fn number(&self) -> JobId {
        let bytes = *blake3::hash(self.id().as_bytes()).as_bytes();
        let (first, _) = bytes.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        JobId::new(u64::from_le_bytes(*first))
    }
}

/// The sequences with members that wait, as far as is known here. The store has the truth.
#[derive(Debug)]
pub struct Sequences {
    waiting: Mutex<BTreeSet<Key>>,
    /// Those whose turn may pass on, UTC epoch ms.
    pub looks: Arc<Controller<Key>>,
}

impl Sequences {
    pub fn new(looks: Arc<Controller<Key>>) -> Self {
        Self {
            waiting: Mutex::default(),
            looks,
        }
    }

    /// A job was seen: if it waits for its turn, its sequence is looked at.
    pub fn seen(&self, state: &JobState) {
        if state.stage == Stage::Submit
            && !state.sequence_turn
            && let Some(key) = Key::of(state)
        {
            self.note(key, true);
        }
    }

    /// Whether members of this sequence wait, as far as is known.
    pub fn note(&self, key: Key, waits: bool) {
        let mut waiting = self.waiting.lock();
        if waits {
            waiting.insert(key);
        } else {
            waiting.remove(&key);
        }
    }

    /// Those with members that wait.
    pub fn waiting(&self) -> BTreeSet<Key> {
        self.waiting.lock().clone()
    }

    /// A member was stored or ended by this replica: the turn may pass on now.
    pub fn stirred(&self, state: &JobState) {
        if let Some(key) = Key::of(state) {
            self.looks.look_now(key, ());
        }
    }
}
