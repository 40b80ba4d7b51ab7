//! Puts and gets that are interrupted, or get something else than they should.

use std::{
    os::unix::fs::FileExt,
    sync::atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Pin,
    PutChunk,
    PutManifest,
    Chunk,
}

type Hook = Box<dyn Fn(Call) -> Result<(), TransferError> + Send + Sync>;
type Spoil = Box<dyn Fn(&Place, Bytes) -> Bytes + Send + Sync>;

/// Store with a hook that runs before each call.
pub(super) struct Hooked {
    store: ContentStore,
    hook: Hook,
    spoil: Spoil,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooked").finish_non_exhaustive()
    }
}

impl Hooked {
    pub(super) fn new(
        store: ContentStore,
        hook: impl Fn(Call) -> Result<(), TransferError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            store,
            hook: Box::new(hook),
            spoil: Box::new(|_, bytes| bytes),
        }
    }
}

#[async_trait]
impl Remote for Hooked {
    async fn pin(&self, put: &str, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        (self.hook)(Call::Pin)?;
        Remote::pin(&self.store, put, chunks).await
    }

    async fn put_chunk(&self, put: &str, to: &Place, bytes: Bytes) -> Result<(), TransferError> {
        (self.hook)(Call::PutChunk)?;
        Remote::put_chunk(&self.store, put, to, bytes).await
    }

    async fn put_manifest(
        &self,
        put: &str,
        name: &str,
        manifest: Bytes,
    ) -> Result<Digest, TransferError> {
        (self.hook)(Call::PutManifest)?;
        Remote::put_manifest(&self.store, put, name, manifest).await
    }

    async fn manifest(&self, id: Digest) -> Result<Bytes, TransferError> {
        Remote::manifest(&self.store, id).await
    }

    async fn places(&self, id: Digest, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        Remote::places(&self.store, id, chunks).await
    }

    async fn chunk(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        (self.hook)(Call::Chunk)?;
        let bytes = Remote::chunk(&self.store, id, from).await?;
        Ok((self.spoil)(from, bytes))
    }
}

fn broken() -> TransferError {
    TransferError::Bug("the line broke".to_owned())
}

fn tree() -> Tree {
    Tree::from([
        ("a/first".to_owned(), file(&noise("first", 4_000_000))),
        ("b/second".to_owned(), file(&noise("second", 6_000_000))),
        ("c".to_owned(), file(b"small")),
    ])
}

#[tokio::test]
async fn a_put_that_goes_on_sends_only_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &tree());
    let whole = put_all(&ContentStore::in_memory(), dir.path()).await;
    let whole = whole.unwrap();
    assert_eq!(whole.sent_chunks, whole.chunks);
    for after in [0, 1, 5, 11] {
        let store = ContentStore::in_memory();
        let calls = AtomicUsize::new(0);
        let remote = Hooked::new(store.clone(), move |call| {
            let is_late = call == Call::PutChunk && calls.fetch_add(1, Ordering::Relaxed) >= after;
            if is_late { Err(broken()) } else { Ok(()) }
        });
        let one = PutOptions {
            parallel: 1,
            ..PutOptions::default()
        };
        let failed = put(&remote, dir.path().to_owned(), &one, &|_| {}).await;
        assert!(matches!(failed, Err(TransferError::Bug(_))), "{failed:?}");
        let resumed = put_all(&store, dir.path()).await.unwrap();
        let after = u64::try_from(after).unwrap();
        assert_eq!(resumed.sent_chunks, whole.chunks - after);
        assert_eq!(resumed.id, whole.id);
        let again = put_all(&store, dir.path()).await.unwrap();
        assert_eq!((again.sent_chunks, again.sent_bytes), (0, 0));
    }
}

#[tokio::test]
async fn a_file_that_changes_meanwhile_is_refused() {
    let changes: [fn(&Path); 3] = [
        |path| {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.write_all_at(b"!", 3_000_000).unwrap();
        },
        |path| {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_len(10).unwrap();
        },
        |path| fs::remove_file(path).unwrap(),
    ];
    for change in changes {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &tree());
        let path = dir.path().join("a/first");
        let store = ContentStore::in_memory();
        let remote = Hooked::new(store.clone(), move |call| {
            if call == Call::Pin && path.metadata().is_ok_and(|about| about.len() == 4_000_000) {
                change(&path);
            }
            Ok(())
        });
        let refused = put_all(&remote, dir.path()).await.unwrap_err();
        assert!(
            matches!(&refused, TransferError::Changed { path } if path == "a/first"),
            "{refused}"
        );
    }
}

/// A collection may remove a chunk right after a query for it, if its pin is late.
#[tokio::test]
async fn chunks_that_went_before_the_manifest_are_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &tree());
    let store = ContentStore::in_memory();
    let whole = put_all(&store, dir.path()).await.unwrap();
    let calls = AtomicUsize::new(0);
    let remote = Hooked::new(store.clone(), {
        let small = crate::names::chunk_name(Digest::of(b"small"));
        let store = store.clone();
        move |call| {
            if call == Call::PutManifest && calls.fetch_add(1, Ordering::Relaxed) == 0 {
                let gone = store.delete(&small);
                futures_util::FutureExt::now_or_never(gone).unwrap()?;
            }
            Ok(())
        }
    });
    let again = put_all(&remote, dir.path()).await.unwrap();
    assert_eq!(
        (again.id, again.sent_chunks, again.sent_bytes),
        (whole.id, 1, 5)
    );
}

#[tokio::test]
async fn a_flipped_byte_is_never_delivered() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    write(&from, &tree());
    let store = ContentStore::in_memory();
    let id = put_all(&store, &from).await.unwrap().id;
    let manifest = crate::Manifest::decode(&Remote::manifest(&store, id).await.unwrap()).unwrap();
    for entry in manifest.entries() {
        let crate::Kind::File { chunks, .. } = &entry.kind else {
            continue;
        };
        for flipped in chunks {
            let digest = flipped.digest;
            let mut remote = Hooked::new(store.clone(), |_| Ok(()));
            remote.spoil = Box::new(move |place, bytes| {
                let mut bytes = bytes.to_vec();
                if place.digest == digest {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 1;
                }
                bytes.into()
            });
            let into = dir.path().join("into");
            let refused = get_all(&remote, id, &into).await.unwrap_err();
            assert!(
                matches!(&refused, TransferError::FileOf { path, .. } if *path == entry.path),
                "{refused}"
            );
            assert!(
                refused.to_string().contains(&digest.to_string()),
                "{refused}"
            );
            assert!(!into.exists(), "nothing is left");
        }
    }
}

#[tokio::test]
async fn a_chunk_that_is_gone_names_its_file_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let (from, into) = (dir.path().join("from"), dir.path().join("into"));
    write(&from, &tree());
    let store = ContentStore::in_memory();
    let id = put_all(&store, &from).await.unwrap().id;
    let small = Digest::of(b"small");
    store
        .delete(&crate::names::chunk_name(small))
        .await
        .unwrap();
    fs::create_dir(&into).unwrap();
    let refused = get_all(&store, id, &into).await.unwrap_err();
    assert!(
        matches!(&refused, TransferError::FileOf { path, source }
            if path == "c" && matches!(**source, TransferError::ChunkGone(gone) if gone == small)),
        "{refused}"
    );
    assert_eq!(read(&into), Tree::new());
}

#[tokio::test]
async fn a_get_that_is_stopped_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (from, into) = (dir.path().join("from"), dir.path().join("into"));
    write(&from, &tree());
    let store = ContentStore::in_memory();
    let id = put_all(&store, &from).await.unwrap().id;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let calls = AtomicUsize::new(0);
    let remote = Hooked::new(store, move |call| {
        if call == Call::Chunk && calls.fetch_add(1, Ordering::Relaxed) == 10 {
            stop.send(true).unwrap();
        }
        Ok(())
    });
    let options = GetOptions { parallel: 1 };
    let remote = Stoppable::new(&remote, stopped);
    let ended = get(&remote, id, into.clone(), &options, &|_| {}).await;
    assert!(matches!(ended, Err(TransferError::Stopped)), "{ended:?}");
    assert!(!into.exists());
}
