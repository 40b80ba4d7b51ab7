//! The list of the files of an input or an output, in one form only: its hash is its id.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Chunk, Digest};

/// Largest manifest, bytes.
pub const MANIFEST_BYTES_MAX: usize = 64 << 20;
/// Most entries of a manifest.
pub const FILES_MAX: usize = 200_000;
/// Longest path, and longest target of a link, bytes.
pub const PATH_BYTES_MAX: usize = 4_096;
/// Longest name in a path, bytes.
const NAME_BYTES_MAX: usize = 255;
/// Form that this version writes and reads.
const FORMAT: u16 = 1;

/// The files of an input or an output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: Vec<Entry>,
}

/// One file, link or empty folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative path, with slashes, without `.` and `..`.
    pub path: String,
    /// Kind of the entry.
    pub kind: Kind,
}

/// Kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File {
        /// True if it is executable: mode 0755, else 0644.
        executable: bool,
        /// Bytes.
        size: u64,
        /// The hash of all of its bytes.
        digest: Digest,
        /// Pieces in order; empty for an empty file.
        chunks: Vec<Chunk>,
    },
    /// A symbolic link.
    Link {
        /// Target, as written in the link.
        target: String,
    },
    /// Empty folder.
    EmptyFolder,
}

/// Reason why bytes are no manifest, or files make none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is not the JSON of a manifest.
    #[error("the manifest cannot be read: {0}")]
    Malformed(String),
    /// Another version wrote it.
    #[error("the manifest has format {0}; this version reads format {FORMAT}")]
    Format(u16),
    /// Not the canonical form. The same files have only one form.
    #[error(
        "the manifest is not in its one form: entries sorted by path, modes 0644 or 0755, no blanks"
    )]
    NotCanonical,
    /// Invalid path.
    #[error("path '{shown}': {problem}")]
    Path {
        /// Beginning of the path.
        shown: String,
        /// Problem with it.
        problem: &'static str,
    },
    /// Sizes that contradict each other.
    #[error(
        "file '{0}': its chunks do not have the size that it says, or a chunk has an impossible size"
    )]
    Size(String),
    /// Too many entries.
    #[error("it has {0} files; at most {FILES_MAX} are allowed")]
    TooMany(usize),
    /// Too large.
    #[error("the manifest has {0} bytes; at most {MANIFEST_BYTES_MAX} are allowed")]
    TooLarge(usize),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u16,
    files: Vec<StoredEntry>,
}

/// `[digest, size]`.
type StoredChunk = (Digest, u32);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chunks: Option<Vec<StoredChunk>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

const PLAIN: &str = "0644";
const EXECUTABLE: &str = "0755";

impl Manifest {
    /// Creates the manifest of these entries, in any order.
    ///
    /// # Errors
    /// Fails for an invalid path, two entries that exclude each other, sizes that contradict each other, or too many
    /// entries.
    pub fn new(mut entries: Vec<Entry>) -> Result<Self, ManifestError> {
        if entries.len() > FILES_MAX {
            return Err(ManifestError::TooMany(entries.len()));
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let manifest = Self { entries };
        manifest.check()?;
        Ok(manifest)
    }

    /// Its entries, sorted by path.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the canonical form.
    ///
    /// # Errors
    /// Fails if it would be too large.
    pub fn encode(&self) -> Result<Vec<u8>, ManifestError> {
        let stored = Stored {
            format: FORMAT,
            files: self.entries.iter().map(stored).collect(),
        };
        let bytes = serde_json::to_vec(&stored)
            .map_err(|error| ManifestError::Malformed(error.to_string()))?;
        if bytes.len() > MANIFEST_BYTES_MAX {
            return Err(ManifestError::TooLarge(bytes.len()));
        }
        Ok(bytes)
    }

    /// Reads the canonical form. Its id is [`Digest::of`] these bytes.
    ///
    /// # Errors
    /// Fails if [`Manifest::new`] refuses the entries, and for any other form.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MANIFEST_BYTES_MAX {
            return Err(ManifestError::TooLarge(bytes.len()));
        }
        let malformed = |error: serde_json::Error| ManifestError::Malformed(error.to_string());
        let stored: Stored = serde_json::from_slice(bytes).map_err(malformed)?;
        if stored.format != FORMAT {
            return Err(ManifestError::Format(stored.format));
        }
        let entries: Result<Vec<Entry>, ManifestError> =
            stored.files.into_iter().map(entry).collect();
        let manifest = Self::new(entries?)?;
        if manifest.encode()? != bytes {
            return Err(ManifestError::NotCanonical);
        }
        Ok(manifest)
    }

    /// All its chunks in the order of the files, with repeats.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> {
        self.entries
            .iter()
            .flat_map(|entry| match &entry.kind {
                Kind::File { chunks, .. } => chunks.as_slice(),
                Kind::Link { .. } | Kind::EmptyFolder => &[],
            })
            .copied()
    }

    /// The digests of its chunks, without repeats.
    pub fn digests(&self) -> BTreeSet<Digest> {
        self.chunks().map(|chunk| chunk.digest).collect()
    }

    /// Returns the bytes of all its files together.
    pub fn bytes(&self) -> u64 {
        let sizes = self.entries.iter().map(|entry| match &entry.kind {
            Kind::File { size, .. } => *size,
            Kind::Link { .. } | Kind::EmptyFolder => 0,
        });
        sizes.fold(0, u64::saturating_add)
    }

    fn check(&self) -> Result<(), ManifestError> {
        for entry in &self.entries {
            check_entry(entry)?;
        }
        // The folders above the present entry that are entries themselves would be files or links.
        let mut leaves: std::collections::HashSet<&str> = std::collections::HashSet::new();
        for entry in &self.entries {
            if !leaves.insert(&entry.path) {
                return Err(bad_path(&entry.path, "it is there twice"));
            }
        }
        for entry in &self.entries {
            let above = entry
                .path
                .match_indices('/')
                .map(|(at, _)| entry.path.split_at(at).0);
            if above.into_iter().any(|folder| leaves.contains(folder)) {
                return Err(bad_path(
                    &entry.path,
                    "what lies above it is no folder with something in it",
                ));
            }
        }
        Ok(())
    }
}

fn bad_path(path: &str, problem: &'static str) -> ManifestError {
    const SHOWN: usize = 80;
    let shown: String = path.chars().take(SHOWN).collect();
    ManifestError::Path {
        shown: shown.escape_default().to_string(),
        problem,
    }
}

fn check_entry(entry: &Entry) -> Result<(), ManifestError> {
    let path = &entry.path;
    let bad = |problem| Err(bad_path(path, problem));
    if path.len() > PATH_BYTES_MAX {
        return bad("it is longer than 4,096 bytes");
    }
    if path.contains('\0') {
        return bad("it has a NUL character");
    }
    for name in path.split('/') {
        match name {
            "" => return bad("it is empty, absolute, or has two slashes together"),
            "." | ".." => return bad("'.' and '..' are not allowed in it"),
            name if name.len() > NAME_BYTES_MAX => {
                return bad("a name in it is longer than 255 bytes");
            }
            _ => {}
        }
    }
    match &entry.kind {
        Kind::Link { target }
            if target.is_empty() || target.len() > PATH_BYTES_MAX || target.contains('\0') =>
        {
            bad("it is a link to nothing that can be")
        }
        Kind::Link { .. } | Kind::EmptyFolder => Ok(()),
        Kind::File {
            size,
            digest,
            chunks,
            ..
        } => {
            let most = u32::try_from(crate::CHUNK_BYTES_MAX).unwrap_or(u32::MAX);
            let fit = chunks.iter().all(|chunk| (1..=most).contains(&chunk.size));
            let sum = chunks.iter().fold(0_u64, |sum, chunk| {
                sum.saturating_add(u64::from(chunk.size))
            });
            let is_one = match chunks.as_slice() {
                [] => *digest == Digest::of(b""),
                [one] => one.digest == *digest,
                _ => true,
            };
            if fit && sum == *size && is_one {
                Ok(())
            } else {
                Err(ManifestError::Size(path.chars().take(80).collect()))
            }
        }
    }
}

fn stored(entry: &Entry) -> StoredEntry {
    let blank = StoredEntry {
        path: entry.path.clone(),
        mode: None,
        size: None,
        digest: None,
        chunks: None,
        link: None,
    };
    match &entry.kind {
        Kind::EmptyFolder => blank,
        Kind::Link { target } => StoredEntry {
            link: Some(target.clone()),
            ..blank
        },
        Kind::File {
            executable,
            size,
            digest,
            chunks,
        } => StoredEntry {
            mode: Some(if *executable { EXECUTABLE } else { PLAIN }.to_owned()),
            size: Some(*size),
            digest: Some(*digest),
            chunks: Some(
                chunks
                    .iter()
                    .map(|chunk| (chunk.digest, chunk.size))
                    .collect(),
            ),
            ..blank
        },
    }
}

fn entry(stored: StoredEntry) -> Result<Entry, ManifestError> {
    let StoredEntry {
        path,
        mode,
        size,
        digest,
        chunks,
        link,
    } = stored;
    let kind = match (mode.as_deref(), size, digest, chunks, link) {
        (None, None, None, None, None) => Kind::EmptyFolder,
        (None, None, None, None, Some(target)) => Kind::Link { target },
        (Some(mode @ (PLAIN | EXECUTABLE)), Some(size), Some(digest), Some(chunks), None) => {
            Kind::File {
                executable: mode == EXECUTABLE,
                size,
                digest,
                chunks: chunks
                    .into_iter()
                    .map(|(digest, size)| Chunk { digest, size })
                    .collect(),
            }
        }
        _ => {
            let shown: String = path.chars().take(80).collect();
            return Err(ManifestError::Malformed(format!(
                "'{shown}' is neither a file nor a link nor a folder"
            )));
        }
    };
    Ok(Entry { path, kind })
}

#[cfg(test)]
mod tests;
