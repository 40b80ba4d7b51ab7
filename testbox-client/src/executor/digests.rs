//! Digests of the images of this host, so that results count only for jobs that would run in the same images.
//!
//! The host tells the images that its jobs used. A file is read once, and again when it changed.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use fairlead_job::{IMAGE_DIGEST_DIGITS, image_fact};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::machine::Image;
use crate::facts::Facts;

/// Maximum number of images of each kind that a host reports: those that its jobs used last.
const TOLD_MAX: usize = 16;
/// Family of the facts about images that jobs name.
const IMAGES: &str = "image";
/// Family of the facts about default images.
const DEFAULTS: &str = "default-image";

/// Kind of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ImageKind {
    /// Image of containers.
    Dc,
    /// Image of virtual machines.
    Vm,
}

impl ImageKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Dc => "dc",
            Self::Vm => "vm",
        }
    }
}

/// Properties of a file when it was read. A file is read again if they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            bytes: meta.len(),
            inode: meta.ino(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

/// An image on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: ImageKind,
    pub(super) name: String,
    pub(super) digest: String,
    /// True if it is a default image.
    pub(super) is_default: bool,
}

/// Data that is kept across restarts of the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    /// Images that jobs named, the most recently used last.
    used: Vec<(ImageKind, String)>,
    files: BTreeMap<PathBuf, (Stamp, String)>,
}

/// Digests of images.
#[derive(Debug)]
pub(super) struct Digests {
    /// File in which the data is kept.
    file: PathBuf,
    kept: Mutex<Kept>,
    told: Mutex<Vec<Seen>>,
}

impl Digests {
    /// Reads the data that an earlier agent left in `folder`. An unreadable file counts as empty. Blocks.
    pub(super) fn open(folder: &Path) -> Self {
        let file = folder.join("image-digests.json");
        let kept = fs::read(&file).ok();
        let kept = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self {
            file,
            kept: Mutex::new(kept.unwrap_or_default()),
            told: Mutex::default(),
        }
    }

    /// Notes that a job names and uses an image. Blocks.
    pub(super) fn use_of(&self, kind: ImageKind, name: &str) {
        let kept = {
            let mut kept = self.kept.lock();
            let entry = (kind, name.to_owned());
            if kept.used.last() == Some(&entry) {
                return;
            }
            kept.used.retain(|other| *other != entry);
            kept.used.push(entry);
            let many = kept.used.iter().filter(|(other, _)| *other == kind).count();
            if many > TOLD_MAX
                && let Some(first) = kept.used.iter().position(|(other, _)| *other == kind)
            {
                kept.used.remove(first);
            }
            kept.clone()
        };
        self.save(&kept);
    }

    /// Returns the images of a kind that jobs named.
    pub(super) fn used(&self, kind: ImageKind) -> Vec<String> {
        let kept = self.kept.lock();
        let used = kept.used.iter().filter(|(other, _)| *other == kind);
        used.map(|(_, name)| name.clone()).collect()
    }

    /// Returns the digest of an image of virtual machines. Its files are read if they changed. Blocks.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or changes in the meantime.
    pub(super) fn of_machine(&self, image: &Image) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        let disk = image.disk.as_ref().map(|(disk, _)| disk);
        for file in [Some(&image.kernel), image.initrd.as_ref(), disk] {
            let digest = file.map(|file| self.of_file(file)).transpose()?;
            hasher.update(digest.unwrap_or_default().as_bytes());
            hasher.update(b"\n");
        }
        hasher.update(image.command_line.as_bytes());
        Ok(shortened(hasher.finalize().to_hex().as_str()))
    }

    fn of_file(&self, path: &Path) -> io::Result<String> {
        let file = File::open(path)?;
        let stamp = Stamp::of(&file)?;
        if let Some((known, digest)) = self.kept.lock().files.get(path)
            && *known == stamp
        {
            return Ok(digest.clone());
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&file)?;
        if Stamp::of(&file)? != stamp {
            return Err(io::Error::other("the image changes while it is read"));
        }
        let digest = hasher.finalize().to_hex().to_string();
        let kept = {
            let mut kept = self.kept.lock();
            kept.files.retain(|path, _| path.exists());
            kept.files.insert(path.to_owned(), (stamp, digest.clone()));
            kept.clone()
        };
        self.save(&kept);
        Ok(digest)
    }

    /// Replaces the set of present images.
    pub(super) fn are(&self, images: Vec<Seen>) {
        *self.told.lock() = images;
    }

    /// Adds a present image.
    pub(super) fn saw(&self, image: Seen) {
        let mut told = self.told.lock();
        let is_same = |other: &Seen| {
            (other.kind, &other.name, other.is_default)
                == (image.kind, &image.name, image.is_default)
        };
        told.retain(|other| !is_same(other));
        told.push(image);
    }

    /// Returns the facts about images for the scheduler.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        for image in &*self.told.lock() {
            let fact = image_fact(&image.name, &image.digest);
            if image.is_default {
                let fact = format!("{}:{fact}", image.kind.as_str());
                facts.entry(DEFAULTS.to_owned()).or_default().push(fact);
            } else {
                facts.entry(IMAGES.to_owned()).or_default().push(fact);
            }
        }
        for values in facts.values_mut() {
            values.sort_unstable();
        }
        facts
    }

    fn save(&self, kept: &Kept) {
        let next = self.file.with_extension("next");
        let saved = serde_json::to_vec(kept)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&next, text))
            .and_then(|()| fs::rename(&next, &self.file));
        if let Err(error) = saved {
            tracing::warn!(%error, "the digests of images cannot be kept; the images are read again after a restart");
        }
    }
}

/// Returns a digest in its reported form: without `sha256:`, and cut.
pub(super) fn shortened(digest: &str) -> String {
    let digest = digest.trim();
    let bare = digest.rsplit_once(':').map_or(digest, |(_, bare)| bare);
    bare.chars().take(IMAGE_DIGEST_DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(folder: &Path) -> Image {
        fs::write(folder.join("kernel"), "k1").unwrap();
        fs::write(folder.join("disk"), "d1").unwrap();
        Image {
            kernel: folder.join("kernel"),
            initrd: None,
            disk: Some((folder.join("disk"), "raw")),
            command_line: "quiet".to_owned(),
        }
    }

    #[test]
    fn a_changed_file_or_command_line_is_another_image() {
        let folder = tempfile::tempdir().unwrap();
        let digests = Digests::open(folder.path());
        let image = image(folder.path());
        let first = digests.of_machine(&image).unwrap();
        assert_eq!(first.len(), IMAGE_DIGEST_DIGITS);
        assert_eq!(digests.of_machine(&image).unwrap(), first);
        let loud = Image {
            command_line: "loud".to_owned(),
            ..image.clone()
        };
        assert_ne!(digests.of_machine(&loud).unwrap(), first);
        // The size is unchanged, so only the time shows the change.
        let disk = folder.path().join("disk");
        fs::remove_file(&disk).unwrap();
        fs::write(&disk, "d2").unwrap();
        assert_ne!(digests.of_machine(&image).unwrap(), first);
        // The same bytes give the same digest, at any time stamps.
        fs::remove_file(&disk).unwrap();
        fs::write(&disk, "d1").unwrap();
        assert_eq!(digests.of_machine(&image).unwrap(), first);
        fs::remove_file(&disk).unwrap();
        assert!(digests.of_machine(&image).is_err());
    }

    #[test]
    fn a_file_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let digests = Digests::open(folder.path());
        let image = image(folder.path());
        let first = digests.of_machine(&image).unwrap();
        let known = digests.kept.lock().clone();
        // Noted digests are trusted, also by the next agent.
        let marked = |(path, (stamp, _)): (&PathBuf, &(Stamp, String))| {
            (path.clone(), (*stamp, "marked".to_owned()))
        };
        let kept = Kept {
            files: known.files.iter().map(marked).collect(),
            ..known
        };
        digests.save(&kept);
        let next = Digests::open(folder.path());
        assert_ne!(next.of_machine(&image).unwrap(), first);
    }

    #[test]
    fn the_last_used_images_are_told_with_their_digests() {
        let folder = tempfile::tempdir().unwrap();
        let digests = Digests::open(folder.path());
        for n in 0..=TOLD_MAX {
            digests.use_of(ImageKind::Dc, &format!("i{n}"));
        }
        digests.use_of(ImageKind::Dc, "i5");
        digests.use_of(ImageKind::Vm, "m");
        let again = Digests::open(folder.path());
        let used = again.used(ImageKind::Dc);
        assert_eq!((used.len(), used[0].as_str()), (TOLD_MAX, "i1"));
        assert_eq!(used.last().unwrap(), "i5");
        assert_eq!(again.used(ImageKind::Vm), ["m"]);
        let one = |kind, name: &str, digest: &str, is_default| Seen {
            kind,
            name: name.to_owned(),
            digest: digest.to_owned(),
            is_default,
        };
        again.are(vec![
            one(ImageKind::Dc, "debian:12", "ab", false),
            one(ImageKind::Vm, "m", "ab", true),
        ]);
        again.saw(one(ImageKind::Dc, "debian:12", "cd", false));
        let facts = again.facts();
        assert_eq!(facts["image"], ["debian:12=cd"]);
        assert_eq!(facts["default-image"], ["vm:m=ab"]);
        again.are(Vec::new());
        assert!(again.facts().is_empty());
    }

    #[test]
    fn digests_of_both_engines_are_told_alike() {
        let hex = "ab".repeat(32);
        assert_eq!(shortened(&format!("sha256:{hex}\n")), shortened(&hex));
        assert_eq!(shortened(&hex).len(), IMAGE_DIGEST_DIGITS);
    }
}
