//! Sequences whose jobs wait for their turn, by key.

use std::{collections::BTreeSet, sync::Arc};

use fairlead_job::{JobId, Stage};
use fairlead_store::{DocKind, JobState};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;

use fairlead_base::storage::{controller::Controller, small_doc::SmallDoc};

/// Holders of the turns of a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceTurn {
    pub holder: JobId,
    /// Other jobs that have a turn at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<JobId>,
    /// Start times of jobs that are no longer named, UTC epoch ms. Only the last minute is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun_ms: Vec<u64>,
    /// Host of its last job. Empty: none ran.
    #[serde(default)]
    pub host: String,
    /// Time of the present state, UTC epoch ms.
    #[serde(default)]
    pub at_ms: u64,
}

impl SequenceTurn {
    /// Returns all jobs that have a turn.
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

    /// Returns the id of the document.
    pub fn id(&self) -> String {
        let text = json!([self.account, self.key]).to_string();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// Returns a number for the choice of a replica.
    pub fn number(&self) -> JobId {
        let bytes = *blake3::hash(self.id().as_bytes()).as_bytes();
        let (first, _) = bytes.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        JobId::new(u64::from_le_bytes(*first))
    }
}

/// Sequences with waiting members, as far as known here. The store is authoritative.
#[derive(Debug)]
pub struct Sequences {
    waiting: Mutex<BTreeSet<Key>>,
    /// Sequences whose turn may pass on, by the time of the next check, UTC epoch ms.
    pub looks: Arc<Controller<Key>>,
}

impl Sequences {
    pub fn new(looks: Arc<Controller<Key>>) -> Self {
        Self {
            waiting: Mutex::default(),
            looks,
        }
    }

    /// Notes the state of a job. If it waits for its turn, its sequence is checked.
    pub fn seen(&self, state: &JobState) {
        if state.stage == Stage::Submit
            && !state.sequence_turn
            && let Some(key) = Key::of(state)
        {
            self.note(key, true);
        }
    }

    /// Notes whether members of this sequence wait.
    pub fn note(&self, key: Key, waits: bool) {
        let mut waiting = self.waiting.lock();
        if waits {
            waiting.insert(key);
        } else {
            waiting.remove(&key);
        }
    }

    /// Returns the sequences with waiting members.
    pub fn waiting(&self) -> BTreeSet<Key> {
        self.waiting.lock().clone()
    }

    /// Schedules a check after this replica stored or ended a member, because the turn may pass on now.
    pub fn stirred(&self, state: &JobState) {
        if let Some(key) = Key::of(state) {
            self.looks.look_now(key, ());
        }
    }
}
