//! Chunks that no manifest and no named file has go.

use std::{collections::HashSet, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, path::Path};

use super::{
    batch::TimeLeft,
    run::{BATCH, NAMED_MAX, Run},
};
use crate::{
    ContentError, ContentStore, Digest, Manifest, ManifestError,
    beside::work_on,
    named::read_note,
    names::{CHUNKS, FILES, MANIFESTS, chunk_name, digest_of},
    store::{WRITING_PIN, WRITING_WITHIN},
};

/// Maximum number of manifests in memory: each may have 64 MiB.
const MANIFESTS_ABREAST: usize = 4;
/// Number of notes of named files that are read at a time.
const NOTES_ABREAST: usize = 16;
/// Number of values of a digest's first byte.
const BYTES: u16 = 256;
/// Time for which the pins show the manifests that came since the listing. A manifest is written at most
/// [`WRITING_WITHIN`] after its pin, which lasts for [`WRITING_PIN`]. Five minutes are for clocks that differ.
const LISTED_FOR: Duration = Duration::from_mins(25);
const _: () = assert!(LISTED_FOR.as_secs() + WRITING_WITHIN.as_secs() < WRITING_PIN.as_secs());

/// Chunks that manifests name, in a range of first bytes.
#[derive(Debug)]
struct Named {
    from: u16,
    /// First byte behind the range.
    until: u16,
    digests: HashSet<Digest>,
    /// Manifests that were read, and the hashes of the names of the notes that were.
    manifests: HashSet<Digest>,
    listed: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Doomed {
    digest: Digest,
    bytes: u64,
}

fn first_byte(digest: Digest) -> u16 {
    let [first, ..] = digest.as_bytes();
    u16::from(*first)
}

impl Named {
    fn add(&mut self, chunks: impl Iterator<Item = Digest>, most: usize) {
        let range = self.from..self.until;
        let ours = chunks.filter(|digest| range.contains(&first_byte(*digest)));
        self.digests.extend(ours);
        while self.digests.len() > most && self.until - self.from > 1 {
            // Half of the range is left to the next pass.
            self.until = self.from + (self.until - self.from) / 2;
            let until = self.until;
            self.digests.retain(|digest| first_byte(*digest) < until);
            self.digests.shrink_to_fit();
        }
    }
}

impl Run<'_> {
    pub(super) async fn chunks(&mut self) -> Result<(), ContentError> {
        let mut from = 0;
        while from < BYTES {
            from = self.chunks_of_a_range(from, NAMED_MAX).await?;
        }
        Ok(())
    }

    /// Handles one range. Returns the begin of the next one.
    async fn chunks_of_a_range(&mut self, from: u16, most: usize) -> Result<u16, ContentError> {
        let mut named = Named {
            from,
            until: BYTES,
            digests: HashSet::new(),
            manifests: HashSet::new(),
            listed: Duration::ZERO,
        };
        self.read_manifests(&mut named, most).await?;
        let mut doomed = Vec::new();
        let mut found = self.store.list(&Path::from(CHUNKS));
        while let Some(meta) = found.try_next().await? {
            self.keep().await?;
            let range = from..named.until;
            let digest = digest_of(&meta.location);
            let Some(digest) = digest.filter(|digest| range.contains(&first_byte(*digest))) else {
                continue;
            };
            self.told.chunks += 1;
            self.told.bytes_kept += meta.size;
            let is_free = !named.digests.contains(&digest) && !self.is_pinned(digest);
            if is_free && self.is_old(&meta) {
                let bytes = meta.size;
                doomed.push(Doomed { digest, bytes });
            }
            if doomed.len() >= BATCH {
                self.remove_chunks(&doomed, &mut named).await?;
                doomed.clear();
            }
        }
        if !doomed.is_empty() {
            self.remove_chunks(&doomed, &mut named).await?;
        }
        Ok(named.until)
    }

    /// Reads the manifests that are new since the last time.
    async fn read_manifests(&mut self, named: &mut Named, most: usize) -> Result<(), ContentError> {
        named.listed = self.store.clock.elapsed();
        let mut fresh = Vec::new();
        let mut found = self.store.list(&Path::from(MANIFESTS));
        while let Some(meta) = found.try_next().await? {
            self.keep().await?;
            let id = digest_of(&meta.location);
            fresh.extend(id.filter(|id| !named.manifests.contains(id)));
        }
        let store = self.store;
        let reads = stream::iter(fresh).map(async |id| {
            let chunks = chunks_of(store, id).await?;
            Ok::<_, ContentError>((id, chunks))
        });
        let mut reads = reads.buffered(MANIFESTS_ABREAST);
        while let Some((id, chunks)) = reads.try_next().await? {
            self.keep().await?;
            named.manifests.insert(id);
            named.add(chunks.into_iter(), most);
        }
        drop(reads);
        self.read_notes(named, most).await
    }

    /// Reads the notes of named files that are new since the last time.
    async fn read_notes(&mut self, named: &mut Named, most: usize) -> Result<(), ContentError> {
        let mut fresh = Vec::new();
        let mut found = self.store.list(&Path::from(FILES));
        loop {
            let meta = found.try_next().await?;
            let is_end = meta.is_none();
            if let Some(meta) = meta {
                self.keep().await?;
                // A note of a name never changes.
                let id = Digest::of(meta.location.as_ref().as_bytes());
                if named.manifests.insert(id) {
                    fresh.push(meta.location);
                }
            }
            if fresh.len() >= BATCH || is_end {
                let store = self.store;
                let some = stream::iter(std::mem::take(&mut fresh));
                let reads = some.map(async |name| chunks_of_note(store, &name).await);
                let mut reads = reads.buffered(NOTES_ABREAST);
                while let Some(chunks) = reads.try_next().await? {
                    self.keep().await?;
                    named.add(chunks.into_iter(), most);
                }
            }
            if is_end {
                return Ok(());
            }
        }
    }

    async fn remove_chunks(
        &mut self,
        doomed: &[Doomed],
        named: &mut Named,
    ) -> Result<(), ContentError> {
        if self.options.dry_run {
            self.count_chunks(doomed);
            return Ok(());
        }
        let digests: Vec<Digest> = doomed.iter().map(|chunk| chunk.digest).collect();
        let batch = self.condemn(&digests).await?;
        // The writer of a manifest has pinned its chunks. The pins therefore show all that came since the manifests
        // were listed.
        self.pinned.read(self.store).await?;
        if self.store.clock.elapsed().saturating_sub(named.listed) > LISTED_FOR {
            self.read_manifests(named, usize::MAX).await?;
        }
        let free = doomed
            .iter()
            .filter(|chunk| !named.digests.contains(&chunk.digest))
            .filter(|chunk| !self.is_pinned(chunk.digest));
        let free: Vec<Doomed> = free.copied().collect();
        let many = delete_all(self.store, &free, batch.time.clone()).await?;
        let removed = free.get(..many).unwrap_or(&free);
        self.count_chunks(removed);
        self.over(batch).await
    }

    fn count_chunks(&mut self, removed: &[Doomed]) {
        for chunk in removed {
            self.told.chunks_removed += 1;
            self.told.bytes_removed += chunk.bytes;
            self.told.bytes_kept = self.told.bytes_kept.saturating_sub(chunk.bytes);
        }
    }
}

/// Returns the chunks of a named file; empty: it was removed meanwhile.
async fn chunks_of_note(
    store: &ContentStore,
    name: &Path,
) -> Result<HashSet<Digest>, ContentError> {
    let Some(json) = store.read(name).await? else {
        return Ok(HashSet::new());
    };
    let file = read_note(name.as_ref(), &json)?;
    Ok(file.chunks.iter().map(|chunk| chunk.digest).collect())
}

/// Returns the chunks of a manifest; empty: it was removed meanwhile.
async fn chunks_of(store: &ContentStore, id: Digest) -> Result<HashSet<Digest>, ContentError> {
    let Some(bytes) = store.manifest(id).await? else {
        return Ok(HashSet::new());
    };
    // A large one takes a second.
    let read = work_on(&bytes, |bytes| {
        let manifest = Manifest::decode(bytes)?;
        Ok(manifest.chunks().map(|chunk| chunk.digest).collect())
    });
    read.await?
        .map_err(|error: ManifestError| ContentError::Damaged {
            what: format!("manifest {id}"),
            problem: error.to_string(),
        })
}

/// Deletes objects in this order while there is time, many in one request if the object store supports that. Returns
/// the number of deleted ones.
async fn delete_all(
    store: &ContentStore,
    doomed: &[Doomed],
    time: TimeLeft,
) -> Result<usize, ContentError> {
    let names: Vec<Path> = doomed
        .iter()
        .map(|chunk| chunk_name(chunk.digest))
        .collect();
    let in_time = stream::iter(names).take_while(move |_| std::future::ready(time.is_left()));
    let mut answers = store.objects.delete_stream(in_time.map(Ok).boxed());
    let mut many = 0;
    while let Some(answer) = answers.next().await {
        store.health.answered(&answer);
        match answer {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => many += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(many)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_leaves_to_the_next_what_is_too_much() {
        let all: Vec<Digest> = (0..1_000_u32)
            .map(|n| Digest::of(&n.to_le_bytes()))
            .collect();
        let (mut from, mut passes) = (0, 0);
        let mut seen: Vec<Digest> = Vec::new();
        while from < BYTES {
            let mut named = Named {
                from,
                until: BYTES,
                digests: HashSet::new(),
                manifests: HashSet::new(),
                listed: Duration::ZERO,
            };
            for some in all.chunks(10) {
                named.add(some.iter().copied(), 100);
            }
            assert!(named.digests.len() <= 110 && named.until > from);
            seen.extend(named.digests);
            from = named.until;
            passes += 1;
        }
        seen.sort_unstable();
        let mut all = all;
        all.sort_unstable();
        assert_eq!(seen, all);
        assert!((10..40).contains(&passes), "{passes}");
    }
}
