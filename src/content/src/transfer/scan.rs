//! Finds the files of a put, in order of paths, and everything that cannot be put.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, Stat},
    io::Errno,
};

use super::{
    error::{Problem, TransferError},
    folder::{Folder, kind, look, names},
};
use crate::{FILES_MAX, ManifestError, PATH_BYTES_MAX};

/// Maximum number of names that are looked at, so that a tree whose files are all left out ends as well.
const LOOKS_MAX: usize = 10 * FILES_MAX;
/// Maximum number of kept problems; the others are counted.
const PROBLEMS_MAX: usize = 20;

/// File, link or empty folder to put.
#[derive(Debug)]
pub(super) struct Found {
    /// Its path in the manifest.
    pub(super) path: String,
    /// Path below the folder. It differs from `path` only for a single file that a link named.
    pub(super) at: String,
    pub(super) kind: FoundKind,
}

#[derive(Debug)]
pub(super) enum FoundKind {
    File,
    Link { target: String },
    EmptyFolder,
}

/// Result of a scan.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) folder: Folder,
    pub(super) found: Vec<Found>,
    /// Bytes of the files.
    pub(super) bytes: u64,
    /// Requested paths that do not exist.
    pub(super) missing: Vec<String>,
    pub(super) problems: Vec<Problem>,
    /// Number of problems beyond `problems`.
    pub(super) more: usize,
    /// Owner whose files count; `None`: all.
    pub(super) owner: Option<u32>,
    looks: usize,
}

/// Finds everything in a folder, or one file. A link in place of `path` itself is followed, because a person named
/// it. Blocks.
pub(super) fn scan(path: &Path) -> Result<Scan, TransferError> {
    let failed = |error| TransferError::file(path, error);
    let real = std::fs::canonicalize(path).map_err(failed)?;
    if real.is_dir() {
        let mut scan = Scan::of(Folder::open(&real).map_err(failed)?, None);
        scan.walk("")?;
        return Ok(scan);
    }
    let nameless = || failed(std::io::Error::other("its name is not UTF-8"));
    let named = path.file_name().and_then(|name| name.to_str());
    let at = real.file_name().and_then(|name| name.to_str());
    let (Some(named), Some(at), Some(parent)) = (named, at, real.parent()) else {
        return Err(nameless());
    };
    let mut scan = Scan::of(Folder::open(parent).map_err(failed)?, None);
    let about = scan.folder.look(at).map_err(|error| failed(error.into()))?;
    scan.note(named.to_owned(), at.to_owned(), &about)?;
    Ok(scan)
}

/// Finds these paths below a folder; `.` is all of it. Links are never followed, and the folder must not be one.
/// Blocks.
pub(super) fn scan_paths(
    root: &Path,
    paths: &[String],
    owner: Option<u32>,
) -> Result<Scan, TransferError> {
    let folder = Folder::open(root).map_err(|error| TransferError::file(root, error))?;
    let mut scan = Scan::of(folder, owner);
    let mut asked = Vec::new();
    for path in paths {
        match plain(path) {
            Some(plain) => asked.push((plain, path)),
            None => scan.leave_out(path, "it leads out of the folder"),
        }
    }
    asked.sort();
    let mut done: Vec<&str> = Vec::new();
    for (path, said) in &asked {
        let is_below = |above: &str| {
            let rest = path.strip_prefix(above);
            above.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if done.iter().any(|above| is_below(above)) {
            continue;
        }
        if scan.ask(path, said)? {
            done.push(path);
        }
    }
    scan.found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(scan)
}

/// Returns the path without `.` and doubled slashes, empty for the folder itself; `None`: it leads out.
fn plain(path: &str) -> Option<String> {
    if path.is_empty() || path.starts_with('/') || path.contains('\0') {
        return None;
    }
    let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let names: Vec<&str> = names.collect();
    (!names.contains(&"..")).then(|| names.join("/"))
}

impl Scan {
    fn of(folder: Folder, owner: Option<u32>) -> Self {
        Self {
            folder,
            found: Vec::new(),
            bytes: 0,
            missing: Vec::new(),
            problems: Vec::new(),
            more: 0,
            owner,
            looks: 0,
        }
    }

    /// Adds one requested path. Returns true if this settles all paths below it as well.
    fn ask(&mut self, path: &str, said: &str) -> Result<bool, TransferError> {
        if path.is_empty() {
            return self.walk("").map(|()| true);
        }
        match self.folder.look(path) {
            Ok(about) if kind(&about) == FileType::Directory => self.walk(path).map(|()| true),
            Ok(about) => {
                self.note(path.to_owned(), path.to_owned(), &about)?;
                Ok(false)
            }
            Err(Errno::NOENT) => {
                self.missing.push(said.to_owned());
                Ok(true)
            }
            Err(Errno::LOOP | Errno::NOTDIR) => {
                self.leave_out(said, "a name above it is a link or a file, and no folder");
                Ok(false)
            }
            Err(error) => Err(TransferError::file(self.folder.place(path), error)),
        }
    }

    /// Adds everything below a folder, or the folder itself if it is empty.
    fn walk(&mut self, top: &str) -> Result<(), TransferError> {
        let mut folders = vec![top.to_owned()];
        while let Some(below) = folders.pop() {
            let failed = |error: Errno| TransferError::file(self.folder.place(&below), error);
            let open = self.folder.folder(&below).map_err(failed)?;
            let most = LOOKS_MAX.saturating_sub(self.looks).saturating_add(1);
            let names = names(&open, most).map_err(failed)?;
            if names.is_empty() && !below.is_empty() {
                self.add(Found {
                    path: below.clone(),
                    at: below,
                    kind: FoundKind::EmptyFolder,
                })?;
                continue;
            }
            for name in names {
                folders.extend(self.step(&open, &below, name)?);
            }
        }
        self.found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// Handles one name in a folder. Returns the path of a folder to walk.
    fn step(
        &mut self,
        open: &OwnedFd,
        below: &str,
        name: Vec<u8>,
    ) -> Result<Option<String>, TransferError> {
        self.looks += 1;
        if self.looks > LOOKS_MAX {
            return Err(ManifestError::TooMany(self.looks).into());
        }
        let slash = if below.is_empty() { "" } else { "/" };
        let name = match String::from_utf8(name) {
            Ok(name) => name,
            Err(error) => {
                let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
                self.leave_out(&format!("{below}{slash}{shown}"), "its name is not UTF-8");
                return Ok(None);
            }
        };
        let path = format!("{below}{slash}{name}");
        if path.len() > PATH_BYTES_MAX {
            let shown: String = path.chars().take(80).collect();
            self.leave_out(&format!("{shown}…"), "its path is longer than 4,096 bytes");
            return Ok(None);
        }
        match look(open.as_fd(), &name) {
            Ok(about) if kind(&about) == FileType::Directory => Ok(Some(path)),
            Ok(about) => self.note(path.clone(), path, &about).map(|()| None),
            // It went meanwhile.
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(TransferError::file(self.folder.place(&path), error)),
        }
    }

    /// Adds an object that is no folder.
    fn note(&mut self, path: String, at: String, about: &Stat) -> Result<(), TransferError> {
        let kind = match kind(about) {
            FileType::RegularFile => {
                if self.owner.is_some_and(|owner| owner != about.st_uid) {
                    self.leave_out(&path, "it is another user's file");
                    return Ok(());
                }
                let size = u64::try_from(about.st_size).unwrap_or(0);
                self.bytes = self.bytes.saturating_add(size);
                FoundKind::File
            }
            FileType::Symlink => match self.folder.target(&at).map(String::from_utf8) {
                Ok(Ok(target)) => FoundKind::Link { target },
                Ok(Err(_)) => {
                    self.leave_out(&path, "it is a link to a name that is not UTF-8");
                    return Ok(());
                }
                Err(error) => return Err(TransferError::file(self.folder.place(&at), error)),
            },
            other => {
                self.leave_out(&path, unfit(other));
                return Ok(());
            }
        };
        self.add(Found { path, at, kind })
    }

    fn add(&mut self, found: Found) -> Result<(), TransferError> {
        self.found.push(found);
        if self.found.len() > FILES_MAX {
            return Err(ManifestError::TooMany(self.found.len()).into());
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &str, problem: &str) {
        if self.problems.len() >= PROBLEMS_MAX {
            self.more += 1;
            return;
        }
        self.problems.push(Problem {
            path: path.to_owned(),
            problem: problem.to_owned(),
        });
    }

    /// Returns the path of an object, for messages.
    pub(super) fn place(&self, found: &Found) -> PathBuf {
        self.folder.place(&found.at)
    }
}

const fn unfit(kind: FileType) -> &'static str {
    match kind {
        FileType::Socket => "it is a socket",
        FileType::Fifo => "it is a pipe",
        FileType::CharacterDevice | FileType::BlockDevice => "it is a device",
        _ => "it is neither a file nor a link nor a folder",
    }
}
