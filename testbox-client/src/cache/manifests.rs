//! The manifests of inputs that jobs had lately: where their chunks lie in files of the cache, and which words tell the
//! scheduler of them.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fairlead_content::{Chunk, Digest, Entry, Kind, Manifest, sketch, words};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use super::{files::Files, key::FileKey};

/// Maximum number of cached manifests.
pub(crate) const MANIFESTS_MAX: usize = 256;
/// Maximum size of all cached manifests, bytes. The newest one is kept at any size.
pub(crate) const MANIFESTS_BYTES_MAX: usize = 32 << 20;
/// Maximum number of words in a request for work, a limit of the protocol.
const WORDS_MAX: usize = 2_048;
const NEXT: &str = "next";

/// The manifests of a cache.
#[derive(Debug)]
pub(crate) struct Manifests {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Manifests, that of the latest input first.
    held: VecDeque<Held>,
    /// Positions of chunks in files.
    chunks: HashMap<Digest, Piece>,
    words: Vec<String>,
}

#[derive(Debug, Clone)]
struct Held {
    id: Digest,
    bytes: usize,
    manifest: Arc<Manifest>,
}

/// Position of a chunk in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) file: FileKey,
    /// Number of bytes before it.
    pub(crate) offset: u64,
    /// Size of the chunk, bytes.
    pub(crate) size: u32,
}

impl Manifests {
    /// Reads the manifests that an earlier agent left below the cache's `folder`. Files that do not match their name
    /// are removed. Blocks.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let folder = folder.join("manifests");
        fs::create_dir_all(&folder)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.parse::<Digest>().ok());
            if let Some(id) = id {
                found.push((entry.metadata()?.modified()?, id));
            }
        }
        found.sort_unstable();
        let manifests = Self {
            folder,
            state: Mutex::default(),
        };
        let mut state = manifests.state.lock();
        for (_, id) in found {
            match read(&manifests.folder, id) {
                Ok(held) => manifests.add(&mut state, held),
                Err(error) => {
                    tracing::warn!(%id, %error, "a manifest of the cache of inputs is damaged; it is dropped");
                    manifests.remove(id);
                }
            }
        }
        drop(state);
        Ok(manifests)
    }

    /// Returns the manifest of this id, if it is cached.
    pub(crate) fn get(&self, id: Digest) -> Option<Arc<Manifest>> {
        let state = self.state.lock();
        let found = state.held.iter().find(|held| held.id == id);
        found.map(|held| Arc::clone(&held.manifest))
    }

    /// Notes that a job got this input. `bytes` has the manifest, if it was not cached. Blocks.
    pub(crate) fn note(
        &self,
        id: Digest,
        manifest: &Arc<Manifest>,
        bytes: Option<&[u8]>,
    ) -> io::Result<()> {
        let mut state = self.state.lock();
        let at = state.held.iter().position(|held| held.id == id);
        if let Some(held) = at.and_then(|at| state.held.remove(at)) {
            state.held.push_front(held);
            return used_now(&self.folder.join(id.to_string()));
        }
        let Some(bytes) = bytes else { return Ok(()) };
        let next = self.folder.join(NEXT);
        fs::write(&next, bytes)?;
        fs::rename(next, self.folder.join(id.to_string()))?;
        let held = Held {
            id,
            bytes: bytes.len(),
            manifest: Arc::clone(manifest),
        };
        self.add(&mut state, held);
        Ok(())
    }

    /// Returns the position of a chunk in a file that is or was cached.
    pub(crate) fn piece(&self, chunk: Digest) -> Option<Piece> {
        self.state.lock().chunks.get(&chunk).copied()
    }

    /// Returns the words for the scheduler: those of the cached chunks, newest inputs first.
    pub(crate) fn words(&self) -> Vec<String> {
        self.state.lock().words.clone()
    }

    /// Computes the words again, after files came or went. Blocks.
    pub(crate) fn refresh(&self, files: &Files) {
        let held: Vec<Held> = self.state.lock().held.iter().cloned().collect();
        let words = words_of(&held, |file| files.has(file));
        self.state.lock().words = words;
    }

    fn add(&self, state: &mut State, held: Held) {
        for (chunk, piece) in pieces(&held.manifest) {
            state.chunks.insert(chunk, piece);
        }
        state.held.push_front(held);
        let mut dropped = false;
        while state.held.len() > 1 && is_too_much(&state.held) {
            let Some(oldest) = state.held.pop_back() else {
                break;
            };
            self.remove(oldest.id);
            dropped = true;
        }
        if dropped {
            let all = state.held.iter().rev();
            state.chunks = all.flat_map(|held| pieces(&held.manifest)).collect();
        }
    }

    fn remove(&self, id: Digest) {
        let path = self.folder.join(id.to_string());
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(file = %path.display(), %error, "cannot remove a manifest of the cache of inputs");
        }
    }
}

fn is_too_much(held: &VecDeque<Held>) -> bool {
    let bytes = held
        .iter()
        .fold(0_usize, |sum, held| sum.saturating_add(held.bytes));
    held.len() > MANIFESTS_MAX || bytes > MANIFESTS_BYTES_MAX
}

fn read(folder: &Path, id: Digest) -> Result<Held, String> {
    let bytes = fs::read(folder.join(id.to_string())).map_err(|error| error.to_string())?;
    if Digest::of(&bytes) != id {
        return Err("its bytes have another digest".to_owned());
    }
    let manifest = Manifest::decode(&bytes).map_err(|error| error.to_string())?;
    Ok(Held {
        id,
        bytes: bytes.len(),
        manifest: Arc::new(manifest),
    })
}

/// Returns the key and the chunks of an entry that is a file.
pub(crate) fn file_of(entry: &Entry) -> Option<(FileKey, &[Chunk])> {
    match &entry.kind {
        Kind::File {
            executable,
            digest,
            chunks,
            ..
        } => {
            let key = FileKey {
                digest: *digest,
                executable: *executable,
            };
            Some((key, chunks))
        }
        Kind::Link { .. } | Kind::EmptyFolder => None,
    }
}

/// Returns the position of each chunk of a manifest.
fn pieces(manifest: &Manifest) -> impl Iterator<Item = (Digest, Piece)> {
    let files = manifest.entries().iter().filter_map(file_of);
    files.flat_map(|(file, chunks)| {
        let mut offset = 0_u64;
        chunks.iter().map(move |chunk| {
            let piece = Piece {
                file,
                offset,
                size: chunk.size,
            };
            offset = offset.saturating_add(u64::from(chunk.size));
            (chunk.digest, piece)
        })
    })
}

/// Returns the words of the chunks of cached files: first those of the sketches, because jobs are compared by them.
/// Then come all others of the newest inputs.
fn words_of(held: &[Held], is_here: impl Fn(FileKey) -> bool) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut known = BTreeSet::new();
    let mut say = |words: Vec<String>| {
        for word in words {
            if known.len() < WORDS_MAX && known.insert(word.clone()) {
                said.push(word);
            }
        }
        known.len() < WORDS_MAX
    };
    let chunks_here = |held: &Held| -> Vec<Chunk> {
        let files = held.manifest.entries().iter().filter_map(file_of);
        let here = files.filter(|(file, _)| is_here(*file));
        here.flat_map(|(_, chunks)| chunks.iter().copied())
            .collect()
    };
    for held in held {
        if !say(sketch(chunks_here(held))) {
            return said;
        }
    }
    for held in held {
        if !say(words(chunks_here(held).iter().map(|chunk| chunk.digest))) {
            break;
        }
    }
    said
}

fn used_now(path: &Path) -> io::Result<()> {
    let now = || Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now(),
        last_modification: now(),
    };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
