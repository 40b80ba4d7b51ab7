//! Tests of the cache of inputs, with a lab that is a list of files.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use fairlead_content::{Chunk, Digest, Entry, Kind, Manifest};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    files::Files,
    give::{Cache, Fetch, GiveError},
    key::{FileKey, Wanted},
    manifests::{MANIFESTS_MAX, Manifests},
    place::Way,
};

/// Fake lab with one file.
struct Lab {
    bytes: Vec<u8>,
    fetches: AtomicUsize,
    damaged: AtomicUsize,
    /// Permits of fetches.
    may: Semaphore,
    /// Number of fetches that find the disk full.
    full: AtomicUsize,
}

impl Lab {
    fn with(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            fetches: AtomicUsize::new(0),
            damaged: AtomicUsize::new(0),
            may: Semaphore::new(1_000),
            full: AtomicUsize::new(0),
        }
    }

    fn wanted(&self) -> Wanted {
        wanted(&self.bytes)
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    fn damaged(&self) -> usize {
        self.damaged.load(Ordering::SeqCst)
    }
}

impl Fetch for Lab {
    async fn fetch(&self, mut into: File) -> Result<(), GiveError> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        self.may.acquire().await.unwrap().forget();
        let full = self.full.load(Ordering::SeqCst);
        if full > 0 {
            self.full.store(full - 1, Ordering::SeqCst);
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
        }
        Ok(into.write_all(&self.bytes)?)
    }

    fn damaged(&self) {
        self.damaged.fetch_add(1, Ordering::SeqCst);
    }
}

fn wanted(bytes: &[u8]) -> Wanted {
    Wanted {
        key: FileKey {
            digest: Digest::of(bytes),
            executable: false,
        },
        bytes: u64::try_from(bytes.len()).unwrap(),
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Returns a cache with room for this number of small files.
fn cache(folder: &TempDir, files: u64) -> Cache {
    Cache::open(&folder.path().join("cache"), Some(files * 4096)).unwrap()
}

/// Returns the path of the cached file with these bytes.
fn kept(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    wanted(bytes).key.path(&folder.path().join("cache/files"))
}

fn rewrite(path: &Path, bytes: &[u8]) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
}

fn last_access(path: &Path, second: i64) {
    let time = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
    let times = Timestamps {
        last_access: time(second),
        last_modification: time(0),
    };
    utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
}

const GO: fn() -> CancellationToken = CancellationToken::new;

#[tokio::test]
async fn a_file_is_fetched_once_and_read_only_in_the_folder_of_a_job() {
    let (dir, lab) = (folder(), Lab::with(b"abc"));
    let cache = cache(&dir, 10);
    for (nth, way) in [Way::Copy, Way::Link, Way::Copy].into_iter().enumerate() {
        let to = dir.path().join(nth.to_string());
        let hold = cache.give(lab.wanted(), &to, way, &GO(), &lab).await;
        assert!(hold.unwrap().is_some());
        assert_eq!(fs::read(&to).unwrap(), b"abc");
        let about = fs::metadata(&to).unwrap();
        assert_eq!(about.mode() & 0o7777, 0o444);
        let is_cached = about.ino() == fs::metadata(kept(&dir, b"abc")).unwrap().ino();
        assert_eq!(is_cached, way == Way::Link);
    }
    assert_eq!((lab.fetches(), lab.damaged()), (1, 0));
    let runs = Wanted {
        key: FileKey {
            executable: true,
            ..lab.wanted().key
        },
        ..lab.wanted()
    };
    let to = dir.path().join("runs");
    cache.give(runs, &to, Way::Link, &GO(), &lab).await.unwrap();
    assert_eq!(fs::metadata(&to).unwrap().mode() & 0o7777, 0o555);
}

#[tokio::test]
async fn a_flipped_byte_is_never_given_and_is_told_and_healed() {
    for way in [Way::Copy, Way::Link] {
        let (dir, lab) = (folder(), Lab::with(&vec![7; 300_000]));
        let cache = cache(&dir, 1_000);
        let mut expected = 0;
        for (nth, damage) in [
            None,
            Some([vec![7; 299_999], b"x".to_vec()].concat()),
            Some(b"short".to_vec()),
        ]
        .into_iter()
        .enumerate()
        {
            if let Some(damage) = damage {
                rewrite(&kept(&dir, &lab.bytes), &damage);
                expected += 1;
            }
            let to = dir.path().join(nth.to_string());
            let given = cache.give(lab.wanted(), &to, way, &GO(), &lab).await;
            assert!(given.unwrap().is_some());
            assert!(fs::read(&to).unwrap() == lab.bytes);
            assert_eq!((lab.fetches(), lab.damaged()), (expected + 1, expected));
        }
        // A link in place of the file is not followed, and a missing file is fetched.
        let (path, other) = (kept(&dir, &lab.bytes), dir.path().join("other"));
        fs::write(&other, &lab.bytes).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let to = dir.path().join("last");
        cache
            .give(lab.wanted(), &to, way, &GO(), &lab)
            .await
            .unwrap();
        assert!(fs::symlink_metadata(&to).unwrap().is_file());
        assert!(fs::read(&to).unwrap() == lab.bytes && lab.damaged() == expected + 1);
    }
}

#[tokio::test]
async fn a_file_that_others_may_write_to_is_not_linked() {
    let (dir, lab) = (folder(), Lab::with(b"abc"));
    let cache = cache(&dir, 10);
    let give = async |name: &str| {
        let to = dir.path().join(name);
        cache
            .give(lab.wanted(), &to, Way::Link, &GO(), &lab)
            .await
            .unwrap();
        fs::metadata(to).unwrap().mode() & 0o7777
    };
    give("a").await;
    let open = fs::Permissions::from_mode(0o666);
    fs::set_permissions(kept(&dir, b"abc"), open).unwrap();
    assert_eq!(give("b").await, 0o444);
    assert_eq!(lab.damaged(), 1);
}

#[tokio::test]
async fn two_jobs_at_once_share_a_fetch() {
    let (dir, lab) = (folder(), Arc::new(Lab::with(b"abc")));
    lab.may.forget_permits(1_000);
    let cache = Arc::new(cache(&dir, 10));
    let mut jobs = tokio::task::JoinSet::new();
    for nth in 0..5 {
        let (cache, lab) = (Arc::clone(&cache), Arc::clone(&lab));
        let to = dir.path().join(nth.to_string());
        jobs.spawn(async move {
            let given = cache.give(lab.wanted(), &to, Way::Copy, &GO(), &*lab).await;
            given.map(|hold| hold.is_some()).unwrap()
        });
    }
    while lab.fetches() == 0 {
        tokio::task::yield_now().await;
    }
    lab.may.add_permits(1);
    while let Some(kept) = jobs.join_next().await {
        assert!(kept.unwrap());
    }
    assert_eq!(lab.fetches(), 1);
}

#[tokio::test]
async fn a_job_that_is_stopped_leaves_the_fetch_to_another() {
    let (dir, lab) = (folder(), Lab::with(b"abc"));
    lab.may.forget_permits(1_000);
    let cache = cache(&dir, 10);
    let (stop, to) = (GO(), dir.path().join("a"));
    let first = cache.give(lab.wanted(), &to, Way::Copy, &stop, &lab);
    let second_to = dir.path().join("b");
    let go = GO();
    let second = cache.give(lab.wanted(), &second_to, Way::Copy, &go, &lab);
    let stopping = async {
        while lab.fetches() == 0 {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        lab.may.add_permits(1);
    };
    let (first, second, ()) = tokio::join!(first, second, stopping);
    assert!(matches!(first, Err(GiveError::Stopped)), "{first:?}");
    assert!(second.unwrap().is_some() && !to.exists());
    let new = fs::read_dir(dir.path().join("cache/new")).unwrap();
    assert_eq!(new.count(), 0);
}

#[tokio::test]
async fn the_least_recently_used_file_goes_and_never_one_in_use() {
    let dir = folder();
    let cache = cache(&dir, 3);
    let give = async |bytes: &[u8]| {
        let (lab, to) = (Lab::with(bytes), dir.path().join("to"));
        let hold = cache
            .give(lab.wanted(), &to, Way::Copy, &GO(), &lab)
            .await
            .unwrap();
        assert_eq!(fs::read(&to).unwrap(), bytes);
        fs::remove_file(to).unwrap();
        (hold, lab.fetches())
    };
    for bytes in [b"a", b"b", b"c"] {
        give(bytes).await;
    }
    let (in_use, fetches) = give(b"a").await;
    assert_eq!(fetches, 0);
    give(b"d").await;
    let has = |bytes: &[u8]| cache.files.has(wanted(bytes).key) && kept(&dir, bytes).exists();
    assert!(has(b"a") && !has(b"b") && has(b"c") && has(b"d"));
    for bytes in [b"e", b"f", b"g"] {
        give(bytes).await;
    }
    assert!(has(b"a") && has(b"f") && has(b"g"));
    // A file that does not fit beside those in use goes to the job without caching, and evicts nothing.
    let (held, _) = give(&[1; 9_000]).await;
    assert!(held.is_none() && has(b"a") && has(b"f") && has(b"g"));
    drop(in_use);
    for bytes in [b"h", b"i", b"j"] {
        give(bytes).await;
    }
    assert!(!has(b"a") && has(b"j"));
    // A full disk takes the bytes that it needs from the cache.
    assert!(cache.files.give_back(4097));
    assert!(!has(b"h") && !has(b"i") && has(b"j"));
    assert!(cache.files.give_back(1) && !cache.files.give_back(1));
}

#[tokio::test]
async fn a_disk_that_is_full_gets_room_from_the_cache_and_then_fails_with_the_reason() {
    let dir = folder();
    let cache = cache(&dir, 10);
    for bytes in [b"a", b"b"] {
        let (lab, to) = (Lab::with(bytes), dir.path().join("to"));
        cache
            .give(lab.wanted(), &to, Way::Copy, &GO(), &lab)
            .await
            .unwrap();
        fs::remove_file(to).unwrap();
    }
    let (lab, to) = (Lab::with(b"c"), dir.path().join("c"));
    lab.full.store(1, Ordering::SeqCst);
    cache
        .give(lab.wanted(), &to, Way::Copy, &GO(), &lab)
        .await
        .unwrap();
    assert_eq!(lab.fetches(), 2);
    let has = |bytes: &[u8]| cache.files.has(wanted(bytes).key);
    assert!(!has(b"a") && has(b"b") && has(b"c") && to.exists());
    let (lab, to) = (Lab::with(b"dd"), dir.path().join("d"));
    lab.full.store(usize::MAX, Ordering::SeqCst);
    let failed = cache.give(lab.wanted(), &to, Way::Copy, &GO(), &lab).await;
    let reason = failed.unwrap_err().to_string();
    assert!(reason.contains("no room for its 2 bytes"), "{reason}");
    assert!(!has(b"b") && !has(b"c") && !to.exists());
    assert_eq!(
        fs::read_dir(dir.path().join("cache/new")).unwrap().count(),
        0
    );
}

#[tokio::test]
async fn a_cache_of_no_size_keeps_nothing() {
    let (dir, lab) = (folder(), Lab::with(b"abc"));
    let cache = cache(&dir, 0);
    for nth in 1..3 {
        let to = dir.path().join(nth.to_string());
        let hold = cache
            .give(lab.wanted(), &to, Way::Link, &GO(), &lab)
            .await
            .unwrap();
        assert!(hold.is_none() && lab.fetches() == nth);
        assert_eq!(fs::read(&to).unwrap(), b"abc");
        assert_eq!(fs::metadata(&to).unwrap().mode() & 0o7777, 0o444);
    }
    assert!(!kept(&dir, b"abc").exists());
}

#[tokio::test]
async fn bytes_of_another_digest_are_refused_wherever_they_go() {
    for room in [0, 10] {
        let dir = folder();
        let lab = Lab::with(b"abc");
        let cache = cache(&dir, room);
        let to = dir.path().join("to");
        let other = Wanted {
            key: wanted(b"abd").key,
            bytes: 3,
        };
        let refused = cache.give(other, &to, Way::Copy, &GO(), &lab).await;
        assert!(matches!(refused, Err(GiveError::Lab(_))), "{refused:?}");
        assert!(!to.exists());
    }
}

#[tokio::test]
async fn a_restart_keeps_files_and_order_and_sweeps_what_was_on_its_way() {
    let dir = folder();
    let place = dir.path().join("cache");
    {
        let cache = cache(&dir, 3);
        for bytes in [b"a", b"b", b"c", b"a"] {
            let (lab, to) = (Lab::with(bytes), dir.path().join("to"));
            cache
                .give(lab.wanted(), &to, Way::Copy, &GO(), &lab)
                .await
                .unwrap();
            fs::remove_file(to).unwrap();
        }
        // The clock of the file system may stand still between two uses.
        for (second, bytes) in (1..).zip([b"b", b"c", b"a"]) {
            last_access(&kept(&dir, bytes), second);
        }
        let second = Files::open(&place, None).unwrap_err().to_string();
        assert!(second.contains("another agent"), "{second}");
    }
    fs::write(place.join("new/17"), "half").unwrap();
    fs::write(place.join("files/stray"), "").unwrap();
    let smaller = Files::open(&place, Some(2 * 4096)).unwrap();
    let has = |bytes: &[u8]| smaller.has(wanted(bytes).key);
    assert!(has(b"a") && !has(b"b") && has(b"c"));
    assert!(!kept(&dir, b"b").exists() && !place.join("new/17").exists());
    assert!(place.join("files/stray").exists());
}

fn manifest(files: &[&[u8]]) -> (Digest, Vec<u8>, Arc<Manifest>) {
    let entries = files.iter().enumerate().map(|(nth, bytes)| Entry {
        path: nth.to_string(),
        kind: Kind::File {
            executable: false,
            size: u64::try_from(bytes.len()).unwrap(),
            digest: Digest::of(bytes),
            chunks: vec![Chunk::of(bytes)],
        },
    });
    let manifest = Manifest::new(entries.collect()).unwrap();
    let bytes = manifest.encode().unwrap();
    (Digest::of(&bytes), bytes, Arc::new(manifest))
}

#[tokio::test]
async fn words_are_of_files_that_are_here_and_survive_a_restart() {
    let dir = folder();
    let place = dir.path().join("cache");
    let word = |bytes: &[u8]| fairlead_content::words([Digest::of(bytes)]).remove(0);
    let (id, bytes, held) = manifest(&[b"a", b"b"]);
    {
        let cache = cache(&dir, 10);
        cache.manifests.note(id, &held, Some(&bytes)).unwrap();
        cache.manifests.refresh(&cache.files);
        assert_eq!(cache.manifests.words(), [""; 0]);
        let (lab, to) = (Lab::with(b"a"), dir.path().join("to"));
        cache
            .give(lab.wanted(), &to, Way::Copy, &GO(), &lab)
            .await
            .unwrap();
        cache.manifests.refresh(&cache.files);
        assert_eq!(cache.manifests.words(), [word(b"a")]);
        let piece = cache.manifests.piece(Digest::of(b"a")).unwrap();
        assert_eq!(
            (piece.file, piece.offset, piece.size),
            (lab.wanted().key, 0, 1)
        );
    }
    let other = "0".repeat(64);
    fs::write(place.join("manifests").join(&other), &bytes).unwrap();
    let again = cache(&dir, 10);
    assert_eq!(again.manifests.words(), [word(b"a")]);
    assert_eq!(again.manifests.get(id), Some(held));
    assert!(!place.join("manifests").join(other).exists());
}

#[test]
fn the_oldest_manifest_goes_with_its_chunks() {
    let dir = folder();
    let manifests = Manifests::open(dir.path()).unwrap();
    let all: Vec<_> = (0..=MANIFESTS_MAX)
        .map(|nth| manifest(&[nth.to_string().as_bytes()]))
        .collect();
    for (nth, (id, bytes, held)) in all.iter().enumerate() {
        manifests.note(*id, held, Some(bytes)).unwrap();
        if nth == 5 {
            // The first manifest is used again.
            manifests.note(all[0].0, &all[0].2, None).unwrap();
        }
    }
    assert!(manifests.get(all[0].0).is_some() && manifests.get(all[1].0).is_none());
    assert!(manifests.piece(Digest::of(b"0")).is_some());
    assert_eq!(manifests.piece(Digest::of(b"1")), None);
    let files = fs::read_dir(dir.path().join("manifests")).unwrap();
    assert_eq!(files.count(), MANIFESTS_MAX);
}
