//! Bounded caches by job: documents of waiting and running jobs at a known version, and bodies of new jobs.
//!
//! An update by Elasticsearch reads the document first, which costs more than the write. If the document is cached at
//! the version that a compare-and-set expects, it is written as a whole. It is kept as text, so fields of a later
//! version stay. Documents are similar, so each is stored as its difference from the first one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::OnceLock,
};

use fairlead_job::JobId;
use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, value::RawValue};

use super::documents;
use crate::{Patch, Version};

/// Longest cached document, bytes. An ordinary one has 1,000.
const LENGTH_MAX: usize = 2_048;

/// Cache with one value for each of the newest jobs. The oldest values are forgotten.
#[derive(Debug)]
pub(super) struct RecentCache<T> {
    /// Maximum number of values in one generation; there are two.
    kept_max: usize,
    all: Mutex<Generations<T>>,
}

#[derive(Debug)]
struct Generations<T> {
    new: HashMap<JobId, T>,
    old: HashMap<JobId, T>,
}

impl<T> Generations<T> {
    fn take(&mut self, id: JobId) -> Option<T> {
        let found = self.new.remove(&id);
        found.or_else(|| self.old.remove(&id))
    }
}

impl<T> RecentCache<T> {
    /// Creates a cache for at least this many values (1 or more), and at most twice as many.
    pub(super) fn new(kept_max: usize) -> Self {
        let (new, old) = (HashMap::new(), HashMap::new());
        Self {
            kept_max: kept_max.max(1),
            all: Mutex::new(Generations { new, old }),
        }
    }

    /// Caches the value of a job, in place of an earlier one.
    pub(super) fn keep(&self, id: JobId, value: T) {
        let mut all = self.all();
        drop(all.take(id));
        if all.new.len() >= self.kept_max {
            all.old = std::mem::take(&mut all.new);
        }
        all.new.insert(id, value);
    }

    /// Removes and returns the value of a job.
    pub(super) fn take(&self, id: JobId) -> Option<T> {
        self.all().take(id)
    }

    /// Applies `look` to the cached value of a job, without removing the value.
    pub(super) fn look<R>(&self, id: JobId, look: impl FnOnce(&T) -> R) -> Option<R> {
        let all = self.all();
        all.new.get(&id).or_else(|| all.old.get(&id)).map(look)
    }

    /// Forgets all values.
    pub(super) fn clear(&self) {
        let mut all = self.all();
        all.new.clear();
        all.old.clear();
    }

    fn all(&self) -> MutexGuard<'_, Generations<T>> {
        self.all.lock()
    }
}

/// Documents of jobs that wait or run, as last stored or read, for the next compare-and-set.
#[derive(Debug)]
pub(super) struct DocumentCache {
    /// First cached document.
    sample: OnceLock<Box<str>>,
    kept: RecentCache<Kept>,
}

/// Cached text of a job.
#[derive(Debug)]
struct Kept {
    version: Version,
    /// True if the text is a state as JSON, of which no document was made yet.
    is_state: bool,
    packed: Box<[u8]>,
}

impl DocumentCache {
    /// Creates a cache for at least this many documents (1 or more), and at most twice as many.
    pub(super) fn new(kept_max: usize) -> Self {
        Self {
            sample: OnceLock::new(),
            kept: RecentCache::new(kept_max),
        }
    }

    /// Caches a document at its version.
    pub(super) fn keep(&self, id: JobId, version: Version, document: &str) {
        self.keep_text(id, version, document, false);
    }

    /// Caches a whole state (JSON) at its version. Its document is made only at the claim, because most jobs are
    /// claimed elsewhere.
    pub(super) fn keep_state(&self, id: JobId, version: Version, state: &str) {
        self.keep_text(id, version, state, true);
    }

    fn keep_text(&self, id: JobId, version: Version, text: &str, is_state: bool) {
        if text.len() > LENGTH_MAX {
            return;
        }
        let kept = self.kept.take(id).filter(|kept| kept.version == version);
        let kept = kept.unwrap_or_else(|| Kept {
            version,
            is_state,
            packed: self.pack(text),
        });
        self.kept.keep(id, kept);
    }

    /// Returns the whole document after this patch, if it is known at the version that the patch expects. Removes it
    /// from the cache, because the result of the write is not known yet.
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

    fn take(&self, id: JobId) -> Option<(Version, String)> {
        let kept = self.kept.take(id)?;
        let sample = self.sample.get()?.as_bytes();
        let text = decompress_size_prepended_with_dict(&kept.packed, sample).ok()?;
        let text = String::from_utf8(text).ok()?;
        let document = if kept.is_state {
            documents::document_of(&text)?
        } else {
            text
        };
        Some((kept.version, document))
    }

    fn pack(&self, document: &str) -> Box<[u8]> {
        let sample = self.sample.get_or_init(|| document.into());
        compress_prepend_size_with_dict(document.as_bytes(), sample.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::{Stage, TboxType};
    use serde_json::json;

    use super::*;
    use crate::{JobState, StatePatch};

    fn document(state: &JobState) -> String {
        let text = serde_json::to_string(state).unwrap();
        documents::state_document(state, &text).unwrap()
    }

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
        let cache = DocumentCache::new(100);
        let stage = |id, seq_no| patch(id, seq_no, |state| state.stage = Stage::Dispatch);
        let keep = |id| {
            let document = json!({"stage": "submit", "tomorrow": [7]}).to_string();
            cache.keep(JobId::new(id), at(5), &document);
        };
        keep(1);
        let after = cache.patched(&stage(1, 5));
        let expected = r#"{"stage":"dispatch","tomorrow":[7]}"#;
        assert_eq!(after.as_deref(), Some(expected));
        assert_eq!(cache.patched(&stage(1, 5)), None);
        keep(2);
        assert_eq!(cache.patched(&stage(2, 6)), None, "another version");
        keep(3);
        let moved = patch(3, 5, |state| "q".clone_into(&mut state.queue));
        assert_eq!(cache.patched(&moved), None);
        keep(4);
        let limits = patch(4, 5, |state| {
            state.stage_limits_s.insert(Stage::Boot, 7);
        });
        assert_eq!(cache.patched(&limits), None);
    }

    #[test]
    fn a_state_that_was_told_becomes_its_document() {
        let cache = DocumentCache::new(100);
        let state = JobState::blank(JobId::new(1), TboxType::Dc);
        let told = serde_json::to_string(&state).unwrap();
        cache.keep_state(state.job_id, at(5), &told);
        let expected = document(&state);
        assert_eq!(cache.take(state.job_id), Some((at(5), expected)));
    }

    #[test]
    fn long_ones_are_not_kept() {
        let cache = DocumentCache::new(1);
        cache.keep(JobId::new(1), at(1), &" ".repeat(LENGTH_MAX));
        assert!(cache.take(JobId::new(1)).is_some());
        cache.keep(JobId::new(1), at(1), &" ".repeat(LENGTH_MAX + 1));
        assert!(cache.take(JobId::new(1)).is_none());
    }

    #[test]
    fn a_document_that_is_kept_again_is_that_of_its_last_version() {
        let cache = DocumentCache::new(1);
        for (seq_no, document) in [(1, "[1]"), (1, "[1]"), (4, "[14]")] {
            cache.keep(JobId::new(1), at(seq_no), document);
        }
        let taken = cache.take(JobId::new(1));
        assert_eq!(taken, Some((at(4), "[14]".to_owned())));
    }

    proptest::proptest! {
        #[test]
        fn what_was_packed_is_what_was_kept(documents in proptest::collection::vec(".{0,300}", 1..20)) {
            let cache = DocumentCache::new(20);
            for (n, document) in (0..).zip(&documents) {
                cache.keep(JobId::new(n), at(1), document);
            }
            for (n, document) in (0..).zip(documents) {
                proptest::prop_assert_eq!(cache.take(JobId::new(n)), Some((at(1), document)));
            }
        }
    }

    #[test]
    fn of_documents_that_are_much_alike_little_is_kept() {
        let cache = DocumentCache::new(10);
        let of = |id: u64| {
            let mut state = JobState::blank(JobId::new(id), TboxType::Dc);
            state.account = format!("account-{id}");
            document(&state)
        };
        let whole = of(7).len();
        for id in 0..10 {
            cache.keep(JobId::new(id), at(1), &of(id));
        }
        let packed = cache.kept.take(JobId::new(7)).unwrap().packed.len();
        assert!(4 * packed < whole, "{packed} of {whole} bytes");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let cache = RecentCache::new(100);
        let count = 300;
        for id in 0..count {
            cache.keep(JobId::new(id), id);
        }
        assert_eq!(cache.take(JobId::new(0)), None);
        for id in count - 100..count {
            assert_eq!(cache.take(JobId::new(id)), Some(id));
            assert_eq!(cache.take(JobId::new(id)), None, "taken once");
        }
    }

    #[test]
    fn what_is_kept_again_is_young_again_and_the_last_one() {
        let cache = RecentCache::new(2);
        for (id, value) in [(1, 1), (2, 2), (1, 1), (3, 3), (3, 34), (4, 4)] {
            cache.keep(JobId::new(id), value);
        }
        let taken = [1, 2, 3, 4].map(|id| cache.take(JobId::new(id)));
        assert_eq!(taken, [Some(1), Some(2), Some(34), Some(4)]);
        cache.keep(JobId::new(5), 5);
        cache.clear();
        assert_eq!(cache.take(JobId::new(5)), None);
    }
}
