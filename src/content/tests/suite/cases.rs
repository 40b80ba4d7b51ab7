//! The cases. Each runs in a store of its own.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use fairlead_content::{
    Chunk, CollectOptions, Collected, ContentError, ContentState, ContentStore, Digest, Entry,
    Kind, Manifest, Marks, Owned, Pin,
};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{Place, wall_ms};

const HOUR_MS: u64 = 3_600_000;
const GRACE: Duration = Duration::from_hours(24);
/// Later than the grace period and all pins.
pub(crate) const LATER_MS: u64 = 30 * HOUR_MS;

/// Who names manifests.
#[derive(Debug, Default)]
struct Named(Mutex<BTreeSet<Digest>>);

#[async_trait]
impl Marks for Named {
    async fn named(&self, ids: &[Digest]) -> Result<Vec<bool>, ContentError> {
        let named = self.0.lock().unwrap();
        Ok(ids.iter().map(|id| named.contains(id)).collect())
    }
}

fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap()
}

/// Bytes that no other case has.
fn bytes(many: usize) -> Bytes {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let word = format!(
        "{} of {}; ",
        LAST.fetch_add(1, Ordering::Relaxed),
        std::process::id()
    );
    word.into_bytes().into_iter().cycle().take(many).collect()
}

fn manifest_of(files: &[Bytes]) -> Bytes {
    let entry = |(n, file): (usize, &Bytes)| Entry {
        path: format!("file-{n}"),
        kind: Kind::File {
            executable: false,
            size: size(file),
            digest: Digest::of(file),
            chunks: vec![Chunk::of(file)],
        },
    };
    let entries = files.iter().enumerate().map(entry).collect();
    Manifest::new(entries).unwrap().encode().unwrap().into()
}

fn digests(files: &[Bytes]) -> Vec<Digest> {
    files.iter().map(|file| Digest::of(file)).collect()
}

async fn put(store: &ContentStore, files: &[Bytes]) -> Digest {
    let puts = stream::iter(files).map(|file| store.put_chunk(Digest::of(file), file.clone()));
    puts.buffer_unordered(16).try_collect::<()>().await.unwrap();
    store.put_manifest(manifest_of(files)).await.unwrap().0
}

async fn collect(store: &ContentStore, named: &Named, later_ms: u64, dry_run: bool) -> Collected {
    let options = CollectOptions {
        grace: GRACE,
        dry_run,
        now_ms: wall_ms() + later_ms,
        holder: "suite".to_owned(),
    };
    store.collect(&options, named).await.unwrap()
}

/// A collection that nobody names anything for.
pub(crate) async fn collect_nothing(store: &ContentStore, later_ms: u64) {
    collect(store, &Named::default(), later_ms, false).await;
}

pub(crate) async fn all(place: &Place) {
    puts_and_gets(place.open("puts")).await;
    addresses(place.open("addresses")).await;
    damage(place.open("damage"), place).await;
    collection(place.open("collection")).await;
    pins(place.open("pins")).await;
    many(place.open("many")).await;
    collectors(place.open("collectors")).await;
}

async fn puts_and_gets(store: ContentStore) {
    let files = [bytes(10), bytes(2_000_000), bytes(3)];
    let all = digests(&files);
    assert_eq!(store.missing(&all).await.unwrap(), all);
    store.put_chunk(all[1], files[1].clone()).await.unwrap();
    let twice = [all[0], all[1], all[0], all[2]];
    assert_eq!(store.missing(&twice).await.unwrap(), [all[0], all[2]]);
    let refused = store.put_manifest(manifest_of(&files)).await;
    assert!(
        matches!(&refused, Err(ContentError::ChunksMissing { count: 2, .. })),
        "{refused:?}"
    );
    let id = put(&store, &files).await;
    assert_eq!(put(&store, &files).await, id);
    assert_eq!(store.manifest(id).await.unwrap(), Some(manifest_of(&files)));
    for file in &files {
        assert_eq!(
            store.chunk(Digest::of(file)).await.unwrap().as_ref(),
            Some(file)
        );
    }
    let about = store.about(id).await.unwrap().unwrap();
    assert_eq!((about.files, about.bytes, about.chunks), (3, 2_000_013, 3));
    assert_eq!(store.about(all[0]).await.unwrap(), None);
    let owned = Owned {
        name: "kernel ü / 6.1".to_owned(),
        bytes: about.bytes,
        ..Owned::default()
    };
    for account in ["ann", "ann b/ä", "an"] {
        store.own(account, id, &owned).await.unwrap();
        assert_eq!(store.ids_of(account, None, 9).await.unwrap(), [id]);
    }
    store.disown("an", id).await.unwrap();
    assert_eq!(store.owned("an", id).await.unwrap(), None);
    assert_eq!(store.owned("ann", id).await.unwrap(), Some(owned));
    assert_eq!(store.health().state, ContentState::Well);
}

async fn addresses(store: ContentStore) {
    let (file, lasts) = (bytes(700_000), Duration::from_mins(5));
    let digest = Digest::of(&file);
    let to_put = store.url_to_put(digest, lasts).await.unwrap();
    let to_get = store.url_to_get(digest, lasts).await.unwrap();
    assert_eq!(
        (to_put.is_some(), to_get.is_some()),
        (store.presigns(), store.presigns())
    );
    let (Some(to_put), Some(to_get)) = (to_put, to_get) else {
        return;
    };
    let client = reqwest::Client::new();
    let mut request = client.put(to_put).body(file.clone());
    for (name, value) in store.headers_to_put() {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    assert_eq!(store.missing(&[digest]).await.unwrap(), []);
    assert_eq!(store.chunk(digest).await.unwrap().as_ref(), Some(&file));
    let answer = client.get(&to_get).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    assert_eq!(answer.bytes().await.unwrap(), file);
    // An address is for one object.
    let other = to_get.replace(&digest.to_string(), &Digest::of(b"other").to_string());
    let answer = client.get(other).send().await.unwrap();
    assert!(answer.status().is_client_error(), "{answer:?}");
}

async fn damage(store: ContentStore, place: &Place) {
    let files = [bytes(100), bytes(200)];
    let id = put(&store, &files).await;
    let good = store.check().await.unwrap();
    assert_eq!(
        (good.manifests, good.chunks, good.damaged, good.broken),
        (1, 2, 0, 0)
    );
    assert_eq!(good.bytes, 300 + size(&manifest_of(&files)));
    let digest = Digest::of(&files[0]);
    let mut wrong = files[0].to_vec();
    wrong[50] ^= 1;
    let wrong = Bytes::from(wrong);
    place
        .overwrite("damage", &store, digest, wrong.clone())
        .await;
    let found = store.check().await.unwrap();
    assert_eq!(found.damaged_first, [format!("chunks/{digest}")]);
    assert_eq!((found.damaged, found.broken_first), (1, vec![id]));
    assert_eq!(store.chunk(digest).await.unwrap(), None);
    // The next put sends it again.
    assert_eq!(store.missing(&digests(&files)).await.unwrap(), [digest]);
    assert_eq!(put(&store, &files).await, id);
    assert_eq!(store.check().await.unwrap(), good);
    // A read moves it aside, too.
    let known = store.health().damaged;
    place.overwrite("damage", &store, digest, wrong).await;
    let read = store.chunk(digest).await;
    assert!(
        matches!(&read, Err(ContentError::Damaged { .. })),
        "{read:?}"
    );
    assert!(store.health().damaged > known);
    assert_eq!(store.missing(&digests(&files)).await.unwrap(), [digest]);
    assert_eq!(put(&store, &files).await, id);
    assert_eq!(store.chunk(digest).await.unwrap().as_ref(), Some(&files[0]));
}

async fn collection(store: ContentStore) {
    let shared = bytes(500);
    let (first, second) = ([bytes(100), shared.clone()], [bytes(200), shared.clone()]);
    let (gone, stays) = (put(&store, &first).await, put(&store, &second).await);
    let lost = bytes(50);
    store
        .put_chunk(Digest::of(&lost), lost.clone())
        .await
        .unwrap();
    let owned = Owned::default();
    store.own("ann", gone, &owned).await.unwrap();
    let named = Named::default();
    named.0.lock().unwrap().insert(stays);

    let young = collect(&store, &named, 0, false).await;
    assert_eq!((young.manifests, young.chunks), (2, 4));
    assert_eq!((young.manifests_removed, young.chunks_removed), (0, 0));
    let dry = collect(&store, &named, LATER_MS, true).await;
    assert_eq!((dry.manifests_removed, dry.chunks_removed), (1, 1));
    assert_eq!(store.missing(&digests(&first)).await.unwrap(), []);

    let done = collect(&store, &named, LATER_MS, false).await;
    let manifests = [manifest_of(&first), manifest_of(&second)].map(|manifest| size(&manifest));
    let told = Collected {
        manifests: 2,
        manifests_removed: 1,
        chunks: 4,
        chunks_removed: 2,
        bytes_removed: 150 + manifests[0],
        bytes_kept: 700 + manifests[1],
    };
    assert_eq!(done, told);
    assert_eq!(store.manifest(gone).await.unwrap(), None);
    assert_eq!(store.about(gone).await.unwrap(), None);
    assert_eq!(store.owned("ann", gone).await.unwrap(), None);
    let missing = [Digest::of(&first[0]), Digest::of(&lost)];
    assert_eq!(store.missing(&missing).await.unwrap(), missing);
    assert_eq!(store.missing(&digests(&second)).await.unwrap(), []);

    // An account keeps it for longer than any job.
    let keep_until_ms = wall_ms() + 2 * LATER_MS;
    let owned = Owned {
        keep_until_ms,
        ..Owned::default()
    };
    store.own("ann", stays, &owned).await.unwrap();
    named.0.lock().unwrap().clear();
    let kept = collect(&store, &named, LATER_MS, false).await;
    assert_eq!((kept.manifests_removed, kept.chunks_removed), (0, 0));
    let last = collect(&store, &named, 3 * LATER_MS, false).await;
    assert_eq!(
        (last.manifests_removed, last.chunks_removed, last.bytes_kept),
        (1, 2, 0)
    );
    assert_eq!(store.ids_of("ann", None, 9).await.unwrap(), []);
}

async fn pins(store: ContentStore) {
    let (file, named) = (bytes(10), Named::default());
    let digest = Digest::of(&file);
    store.put_chunk(digest, file).await.unwrap();
    let pin = |put: &str, hours: u64| Pin {
        put: put.to_owned(),
        until_ms: wall_ms() + hours * HOUR_MS,
        digests: BTreeSet::from([digest]),
    };
    store.pin(&pin("a", 40)).await.unwrap();
    store.pin(&pin("b", 1_000_000)).await.unwrap();
    let removed = async |later_ms| {
        collect(&store, &named, later_ms, false)
            .await
            .chunks_removed
    };
    assert_eq!(removed(LATER_MS).await, 0);
    store.unpin("b").await.unwrap();
    assert_eq!(removed(LATER_MS).await, 0);
    assert_eq!(removed(2 * LATER_MS).await, 1);
    // No pin counts for ever.
    let file = bytes(10);
    let digest = Digest::of(&file);
    store.put_chunk(digest, file).await.unwrap();
    store.pin(&pin("c", 1_000_000)).await.unwrap();
    assert_eq!(removed(9 * 24 * HOUR_MS).await, 1);
}

/// More than object stores delete in one request.
async fn many(store: ContentStore) {
    let files: Vec<Bytes> = (0..1_100).map(|_| bytes(20)).collect();
    let id = put(&store, &files).await;
    assert_eq!(store.missing(&digests(&files)).await.unwrap(), []);
    assert_eq!(store.check().await.unwrap().chunks, 1_100);
    let removed = collect(&store, &Named::default(), LATER_MS, false).await;
    assert_eq!(
        (removed.manifests_removed, removed.chunks_removed),
        (1, 1_100)
    );
    assert_eq!(store.manifest(id).await.unwrap(), None);
    assert_eq!(store.missing(&digests(&files)).await.unwrap().len(), 1_100);
}

/// Of some that begin together, one collects; the others do nothing, or come after it.
async fn collectors(store: ContentStore) {
    let files = [bytes(10), bytes(20)];
    put(&store, &files).await;
    let collectors = (0..6).map(|n| {
        let store = store.clone();
        async move {
            let options = CollectOptions {
                grace: GRACE,
                dry_run: false,
                now_ms: wall_ms() + LATER_MS,
                holder: format!("replica-{n}"),
            };
            store.collect(&options, &Named::default()).await
        }
    });
    let mut removed = 0;
    for told in futures_util::future::join_all(collectors).await {
        match told {
            Ok(told) => removed += told.chunks_removed,
            Err(ContentError::CollectedByAnother(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    if store.presigns() {
        // The server of the tests looks whether a name is free and then writes, which is not one step.
        assert!(removed >= 2, "{removed}");
    } else {
        assert_eq!(removed, 2);
    }
}
