//! Writes the files of a get: to temporary names first, checked, and never through a link.

use std::{
    collections::HashMap,
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat_with, symlinkat, unlinkat},
    io::Errno,
};

use super::{
    error::TransferError,
    folder::{Folder, split},
};
use crate::{Digest, Entry, Kind};

/// Bytes of a file that are copied at a time.
const COPY_BYTES: usize = 256 * 1024;
/// Flags for a temporary file, which must be new.
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Folder that was empty, and the files written into it.
#[derive(Debug)]
pub(super) struct Target {
    folder: Folder,
    /// Folders that were made, outer ones first.
    made: Vec<String>,
    /// Paths that have their own names.
    written: Vec<String>,
    /// Written files by the digest of their bytes.
    files: HashMap<Digest, String>,
    /// The folder itself, if it was made.
    own: Option<PathBuf>,
}

/// File without its final name.
struct Unnamed<'a> {
    parent: &'a OwnedFd,
    name: String,
}

impl Drop for Unnamed<'_> {
    fn drop(&mut self) {
        // After a rename there is nothing of this name, and a name by chance is nobody else's.
        let _ = unlinkat(self.parent, self.name.as_str(), AtFlags::empty());
    }
}

impl Target {
    /// Makes the folder, or takes an empty one.
    pub(super) fn prepare(into: &Path) -> Result<Self, TransferError> {
        let failed = |error| TransferError::file(into, error);
        let is_new = match std::fs::symlink_metadata(into) {
            Ok(about) if about.is_dir() => false,
            Ok(_) => return Err(TransferError::NotEmpty(into.to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(failed(error)),
        };
        if is_new {
            std::fs::create_dir_all(into).map_err(failed)?;
        }
        let folder = Folder::open(into).map_err(failed)?;
        let top = folder.folder("").map_err(|error| failed(error.into()))?;
        let inside = super::folder::names(&top, 1).map_err(|error| failed(error.into()))?;
        if !inside.is_empty() {
            return Err(TransferError::NotEmpty(into.to_owned()));
        }
        Ok(Self {
            folder,
            made: Vec::new(),
            written: Vec::new(),
            files: HashMap::new(),
            own: is_new.then(|| into.to_owned()),
        })
    }

    /// Writes one entry. `fill` writes the verified bytes of a file that has no equal yet.
    pub(super) fn write(
        &mut self,
        entry: &Entry,
        fill: &mut dyn FnMut(&mut File) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let path = &entry.path;
        let place = self.folder.place(path);
        let failed = |error: Errno| TransferError::file(&place, error);
        if entry.kind == Kind::EmptyFolder {
            self.folder_at(path).map_err(failed)?;
            return Ok(());
        }
        let (above, name) = split(path);
        let parent = self.folder_at(above).map_err(failed)?;
        match &entry.kind {
            Kind::EmptyFolder => {}
            Kind::Link { target } => {
                symlinkat(target.as_str(), &parent, name).map_err(failed)?;
            }
            Kind::File {
                executable, digest, ..
            } => {
                let unnamed = Unnamed {
                    parent: &parent,
                    name: format!(".fairlead-{}", uuid::Uuid::new_v4().simple()),
                };
                // The umask takes its part, as for any new file.
                let mode = Mode::from_raw_mode(if *executable { 0o755 } else { 0o644 });
                let made = openat(&parent, unnamed.name.as_str(), NEW, mode).map_err(failed)?;
                let mut file = File::from(made);
                match self.files.get(digest) {
                    Some(same) => self.copy(same, *digest, &mut file)?,
                    None => fill(&mut file)?,
                }
                let (from, flags) = (unnamed.name.as_str(), RenameFlags::NOREPLACE);
                renameat_with(&parent, from, &parent, name, flags).map_err(failed)?;
                self.files.entry(*digest).or_insert_with(|| path.clone());
            }
        }
        self.written.push(path.clone());
        Ok(())
    }

    fn folder_at(&mut self, path: &str) -> Result<OwnedFd, Errno> {
        let made = &mut self.made;
        self.folder
            .made_folder(path, |folder| made.push(folder.to_owned()))
    }

    /// Copies a file that was written before, and verifies it again.
    fn copy(&self, from: &str, digest: Digest, to: &mut File) -> Result<(), TransferError> {
        let failed = |error| TransferError::file(self.folder.place(from), error);
        let mut from = self.folder.file(from).map_err(failed)?;
        let mut whole = blake3::Hasher::new();
        let mut piece = vec![0; COPY_BYTES];
        loop {
            let many = from.read(&mut piece).map_err(failed)?;
            let Some(read) = piece.get(..many).filter(|read| !read.is_empty()) else {
                break;
            };
            whole.update(read);
            to.write_all(read).map_err(failed)?;
        }
        let is = Digest::from(whole.finalize());
        if is == digest {
            return Ok(());
        }
        Err(TransferError::Damaged { digest, is })
    }

    /// Removes everything that was written, and nothing else. Best effort, after an error.
    pub(super) fn undo(self) {
        for path in self.written.iter().rev() {
            let (above, name) = split(path);
            if let Ok(parent) = self.folder.folder(above) {
                let _ = unlinkat(&parent, name, AtFlags::empty());
            }
        }
        for path in self.made.iter().rev() {
            let (above, name) = split(path);
            if let Ok(parent) = self.folder.folder(above) {
                let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
            }
        }
        if let Some(own) = self.own {
            let _ = std::fs::remove_dir(own);
        }
    }
}
