//! One set of cases for each place where content lies: memory, a folder, and an object store.
//!
//! The object store is `s3s-fs`, which the suite starts. `FAIRLEAD_CONTENT_AT` names another one, for example
//! `s3://BUCKET` or `az://CONTAINER`. Its credentials come from the usual variables.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod cases;
mod server;
mod slow;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use bytes::Bytes;
use fairlead_content::{Clock, ContentStore, Digest, Location};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

use self::server::{BUCKET, Server, variable};

#[expect(
    clippy::disallowed_methods,
    reason = "the stores of the suite live in real time"
)]
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// Real time, but nobody waits long.
#[derive(Debug)]
struct Hasty(Instant);

#[async_trait]
impl Clock for Hasty {
    fn wall_ms(&self) -> u64 {
        wall_ms()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, _: Duration) {
        tokio::task::yield_now().await;
    }

    fn fresh(&self) -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }
}

/// Where the cases' stores lie.
#[derive(Debug)]
pub(crate) enum Place {
    Memory(Arc<parking_lot::Mutex<Arc<InMemory>>>),
    Folder(PathBuf),
    Remote {
        at: String,
        variables: Vec<(String, String)>,
    },
}

impl Place {
    /// An empty store of this name.
    #[expect(clippy::disallowed_methods, reason = "the clock of the suite")]
    pub(crate) fn open(&self, name: &str) -> ContentStore {
        let store = match self {
            Self::Memory(last) => {
                let objects = Arc::new(InMemory::new());
                *last.lock() = Arc::clone(&objects);
                ContentStore::over(objects, None)
            }
            Self::Folder(folder) => Location::Folder(folder.join(name)).open().unwrap(),
            Self::Remote { at, variables } => {
                let location: Location = format!("{at}/{name}").parse().unwrap();
                location.open_with(variables.clone()).unwrap()
            }
        };
        store.with_clock(Arc::new(Hasty(Instant::now())))
    }

    /// Damages a chunk behind the store's back.
    pub(crate) async fn overwrite(
        &self,
        name: &str,
        store: &ContentStore,
        digest: Digest,
        bytes: Bytes,
    ) {
        let digits = digest.to_string();
        let chunk = format!("chunks/{}/{digits}", &digits[..2]);
        match self {
            Self::Memory(last) => {
                let objects = Arc::clone(&last.lock());
                objects.put(&Path::from(chunk), bytes.into()).await.unwrap();
            }
            Self::Folder(folder) => std::fs::write(folder.join(name).join(chunk), bytes).unwrap(),
            Self::Remote { .. } => {
                let url = store
                    .url_to_put(digest, Duration::from_mins(1))
                    .await
                    .unwrap();
                let mut request = reqwest::Client::new().put(url.unwrap()).body(bytes);
                for (name, value) in store.headers_to_put() {
                    request = request.header(*name, *value);
                }
                let answer = request.send().await.unwrap();
                assert!(answer.status().is_success(), "{answer:?}");
            }
        }
    }
}

#[tokio::test]
async fn in_memory() {
    cases::all(&Place::Memory(Arc::default())).await;
}

#[tokio::test]
async fn in_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    cases::all(&Place::Folder(dir.path().to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_an_object_store() {
    let of_mine = format!("suite-{}", wall_ms());
    if let Some(at) = variable("FAIRLEAD_CONTENT_AT") {
        let at = format!("{}/{of_mine}", at.trim_end_matches('/'));
        let variables = std::env::vars().collect();
        cases::all(&Place::Remote { at, variables }).await;
        return;
    }
    let server = Server::start();
    let at = format!("s3://{BUCKET}/{of_mine}");
    let variables = server.variables();
    cases::all(&Place::Remote { at, variables }).await;
}

/// A process that ends in the middle of a write leaves a file under another name.
#[tokio::test]
async fn half_written_files_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = Location::Folder(dir.path().to_owned()).open().unwrap();
    let bytes = Bytes::from_static(b"whole");
    let digest = Digest::of(&bytes);
    store.put_chunk(digest, bytes.clone()).await.unwrap();
    let digits = digest.to_string();
    let half = dir
        .path()
        .join(format!("chunks/{}/{digits}#7", &digits[..2]));
    std::fs::write(&half, b"wh").unwrap();
    cases::collect_nothing(&store, 0).await;
    assert!(half.exists());
    assert_eq!(store.chunk(digest).await.unwrap(), Some(bytes));
    let days_ago = UNIX_EPOCH + Duration::from_millis(wall_ms() - 2 * cases::LATER_MS);
    let file = std::fs::File::options().write(true).open(&half).unwrap();
    file.set_modified(days_ago).unwrap();
    cases::collect_nothing(&store, cases::LATER_MS).await;
    assert!(!half.exists());
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(
        left.len(),
        1,
        "only the collector's number is left: {left:?}"
    );
}
