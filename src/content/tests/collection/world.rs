//! An object store in which each request takes two steps, and which sees what must never be.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use async_trait::async_trait;
use bytes::Bytes;
use fairlead_content::{Clock, ContentError, Digest, Manifest, Marks, Owned};
use futures_util::{StreamExt, stream, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    memory::InMemory, path::Path,
};
use parking_lot::Mutex;

use crate::steps::{Chance, VirtualClock, step};

/// Objects of a page of a list: between two pages the store changes.
const PAGE: usize = 2;

#[derive(Debug, Default)]
struct Mirror {
    /// When each object was written, ms.
    written: BTreeMap<Path, u64>,
    /// The chunks of each manifest that was ever written.
    manifests: BTreeMap<Digest, BTreeSet<Digest>>,
    /// Until when each note keeps its manifest, ms.
    kept: BTreeMap<Path, u64>,
    /// Which job names which manifest.
    marks: BTreeMap<u64, Digest>,
    wrong: Vec<String>,
    /// How often a put found something condemned.
    met: u64,
}

#[derive(Debug)]
pub(crate) struct World {
    inner: InMemory,
    mirror: Mutex<Mirror>,
    clock: Arc<VirtualClock>,
    chance: Chance,
    pub(crate) faults: Mutex<bool>,
}

/// The handle that the content store gets.
#[derive(Debug, Clone)]
pub(crate) struct Objects(pub(crate) Arc<World>);

fn digest_of(name: &Path) -> Option<Digest> {
    name.filename()?.parse().ok()
}

fn name_of(kind: &str, digest: Digest) -> Path {
    let name = digest.to_string();
    Path::from_iter([kind, &name[..2], &name])
}

impl World {
    pub(crate) fn new(seed: u64, clock: &Arc<VirtualClock>) -> Arc<Self> {
        Arc::new(Self {
            inner: InMemory::new(),
            mirror: Mutex::default(),
            clock: Arc::clone(clock),
            chance: Chance::new(seed ^ 0x5eed),
            faults: Mutex::new(true),
        })
    }

    pub(crate) fn wrong(&self) -> Vec<String> {
        self.mirror.lock().wrong.clone()
    }

    pub(crate) fn met(&self) -> u64 {
        self.mirror.lock().met
    }

    pub(crate) fn names(&self) -> Vec<Path> {
        self.mirror.lock().written.keys().cloned().collect()
    }

    pub(crate) fn is_there(&self, kind: &str, digest: Digest) -> bool {
        self.mirror
            .lock()
            .written
            .contains_key(&name_of(kind, digest))
    }

    pub(crate) fn chunks_of(&self, id: Digest) -> BTreeSet<Digest> {
        self.mirror.lock().manifests[&id].clone()
    }

    /// A job names a manifest, which must be there.
    pub(crate) fn mark(&self, job: u64, id: Digest) {
        if !self.is_there("manifests", id) {
            let wrong = format!("job {job} names {id}, which is gone");
            self.mirror.lock().wrong.push(wrong);
        }
        self.mirror.lock().marks.insert(job, id);
    }

    pub(crate) fn unmark(&self, job: u64) {
        self.mirror.lock().marks.remove(&job);
    }

    /// All that somebody names: by a job, or by an account that keeps it.
    pub(crate) fn named(&self) -> BTreeSet<Digest> {
        let mirror = self.mirror.lock();
        let now_ms = self.clock.now_ms();
        let kept = mirror.kept.iter().filter(|(_, until)| **until > now_ms);
        let kept = kept.filter_map(|(note, _)| digest_of(note));
        mirror.marks.values().copied().chain(kept).collect()
    }

    fn is_cut(&self) -> bool {
        *self.faults.lock() && self.chance.is(600)
    }

    fn written(&self, name: &Path, bytes: &Bytes) {
        let mut mirror = self.mirror.lock();
        let text = name.to_string();
        if text.starts_with("manifests/") {
            let manifest = Manifest::decode(bytes).unwrap();
            let chunks: BTreeSet<Digest> = manifest.chunks().map(|chunk| chunk.digest).collect();
            let gone = chunks
                .iter()
                .find(|chunk| !mirror.written.contains_key(&name_of("chunks", **chunk)));
            if let Some(gone) = gone {
                let wrong = format!("{name} was written without its chunk {gone}");
                mirror.wrong.push(wrong);
            }
            mirror.manifests.insert(digest_of(name).unwrap(), chunks);
        } else if text.starts_with("owners/") {
            let owned: Owned = serde_json::from_slice(bytes).unwrap();
            mirror.kept.insert(name.clone(), owned.keep_until_ms);
        }
        mirror.written.insert(name.clone(), self.clock.now_ms());
    }

    fn removed(&self, name: &Path) {
        let named = self.named();
        let mut mirror = self.mirror.lock();
        if mirror.written.remove(name).is_none() {
            return;
        }
        mirror.kept.remove(name);
        let digest = digest_of(name);
        let text = name.to_string();
        if text.starts_with("manifests/") && digest.is_some_and(|id| named.contains(&id)) {
            mirror
                .wrong
                .push(format!("{name} was removed, and somebody names it"));
        }
        if text.starts_with("chunks/") {
            let names_it = mirror.manifests.iter().find(|(id, chunks)| {
                let is_there = mirror.written.contains_key(&name_of("manifests", **id));
                is_there && digest.is_some_and(|chunk| chunks.contains(&chunk))
            });
            if let Some((id, _)) = names_it {
                let wrong = format!("{name} was removed, and {id} names it");
                mirror.wrong.push(wrong);
            }
        }
    }

    fn dated(&self, mut meta: ObjectMeta) -> ObjectMeta {
        let written = self.mirror.lock().written.get(&meta.location).copied();
        let since = Duration::from_millis(written.unwrap_or_default());
        meta.last_modified = (UNIX_EPOCH + since).into();
        meta
    }

    async fn page(&self, folder: &Path, behind: Option<&Path>) -> Result<Vec<ObjectMeta>> {
        let found = match behind {
            Some(behind) => self.inner.list_with_offset(Some(folder), behind),
            None => self.inner.list(Some(folder)),
        };
        let page: Vec<Result<ObjectMeta>> = found.take(PAGE).collect().await;
        page.into_iter().map(|meta| Ok(self.dated(meta?))).collect()
    }

    async fn delete_one(self: Arc<Self>, name: Result<Path>) -> Result<Path> {
        let name = name?;
        step().await;
        self.inner.delete(&name).await?;
        self.removed(&name);
        step().await;
        if self.is_cut() { Err(cut()) } else { Ok(name) }
    }
}

fn cut() -> object_store::Error {
    let (store, source) = ("simulated", "the answer was cut".into());
    object_store::Error::Generic { store, source }
}

#[async_trait]
impl Marks for World {
    async fn named(&self, ids: &[Digest]) -> Result<Vec<bool>, ContentError> {
        step().await;
        let marks: BTreeSet<Digest> = self.mirror.lock().marks.values().copied().collect();
        // The collector's process stands still in the middle of a batch, and then goes on as if nothing had been.
        if *self.faults.lock() && self.chance.is(12) {
            self.clock.sleep(Duration::from_mins(7)).await;
        }
        step().await;
        Ok(ids.iter().map(|id| marks.contains(id)).collect())
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated")
    }
}

#[async_trait]
impl ObjectStore for Objects {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        step().await;
        if self.0.is_cut() {
            return Err(cut());
        }
        let bytes = Bytes::from(payload.clone());
        let put = self.0.inner.put_opts(location, payload, options).await?;
        self.0.written(location, &bytes);
        step().await;
        if self.0.is_cut() { Err(cut()) } else { Ok(put) }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        step().await;
        let found = self.0.inner.get_opts(location, options).await;
        if found.is_ok() && location.as_ref().starts_with("collect/condemned/") {
            self.0.mirror.lock().met += 1;
        }
        let found = found.map(|found| GetResult {
            meta: self.0.dated(found.meta.clone()),
            ..found
        });
        step().await;
        if self.0.is_cut() { Err(cut()) } else { found }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let world = Arc::clone(&self.0);
        let deletes = locations.map(move |name| Arc::clone(&world).delete_one(name));
        deletes.buffered(3).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let folder = prefix.cloned().unwrap_or_default();
        let begin = (Arc::clone(&self.0), folder, None::<Path>, false);
        let pages = stream::unfold(begin, async |(world, folder, behind, is_last)| {
            if is_last {
                return None;
            }
            // Most folders of chunks are empty; they need no steps of their own.
            let is_empty = world
                .page(&folder, None)
                .await
                .is_ok_and(|page| page.is_empty());
            if !is_empty || world.chance.is(50) {
                step().await;
            }
            let page = world.page(&folder, behind.as_ref()).await;
            let last = page
                .iter()
                .flatten()
                .last()
                .map(|meta| meta.location.clone());
            let is_last = last.is_none();
            Some((page, (world, folder, last, is_last)))
        });
        let metas = pages.map(|page| match page {
            Ok(metas) => metas.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        metas.flat_map(stream::iter).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        step().await;
        self.0.inner.copy_opts(from, to, options).await?;
        self.0.written(to, &Bytes::new());
        step().await;
        Ok(())
    }
}
