//! Documents of jobs that wait, as they were stored or read last, to be claimed.
//!
//! An update by Elasticsearch reads the document first, which costs it more than the write. Whoever has the
//! document at the very version that a compare-and-set expects writes it whole. It is kept as text: fields that a
//! later version wrote stay.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use fairlead_job::JobId;
use serde_json::{Value, value::RawValue};

use super::documents;
use crate::{Patch, Version};

/// Documents of one generation, at most; there are two.
const KEPT_MAX: usize = 8_192;
/// Longest document that is kept, bytes: an ordinary one has 1,000.
const LENGTH_MAX: usize = 2_048;

/// By job: the version and the document.
type Generation = HashMap<JobId, (Version, Box<str>)>;

/// The documents; the oldest ones are forgotten.
#[derive(Debug, Default)]
pub(super) struct Sources(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    new: Generation,
    old: Generation,
}

impl Sources {
    /// Keeps a document at its version.
    pub(super) fn keep(&self, id: JobId, version: Version, document: &str) {
        if document.len() > LENGTH_MAX {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = &mut *all;
        if all.new.len() >= KEPT_MAX {
            all.old = std::mem::take(&mut all.new);
        }
        all.old.remove(&id);
        all.new.insert(id, (version, document.into()));
    }

    /// The whole document after this patch, if it is known at the version that the patch expects. Known once: what
    /// the write comes to is not known yet.
    pub(super) fn patched(&self, patch: &Patch) -> Option<String> {
        let (version, document) = self.take(patch.id)?;
        let fields = documents::to_stored(patch.set.fields().clone());
        // Objects are merged, not replaced; and which pair of queue and account it is depends on both.
        let is_plain = |(name, value): (&String, &Value)| {
            !value.is_object() && !matches!(name.as_str(), "job_id" | "queue" | "account")
        };
        if version != patch.expect || !fields.iter().all(is_plain) {
            return None;
        }
        let set = serde_json::to_string(&fields).ok()?;
        let mut whole: BTreeMap<&str, &RawValue> = serde_json::from_str(&document).ok()?;
        whole.extend(serde_json::from_str::<BTreeMap<&str, &RawValue>>(&set).ok()?);
        serde_json::to_string(&whole).ok()
    }

    fn take(&self, id: JobId) -> Option<(Version, Box<str>)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.new.remove(&id);
        found.or_else(|| all.old.remove(&id))
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::{Stage, TboxType};
    use serde_json::json;

    use super::*;
    use crate::{JobState, StatePatch};

    fn at(seq_no: u64) -> Version {
        Version {
            primary_term: 1,
            seq_no,
        }
    }

    fn patch(id: u64, seq_no: u64, change: impl FnOnce(&mut JobState)) -> Patch {
        let before = JobState::blank(JobId::new(id), TboxType::Dc);
        let mut after = before.clone();
        change(&mut after);
        Patch {
            id: before.job_id,
            expect: at(seq_no),
            set: StatePatch::between(&before, &after),
        }
    }

    #[test]
    fn a_document_is_patched_at_its_version_alone_and_once() {
        let sources = Sources::default();
        let stage = |id, seq_no| patch(id, seq_no, |state| state.stage = Stage::Dispatch);
        let keep = |id| {
            let document = json!({"stage": "submit", "tomorrow": [7]}).to_string();
            sources.keep(JobId::new(id), at(5), &document);
        };
        keep(1);
        let after = sources.patched(&stage(1, 5));
        let expected = r#"{"stage":"dispatch","tomorrow":[7]}"#;
        assert_eq!(after.as_deref(), Some(expected));
        assert_eq!(sources.patched(&stage(1, 5)), None);
        keep(2);
        assert_eq!(sources.patched(&stage(2, 6)), None, "another version");
        keep(3);
        let moved = patch(3, 5, |state| "q".clone_into(&mut state.queue));
        assert_eq!(sources.patched(&moved), None);
        keep(4);
        let limits = patch(4, 5, |state| {
            state.stage_limits_s.insert(Stage::Boot, 7);
        });
        assert_eq!(sources.patched(&limits), None);
    }

    #[test]
    fn the_oldest_are_forgotten_and_long_ones_are_not_kept() {
        let sources = Sources::default();
        let count = 3 * u64::try_from(KEPT_MAX).unwrap();
        for id in 0..count {
            sources.keep(JobId::new(id), at(1), "{}");
        }
        assert!(sources.take(JobId::new(0)).is_none());
        assert!(sources.take(JobId::new(count - 1)).is_some());
        sources.keep(JobId::new(count), at(1), &" ".repeat(LENGTH_MAX + 1));
        assert!(sources.take(JobId::new(count)).is_none());
    }
}
