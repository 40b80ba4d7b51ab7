//! Manifests that nobody names go, with what is known of them and their owners' notes.

use std::collections::{BTreeMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;

use super::run::{BATCH, Run};
use crate::{
    ContentError, ContentStore, Digest, Owned,
    names::{ABOUT, MANIFESTS, OWNERS, about_name, digest_of, manifest_name},
    store::ABREAST,
};

/// The owners' notes of some manifests.
#[derive(Debug, Default)]
struct Notes {
    names: BTreeMap<Digest, Vec<Path>>,
    kept: HashSet<Digest>,
}

impl Run<'_> {
    pub(super) async fn manifests(&mut self) -> Result<(), ContentError> {
        let mut old = self.old_manifests().await?;
        let mut doomed = Vec::new();
        while !old.is_empty() {
            let some: Vec<Digest> = old.drain(..old.len().min(BATCH)).collect();
            let free = some.into_iter().filter(|id| !self.is_pinned(*id)).collect();
            doomed.extend(self.unmarked(free).await?);
            self.keep().await?;
        }
        let notes = self.notes(&doomed).await?;
        doomed.retain(|id| !notes.kept.contains(id));
        for some in doomed.chunks(BATCH) {
            if self.options.dry_run {
                for id in some {
                    if let Some(meta) = self.store.head(&manifest_name(*id)).await? {
                        self.count_manifest(meta.size);
                    }
                }
            } else {
                self.remove_manifests(some).await?;
            }
        }
        Ok(())
    }

    /// Returns manifests older than the grace period, and ids of which only a note is left, sorted.
    async fn old_manifests(&mut self) -> Result<Vec<Digest>, ContentError> {
        let (mut there, mut old) = (HashSet::new(), Vec::new());
        for kind in [MANIFESTS, ABOUT, OWNERS] {
            let mut found = self.store.list(&Path::from(kind));
            while let Some(meta) = found.try_next().await? {
                self.keep().await?;
                let Some(id) = digest_of(&meta.location) else {
                    continue;
                };
                if kind == MANIFESTS {
                    there.insert(id);
                    self.told.manifests += 1;
                    self.told.bytes_kept += meta.size;
                } else if there.contains(&id) {
                    continue;
                }
                if self.is_old(&meta) {
                    old.push(id);
                }
            }
        }
        old.sort_unstable();
        old.dedup();
        Ok(old)
    }

    fn count_manifest(&mut self, bytes: u64) {
        self.told.manifests_removed += 1;
        self.told.bytes_removed += bytes;
        self.told.bytes_kept = self.told.bytes_kept.saturating_sub(bytes);
    }

    /// Returns those that no job and no answer names.
    async fn unmarked(&self, ids: Vec<Digest>) -> Result<Vec<Digest>, ContentError> {
        if ids.is_empty() {
            return Ok(ids);
        }
        let named = self.marks.named(&ids).await?;
        if named.len() != ids.len() {
            let (is, of) = (named.len(), ids.len());
            return Err(ContentError::Bug(format!("{is} marks of {of} manifests")));
        }
        let both = ids.into_iter().zip(named);
        Ok(both.filter(|(_, named)| !named).map(|(id, _)| id).collect())
    }

    async fn notes(&mut self, ids: &[Digest]) -> Result<Notes, ContentError> {
        let wanted: HashSet<&Digest> = ids.iter().collect();
        let mut names: BTreeMap<Digest, Vec<Path>> = BTreeMap::new();
        let mut found = self.store.list(&Path::from(OWNERS));
        while let Some(meta) = found.try_next().await? {
            self.keep().await?;
            if let Some(id) = digest_of(&meta.location)
                && wanted.contains(&id)
            {
                names.entry(id).or_default().push(meta.location);
            }
        }
        let (store, now_ms) = (self.store, self.now_ms());
        let all = names
            .iter()
            .flat_map(|(id, names)| names.iter().map(|name| (*id, name)));
        let all: Vec<(Digest, Path)> = all.map(|(id, name)| (id, name.clone())).collect();
        let reads = stream::iter(all).map(async |(id, name)| {
            let is_kept = keeps(store, &name, now_ms).await?;
            Ok::<_, ContentError>((id, is_kept))
        });
        let reads = reads.buffered(ABREAST);
        let kept = reads.try_filter_map(async |(id, is_kept)| Ok(is_kept.then_some(id)));
        let kept = kept.try_collect().await?;
        Ok(Notes { names, kept })
    }

    async fn remove_manifests(&mut self, ids: &[Digest]) -> Result<(), ContentError> {
        let batch = self.condemn(ids).await?;
        // Pins first: who gives one up has named the manifest before.
        self.pinned.read(self.store).await?;
        let ids = ids
            .iter()
            .copied()
            .filter(|id| !self.is_pinned(*id))
            .collect();
        let ids = self.unmarked(ids).await?;
        let mut notes = self.notes(&ids).await?;
        let mut doomed = Vec::new();
        for id in ids.into_iter().filter(|id| !notes.kept.contains(id)) {
            doomed.push((id, notes.names.remove(&id).unwrap_or_default()));
        }
        let (store, time) = (self.store, batch.time.clone());
        let heads = stream::iter(doomed).map(async |(id, notes)| {
            let meta = store.head(&manifest_name(id)).await?;
            Ok::<_, ContentError>((id, notes, meta))
        });
        let heads: Vec<_> = heads.buffered(ABREAST).try_collect().await?;
        // A manifest that was put again meanwhile is young.
        let old = heads
            .into_iter()
            .filter(|(_, _, meta)| meta.as_ref().is_none_or(|meta| self.is_old(meta)));
        let old: Vec<_> = old.collect();
        let removals = stream::iter(old).map(async |(id, notes, meta)| {
            if !time.is_left() {
                return Ok(None);
            }
            store.delete(&manifest_name(id)).await?;
            store.delete(&about_name(id)).await?;
            for note in notes {
                store.delete(&note).await?;
            }
            Ok::<_, ContentError>(meta.map(|meta| meta.size))
        });
        let removed: Vec<Option<u64>> = removals.buffered(ABREAST).try_collect().await?;
        for bytes in removed.into_iter().flatten() {
            self.count_manifest(bytes);
        }
        self.over(batch).await
    }
}

/// Returns true if an account keeps it, whatever jobs do.
async fn keeps(store: &ContentStore, note: &Path, now_ms: u64) -> Result<bool, ContentError> {
    let Some(json) = store.read(note).await? else {
        return Ok(false);
    };
    let owned = serde_json::from_slice::<Owned>(&json).unwrap_or_else(|error| {
        tracing::warn!(%note, %error, "an owner's note cannot be read, and keeps nothing");
        Owned::default()
    });
    Ok(owned.keep_until_ms > now_ms)
}
