//! Tests of chunks, manifests and owners in memory.

use object_store::memory::InMemory;

use super::*;
use crate::{Chunk, Entry, Kind, names::PINS};

fn store() -> ContentStore {
    ContentStore::over(Arc::new(InMemory::new()), None)
}

fn manifest_of(bytes: &[u8]) -> Bytes {
    let kind = Kind::File {
        executable: false,
        size: u64::try_from(bytes.len()).unwrap(),
        digest: Digest::of(bytes),
        chunks: vec![Chunk::of(bytes)],
    };
    let path = "a".to_owned();
    let manifest = Manifest::new(vec![Entry { path, kind }]).unwrap();
    manifest.encode().unwrap().into()
}

#[tokio::test]
async fn a_manifest_comes_after_its_chunks() {
    let store = store();
    let (bytes, digest) = (Bytes::from_static(b"abc"), Digest::of(b"abc"));
    let manifest = manifest_of(&bytes);
    let refused = store.put_manifest(manifest.clone()).await;
    let pins = store.list(&Path::from_iter([PINS]));
    let pins: Vec<_> = pins.try_collect().await.unwrap();
    assert!(pins.is_empty(), "a refused manifest leaves {pins:?}");
    assert!(
        matches!(refused, Err(ContentError::ChunksMissing { count: 1, .. })),
        "{refused:?}"
    );
    assert_eq!(store.missing(&[digest, digest]).await.unwrap(), [digest]);
    let wrong = store.put_chunk(Digest::of(b"x"), bytes.clone()).await;
    assert!(
        matches!(wrong, Err(ContentError::NotWhatItSays { .. })),
        "{wrong:?}"
    );
    store.put_chunk(digest, bytes.clone()).await.unwrap();
    assert_eq!(store.missing(&[digest]).await.unwrap(), []);
    let (id, about) = store.put_manifest(manifest.clone()).await.unwrap();
    assert_eq!((about.files, about.bytes, about.chunks), (1, 3, 1));
    assert_eq!(store.manifest(id).await.unwrap(), Some(manifest));
    assert_eq!(store.chunk(digest).await.unwrap(), Some(bytes));
    assert_eq!(store.about(id).await.unwrap(), Some(about.clone()));
    store.delete(&about_name(id)).await.unwrap();
    assert_eq!(store.about(id).await.unwrap(), Some(about));
    assert_eq!(store.about(digest).await.unwrap(), None);
}

#[tokio::test]
async fn an_account_has_what_it_put() {
    let store = store();
    let mut ids: Vec<Digest> = (0..5_u8).map(|n| Digest::of(&[n])).collect();
    ids.sort_unstable();
    for id in &ids {
        let owned = Owned {
            put_ms: 7,
            ..Owned::default()
        };
        store.own("a b", *id, &owned).await.unwrap();
    }
    assert_eq!(store.ids_of("a b", None, 2).await.unwrap(), ids[..2]);
    assert_eq!(
        store.ids_of("a b", Some(ids[1]), 9).await.unwrap(),
        ids[2..]
    );
    assert_eq!(store.ids_of("a", None, 9).await.unwrap(), []);
    store.disown("a b", ids[0]).await.unwrap();
    assert_eq!(store.owned("a b", ids[0]).await.unwrap(), None);
    assert_eq!(
        store
            .owned("a b", ids[1])
            .await
            .unwrap()
            .map(|owned| owned.put_ms),
        Some(7)
    );
}
