//! A folder and what lies below it, opened name by name and never through a link.
//!
//! Two folders are open at a time, however deep a path is.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, mkdirat, openat, statat},
    io::Errno,
};

/// Flags for opening a folder itself, never the target of a link.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Flags for opening a file. A pipe in its place does not block.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
/// Mode of a new folder, before the umask.
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o755);

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder {
    top: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder. A link in place of the folder itself is refused.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let top = openat(CWD, path, FOLDER, Mode::empty())?;
        Ok(Self {
            top,
            path: path.to_owned(),
        })
    }

    /// Returns the path of `below`, for messages.
    pub(super) fn place(&self, below: &str) -> PathBuf {
        self.path.join(below)
    }

    /// Opens a folder below; empty: the folder itself.
    pub(super) fn folder(&self, below: &str) -> Result<OwnedFd, Errno> {
        self.walk(below, false, |_| {})
    }

    /// Opens a folder below and makes missing folders on the way. Calls `told` for each of them.
    pub(super) fn made_folder(
        &self,
        below: &str,
        told: impl FnMut(&str),
    ) -> Result<OwnedFd, Errno> {
        self.walk(below, true, told)
    }

    fn walk(&self, below: &str, makes: bool, mut told: impl FnMut(&str)) -> Result<OwnedFd, Errno> {
        let mut here = openat(&self.top, ".", FOLDER, Mode::empty())?;
        let mut end = 0;
        for name in below.split('/').filter(|name| !name.is_empty()) {
            end += name.len();
            let next = match openat(&here, name, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) if makes => {
                    mkdirat(&here, name, NEW_FOLDER)?;
                    told(below.get(..end).unwrap_or(below));
                    openat(&here, name, FOLDER, Mode::empty())
                }
                other => other,
            };
            here = next?;
            // The slash behind it.
            end += 1;
        }
        Ok(here)
    }

    /// Returns the metadata at a path: of the object itself, not of the target of a link.
    pub(super) fn look(&self, below: &str) -> Result<Stat, Errno> {
        let (parent, name) = split(below);
        look(&self.folder(parent)?, name)
    }

    /// Returns the target of a link.
    pub(super) fn target(&self, below: &str) -> Result<Vec<u8>, Errno> {
        let (parent, name) = split(below);
        let target = rustix::fs::readlinkat(self.folder(parent)?, name, Vec::new())?;
        Ok(target.into_bytes())
    }

    /// Opens a regular file below.
    pub(super) fn file(&self, below: &str) -> io::Result<File> {
        let (parent, name) = split(below);
        let file = File::from(openat(self.folder(parent)?, name, FILE, Mode::empty())?);
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        Err(io::Error::other("it is no regular file"))
    }
}

/// Returns the folder of a path, empty for the top, and the name in it.
pub(super) fn split(below: &str) -> (&str, &str) {
    below.rsplit_once('/').unwrap_or(("", below))
}

/// Returns the metadata of a name in a folder.
pub(super) fn look(folder: impl AsFd, name: &str) -> Result<Stat, Errno> {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Returns the file type.
pub(super) fn kind(about: &Stat) -> FileType {
    FileType::from_raw_mode(about.st_mode)
}

/// The names in a folder, sorted, at most `most` of them.
pub(super) fn names(folder: impl AsFd, most: usize) -> Result<Vec<Vec<u8>>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            found.push(name.to_vec());
        }
        if found.len() >= most {
            break;
        }
    }
    found.sort_unstable();
    Ok(found)
}
