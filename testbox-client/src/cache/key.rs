//! The name of a file in the cache.

use std::path::{Path, PathBuf};

use fairlead_content::Digest;

/// Content of a file, and its executable bit. The mode belongs to a file, not to its name in a folder. So a file that
/// inputs have in both modes is cached twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileKey {
    pub(crate) digest: Digest,
    pub(crate) executable: bool,
}

/// A file that a job wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) key: FileKey,
    pub(crate) bytes: u64,
}

const EXECUTABLE: &str = "-x";

impl FileKey {
    /// Returns its mode. Nobody may write to it.
    pub(crate) const fn mode(self) -> u32 {
        if self.executable { 0o555 } else { 0o444 }
    }

    /// Returns its path below `folder`.
    pub(super) fn path(self, folder: &Path) -> PathBuf {
        let name = self.name();
        folder.join(name.split_at(2).0).join(&name)
    }

    pub(super) fn name(self) -> String {
        let end = if self.executable { EXECUTABLE } else { "" };
        format!("{}{end}", self.digest)
    }

    /// Parses a name made by [`FileKey::name`].
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let plain = name.strip_suffix(EXECUTABLE);
        Some(Self {
            digest: plain.unwrap_or(name).parse().ok()?,
            executable: plain.is_some(),
        })
    }
}
