//! The images that an agent got from registries: the least recently used ones go when they take too much.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fairlead_job::ImageName;
use parking_lot::Mutex;

/// Maximum number of remembered images. The least recently used ones beyond it are forgotten, and stay on the disk.
const REMEMBERED_MAX: usize = 1_000;

/// Records of the images of one agent.
#[derive(Debug)]
pub(crate) struct ImageCache {
    /// File that keeps the order of use across restarts.
    file: PathBuf,
    known: Mutex<Known>,
    /// Lock that is read while an image is looked up, and written while one is removed. So no image disappears that a
    /// job has just found, and jobs that start together do not wait for each other.
    pub(crate) changing: tokio::sync::RwLock<()>,
}

#[derive(Debug, Default)]
struct Known {
    /// Images that this agent fetched, by full name, each with the number of its last use, from 1.
    used: BTreeMap<String, u64>,
    /// Number of jobs that use an image now.
    in_use: BTreeMap<String, u32>,
}

/// Marks an image as in use by a job until dropped.
#[derive(Debug)]
pub(crate) struct ImageUse {
    cache: Arc<ImageCache>,
    image: String,
}

impl ImageCache {
    /// Reads the records that an earlier agent left in `folder`. An unreadable file counts as empty.
    pub(crate) fn open(folder: &Path) -> Arc<Self> {
        let file = folder.join("images.json");
        let used = fs::read(&file).ok();
        let used = used.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let used: BTreeMap<String, u64> = used.unwrap_or_default();
        // Earlier agents noted names as jobs wrote them.
        let used = used.into_iter().map(|(name, number)| {
            let full = name.parse().map(|image: ImageName| image.full().to_owned());
            (full.unwrap_or(name), number)
        });
        Arc::new(Self {
            file,
            known: Mutex::new(Known {
                used: used.collect(),
                in_use: BTreeMap::new(),
            }),
            changing: tokio::sync::RwLock::new(()),
        })
    }

    /// Protects an image from removal.
    pub(crate) fn hold(self: &Arc<Self>, image: &str) -> ImageUse {
        *self
            .known
            .lock()
            .in_use
            .entry(image.to_owned())
            .or_default() += 1;
        ImageUse {
            cache: Arc::clone(self),
            image: image.to_owned(),
        }
    }

    /// Notes a use of an image, if this agent fetched it earlier or just now (`is_new`).
    pub(crate) fn note(&self, image: &str, is_new: bool) -> io::Result<()> {
        let mut known = self.known.lock();
        if !is_new && !known.used.contains_key(image) {
            return Ok(());
        }
        let last = known.used.values().max().copied().unwrap_or(0);
        known.used.insert(image.to_owned(), last.saturating_add(1));
        while known.used.len() > REMEMBERED_MAX {
            let oldest = known.used.iter().min_by_key(|(_, number)| **number);
            let Some(oldest) = oldest.map(|(image, _)| image.clone()) else {
                break;
            };
            known.used.remove(&oldest);
        }
        self.save(&known)
    }

    /// Notes that an image was removed.
    pub(crate) fn forget(&self, image: &str) -> io::Result<()> {
        let mut known = self.known.lock();
        known.used.remove(image);
        self.save(&known)
    }

    /// Returns the images that this agent fetched, the least recently used first, with true for those in use.
    pub(crate) fn by_age(&self) -> Vec<(String, bool)> {
        let known = self.known.lock();
        let mut images: Vec<(&String, &u64)> = known.used.iter().collect();
        images.sort_by_key(|(image, number)| (**number, (*image).clone()));
        let images = images.into_iter();
        let with_use = images.map(|(image, _)| (image.clone(), known.in_use.contains_key(image)));
        with_use.collect()
    }

    fn save(&self, known: &Known) -> io::Result<()> {
        let text = serde_json::to_vec(&known.used)?;
        let next = self.file.with_extension("next");
        fs::write(&next, text)?;
        fs::rename(next, &self.file)
    }
}

impl Drop for ImageUse {
    fn drop(&mut self) {
        let mut known = self.cache.known.lock();
        if let Some(users) = known.in_use.get_mut(&self.image) {
            *users -= 1;
            if *users == 0 {
                known.in_use.remove(&self.image);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_agent_got_is_counted_and_what_is_used_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["docker.io/library/a", "docker.io/library/b"];
        fs::write(
            folder.path().join("images.json"),
            r#"{"b": 20, "docker.io/library/a": 30}"#,
        )
        .unwrap();
        let cache = ImageCache::open(folder.path());
        cache.note("of-the-site", false).unwrap();
        let (one, two) = (cache.hold(b), cache.hold(b));
        drop(one);
        let ages = |cache: &ImageCache| cache.by_age();
        let of = |image: &str, is_used| (image.to_owned(), is_used);
        assert_eq!(ages(&cache), [of(b, true), of(a, false)]);
        drop(two);
        cache.note(b, false).unwrap();
        cache.note("localhost/c", true).unwrap();
        cache.forget(a).unwrap();
        assert_eq!(ages(&cache), [of(b, false), of("localhost/c", false)]);
        let again = ImageCache::open(folder.path());
        assert_eq!(ages(&again), ages(&cache), "over a restart");
        fs::write(folder.path().join("images.json"), "?").unwrap();
        assert!(ages(&ImageCache::open(folder.path())).is_empty());
    }
}
