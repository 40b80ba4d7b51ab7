//! The content of the fake scheduler: a real store in a folder, so that a test can damage it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use fairlead_api::{
    ContentMissing, ContentPin, ContentUrls, ContentView, GrantInput, MissingChunk,
};
use fairlead_content::{
    ContentError, ContentStore, Digest, Location,
    transfer::{PutOptions, put},
};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use warp::{Reply, http::Method, reply::Response};

use crate::fake::{Query, refusal};

/// Content store of the fake lab, with records of its requests.
#[derive(Debug)]
pub(crate) struct Store {
    folder: TempDir,
    content: ContentStore,
    /// Digests of chunks that were read, in order.
    read: Mutex<Vec<String>>,
    /// Number of chunks that were sent.
    sent: AtomicUsize,
    /// True if chunks find no room.
    pub(crate) is_full: AtomicBool,
    /// Permits for chunks that are sent or read.
    pub(crate) may: Semaphore,
}

impl Store {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let content = Location::Folder(folder.path().join("content")).open();
        Self {
            content: content.unwrap(),
            folder,
            read: Mutex::default(),
            sent: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            may: Semaphore::new(1_000_000),
        }
    }

    /// Stores files, each with its path. A path with `*` at its end is executable. Returns the id.
    pub(crate) async fn put(&self, files: &[(&str, &[u8])]) -> Digest {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let to = folder.path().join(path.trim_end_matches('*'));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::write(&to, bytes).unwrap();
            if path.ends_with('*') {
                fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        self.put_folder(&folder).await
    }

    pub(crate) async fn put_folder(&self, folder: &TempDir) -> Digest {
        let path = folder.path().to_owned();
        let put = put(&self.content, path, &PutOptions::default(), &|_| {}).await;
        put.unwrap().id
    }

    /// Returns the content under an id: path and bytes of its files, and the targets of its links.
    pub(crate) async fn files(&self, id: &str) -> Vec<(String, String)> {
        let (id, to) = (id.parse().unwrap(), tempfile::tempdir().unwrap());
        let options = fairlead_content::transfer::GetOptions::default();
        let into = to.path().join("got");
        fairlead_content::transfer::get(&self.content, id, into.clone(), &options, &|_| {})
            .await
            .unwrap();
        let manifest = self.content.manifest(id).await.unwrap().unwrap();
        let manifest = fairlead_content::Manifest::decode(&manifest).unwrap();
        let entries = manifest.entries().iter().map(|entry| {
            let path = into.join(&entry.path);
            let held = match fs::read_link(&path) {
                Ok(target) => target.to_str().unwrap().to_owned(),
                Err(_) => fs::read_to_string(&path).unwrap_or_default(),
            };
            (entry.path.clone(), held)
        });
        entries.collect()
    }

    /// Returns the number of chunks that were read since the last call.
    pub(crate) fn reads(&self) -> usize {
        self.read.lock().unwrap().drain(..).count()
    }

    /// Returns the number of chunks that were sent.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    /// Returns the file of a chunk with these bytes.
    pub(crate) fn chunk_file(&self, bytes: &[u8]) -> PathBuf {
        let digest = Digest::of(bytes).to_string();
        let chunks = self.folder.path().join("content/chunks");
        chunks.join(&digest[..2]).join(digest)
    }

    /// Answers a request below `content/`.
    pub(crate) async fn answer(
        &self,
        method: Method,
        path: &str,
        query: &Query,
        body: Bytes,
    ) -> Response {
        let parts: Vec<&str> = path.split('/').collect();
        let answered = match (method.as_str(), parts.as_slice()) {
            ("POST", ["pin"]) => self.pin(&body).await,
            ("POST", ["urls"]) => Ok(json(&ContentUrls::default())),
            ("PUT", ["chunks", _]) if self.is_full.load(Ordering::SeqCst) => {
                return refusal(507, "there is no room");
            }
            ("PUT", ["chunks", digest]) => {
                self.may.acquire().await.unwrap().forget();
                self.sent.fetch_add(1, Ordering::SeqCst);
                let put = self.content.put_chunk(digest.parse().unwrap(), body).await;
                put.map(|()| json(&serde_json::json!({"size": 0})))
            }
            ("GET", ["chunks", digest]) => {
                self.may.acquire().await.unwrap().forget();
                self.read.lock().unwrap().push((*digest).to_owned());
                assert_eq!(query["id"].len(), 64);
                let found = self.content.chunk(digest.parse().unwrap()).await;
                found.map(|found| found_or_gone(found, "there is no chunk"))
            }
            ("POST", ["manifests"]) => self.content.put_manifest(body).await.map(|(id, _)| {
                json(&ContentView {
                    id: id.to_string(),
                    ..ContentView::default()
                })
            }),
            ("GET", ["manifests", id]) => {
                let found = self.content.manifest(id.parse().unwrap()).await;
                found.map(|found| found_or_gone(found, "there is no content"))
            }
            _ => Ok(refusal(404, "no such path")),
        };
        answered.unwrap_or_else(|error| refusal(400, &error.to_string()))
    }

    async fn pin(&self, body: &[u8]) -> Result<Response, ContentError> {
        let pin: ContentPin = serde_json::from_slice(body).unwrap();
        let chunks: Vec<Digest> = pin.chunks.iter().map(|one| one.parse().unwrap()).collect();
        let missing = self.content.missing(&chunks).await?;
        let missing = missing.iter().map(|digest| MissingChunk {
            digest: digest.to_string(),
            ..MissingChunk::default()
        });
        Ok(json(&ContentMissing {
            missing: missing.collect(),
            until_ms: u64::MAX,
        }))
    }
}

fn json(answer: &impl serde::Serialize) -> Response {
    warp::reply::json(answer).into_response()
}

fn found_or_gone(found: Option<Bytes>, gone: &str) -> Response {
    match found {
        Some(bytes) => Response::new(bytes.into()),
        None => refusal(404, gone),
    }
}

/// Returns an input in its own folder.
pub(crate) fn input(id: Digest, folder: &str) -> GrantInput {
    GrantInput {
        id: id.to_string(),
        folder: folder.to_owned(),
    }
}
