//! Which files are in the cache, who uses them, and which go first.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};

use super::{key::FileKey, reading::open, unfinished::Unfinished};
use crate::lock::Lock;

/// Maximum number of files in a cache.
pub(crate) const CACHED_FILES_MAX: usize = 1_000_000;
/// Default maximum size of a cache, bytes. It is less on a small disk.
const BYTES_MAX: u64 = 20 << 30;
/// Default maximum fraction (1/N) of its disk that a cache takes.
const DISK_PART: u64 = 10;
/// Minimum disk space of a file, bytes.
const BLOCK_BYTES: u64 = 4096;
const FILES: &str = "files";
const NEW: &str = "new";

/// Files of a cache.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
    _lock: Lock,
}

#[derive(Debug, Default)]
struct State {
    kept: HashMap<FileKey, Kept>,
    /// Files by the number of their last use. The least recently used one comes first.
    by_use: BTreeMap<u64, FileKey>,
    /// Size of all cached files, bytes.
    bytes: u64,
    /// Size of files being fetched, bytes.
    promised: u64,
    /// Number of jobs that use a file now, and the file's size in bytes.
    in_use: HashMap<FileKey, (u32, u64)>,
    /// Size of all files in use, bytes.
    bytes_in_use: u64,
    /// Last number that was assigned.
    last: u64,
}

#[derive(Debug)]
struct Kept {
    bytes: u64,
    /// Number of its last use.
    used: u64,
    /// Number of its creation. A file that is dropped and created again gets a new number.
    made: u64,
}

/// Marks a file as in use by a job until dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    files: Arc<Files>,
    key: FileKey,
    made: u64,
}

/// Reserved room for a file being fetched.
#[derive(Debug)]
pub(crate) struct Room {
    files: Arc<Files>,
    bytes: u64,
}

impl Files {
    /// Opens the cache in `folder`, which one agent at a time uses, and evicts files over the limit. `bytes_max` of
    /// `None`: 20 GB, or a tenth of a smaller disk. Blocks.
    pub(crate) fn open(folder: &Path, bytes_max: Option<u64>) -> io::Result<Arc<Self>> {
        for part in ["", FILES, NEW] {
            let mut make = DirBuilder::new();
            make.recursive(true).mode(0o700).create(folder.join(part))?;
        }
        let lock = Lock::take(&folder.join("lock"))?.ok_or_else(|| {
            io::Error::other(
                "another agent uses this cache (hint: give each agent its own --input-cache-dir)",
            )
        })?;
        sweep(&folder.join(NEW))?;
        let bytes_max = match bytes_max {
            Some(bytes) => bytes,
            None => BYTES_MAX.min(disk_bytes(folder)? / DISK_PART),
        };
        let state = found(&folder.join(FILES))?;
        let files = Self {
            folder: folder.to_owned(),
            bytes_max,
            state: Mutex::new(state),
            _lock: lock,
        };
        let mut state = files.state.lock();
        files.evict(&mut state, |state| state.is_within(bytes_max, 0));
        tracing::info!(
            folder = %folder.display(),
            files = state.kept.len(),
            bytes = state.bytes,
            bytes_max,
            "the cache of inputs is open"
        );
        drop(state);
        Ok(Arc::new(files))
    }

    /// Notes a use of a file, and protects it from eviction. `None`: it is not cached.
    pub(crate) fn hold(self: &Arc<Self>, key: FileKey) -> Option<Hold> {
        let mut state = self.state.lock();
        let made = state.touch(key)?;
        state.use_more(key);
        drop(state);
        // Only a restart reads the access time, and without it the order is only a little wrong.
        drop(accessed_now(&self.path(key)));
        Some(Hold {
            files: Arc::clone(self),
            key,
            made,
        })
    }

    /// Returns true if the file is cached.
    pub(crate) fn has(&self, key: FileKey) -> bool {
        self.state.lock().kept.contains_key(&key)
    }

    /// Reads bytes of a file, without a check of their content. `None`: they cannot be read. Blocks.
    pub(crate) fn read(&self, key: FileKey, offset: u64, bytes: u32) -> Option<Vec<u8>> {
        if !self.has(key) {
            return None;
        }
        let file = open(&self.path(key)).ok()?;
        let mut read = vec![0; usize::try_from(bytes).ok()?];
        file.read_exact_at(&mut read, offset).ok()?;
        Some(read)
    }

    /// Reserves room for a file, and evicts others for it. `None`: it does not fit beside the files in use. Blocks.
    pub(crate) fn room(self: &Arc<Self>, bytes: u64) -> Option<Room> {
        let bytes = on_disk(bytes);
        let mut state = self.state.lock();
        let fixed = state.bytes_in_use.saturating_add(state.promised);
        if fixed.saturating_add(bytes) > self.bytes_max {
            return None;
        }
        self.evict(&mut state, |state| state.is_within(self.bytes_max, bytes));
        state.promised = state.promised.saturating_add(bytes);
        drop(state);
        Some(Room {
            files: Arc::clone(self),
            bytes,
        })
    }

    /// Evicts unused files of at least this size together, because the disk is full. Returns false if there were none.
    /// Blocks.
    pub(crate) fn give_back(&self, bytes: u64) -> bool {
        let mut state = self.state.lock();
        let before = state.bytes;
        let goal = before.saturating_sub(on_disk(bytes));
        self.evict(&mut state, |state| state.bytes <= goal);
        state.bytes < before
    }

    /// Evicts the least recently used files that no job uses, until `enough` is true.
    fn evict(&self, state: &mut State, enough: impl Fn(&State) -> bool) {
        let mut from = 0;
        while !enough(state) {
            let next = state
                .by_use
                .range(from..)
                .find(|(_, key)| !state.in_use.contains_key(key));
            let Some((&used, &key)) = next else { return };
            from = used;
            state.remove(key);
            remove(&self.path(key));
        }
    }

    fn path(&self, key: FileKey) -> PathBuf {
        key.path(&self.folder.join(FILES))
    }
}

impl Hold {
    /// Returns the path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.files.path(self.key)
    }

    /// Removes the damaged file, unless somebody already did. Blocks.
    pub(super) fn drop_damaged(&self) {
        let mut state = self.files.state.lock();
        let kept = state.kept.get(&self.key);
        if kept.is_some_and(|kept| kept.made == self.made) {
            state.remove(self.key);
            remove(&self.path());
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.files.state.lock().use_less(self.key);
    }
}

impl Room {
    /// Returns a new path for a file being made.
    pub(super) fn path(&self) -> PathBuf {
        let number = self.files.state.lock().next();
        self.files.folder.join(NEW).join(number.to_string())
    }

    /// Adds a complete file under this key, in use. It is not synced, because every read verifies the hash. Blocks.
    pub(super) fn keep(self, key: FileKey, file: Unfinished) -> io::Result<Hold> {
        let files = &self.files;
        let to = files.path(key);
        if let Some(folder) = to.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let mut state = files.state.lock();
        file.move_to(&to, key.mode())?;
        state.remove(key);
        let made = state.add(key, self.bytes);
        state.use_more(key);
        drop(state);
        Ok(Hold {
            files: Arc::clone(files),
            key,
            made,
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.files.state.lock();
        state.promised = state.promised.saturating_sub(self.bytes);
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adds a file, and returns the number of its creation.
    fn add(&mut self, key: FileKey, bytes: u64) -> u64 {
        let number = self.next();
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_use.insert(number, key);
        self.kept.insert(
            key,
            Kept {
                bytes,
                used: number,
                made: number,
            },
        );
        number
    }

    fn remove(&mut self, key: FileKey) {
        if let Some(kept) = self.kept.remove(&key) {
            self.by_use.remove(&kept.used);
            self.bytes = self.bytes.saturating_sub(kept.bytes);
        }
    }

    /// Notes a use, and returns the number of the file's creation. `None`: it is not cached.
    fn touch(&mut self, key: FileKey) -> Option<u64> {
        let number = self.next();
        let kept = self.kept.get_mut(&key)?;
        self.by_use.remove(&kept.used);
        kept.used = number;
        self.by_use.insert(number, key);
        Some(kept.made)
    }

    fn use_more(&mut self, key: FileKey) {
        let bytes = self.kept.get(&key).map_or(0, |kept| kept.bytes);
        let (users, _) = self.in_use.entry(key).or_insert((0, bytes));
        if *users == 0 {
            self.bytes_in_use = self.bytes_in_use.saturating_add(bytes);
        }
        *users = users.saturating_add(1);
    }

    fn use_less(&mut self, key: FileKey) {
        let Some((users, bytes)) = self.in_use.get_mut(&key) else {
            return;
        };
        *users = users.saturating_sub(1);
        if *users == 0 {
            self.bytes_in_use = self.bytes_in_use.saturating_sub(*bytes);
            self.in_use.remove(&key);
        }
    }

    /// Returns true if one more file of `more` bytes fits.
    fn is_within(&self, bytes_max: u64, more: u64) -> bool {
        let all = self
            .bytes
            .saturating_add(self.promised)
            .saturating_add(more);
        all <= bytes_max && self.kept.len() < CACHED_FILES_MAX
    }
}

/// Returns the disk space of a file, bytes.
fn on_disk(bytes: u64) -> u64 {
    bytes
        .max(1)
        .checked_next_multiple_of(BLOCK_BYTES)
        .unwrap_or(u64::MAX)
}

fn disk_bytes(folder: &Path) -> io::Result<u64> {
    let about = rustix::fs::statvfs(folder)?;
    Ok(about.f_blocks.saturating_mul(about.f_frsize))
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(file = %path.display(), %error, "cannot remove a file of the cache of inputs");
    }
}

/// Removes unfinished files of an earlier agent.
fn sweep(new: &Path) -> io::Result<()> {
    for entry in fs::read_dir(new)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = name
            .to_str()
            .is_some_and(|name| name.parse::<u64>().is_ok());
        if is_ours && !entry.file_type()?.is_dir() {
            remove(&entry.path());
        }
    }
    Ok(())
}

/// Returns the files that an earlier agent left, in the order of their last use. Other files in the folder are ignored.
fn found(folder: &Path) -> io::Result<State> {
    let mut found = Vec::new();
    for spread in fs::read_dir(folder)? {
        let spread = spread?;
        if !spread.file_type()?.is_dir() {
            continue;
        }
        for entry in fs::read_dir(spread.path())? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(key) = name.to_str().and_then(FileKey::of_name) else {
                continue;
            };
            let about = fs::symlink_metadata(entry.path())?;
            if about.is_file() && key.path(folder) == entry.path() {
                found.push((
                    (about.atime(), about.atime_nsec()),
                    key,
                    on_disk(about.len()),
                ));
            }
        }
    }
    found.sort_unstable();
    let mut state = State::default();
    for (_, key, bytes) in found {
        state.add(key, bytes);
    }
    Ok(state)
}

/// Sets the access time, and keeps the modification time, because a job may use this same file.
fn accessed_now(path: &Path) -> io::Result<()> {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps {
        last_access: time(UTIME_NOW),
        last_modification: time(UTIME_OMIT),
    };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
