//! Sources of job files and their includes. Only this module of the crate reads a disk.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::limits::FILE_BYTES_MAX;

/// Where included files come from.
pub trait Source {
    /// The bytes of a file.
    ///
    /// # Errors
    /// Whatever the place says: not there, not allowed, too large.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns true if `path` is a file that [`Source::read`] could read.
    fn is_file(&self, path: &Path) -> bool;

    /// The folders directly in `path`, sorted. None by default, so nothing is searched below a folder.
    fn folders(&self, path: &Path) -> Vec<PathBuf> {
        let _ = path;
        Vec::new()
    }

    /// The path from the root, for the search of a `jobs/` folder above a file. As it is by default.
    fn absolute(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// The disk. A file of more than [`FILE_BYTES_MAX`] bytes is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct FsSource;

impl Source for FsSource {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        // Refused before opening: opening a FIFO would wait for its other end.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "is not a regular file",
            ));
        }
        let mut bytes = Vec::new();
        File::open(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|n| n > FILE_BYTES_MAX) {
            let limit = format!("is larger than {FILE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, limit));
        }
        Ok(bytes)
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn folders(&self, path: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(path) else {
            return Vec::new();
        };
        // A link to a folder is not followed: it may lead back up.
        let is_folder = |e: &fs::DirEntry| e.file_type().is_ok_and(|t| t.is_dir());
        let mut folders: Vec<PathBuf> = entries
            .flatten()
            .filter(is_folder)
            .map(|e| e.path())
            .collect();
        folders.sort();
        folders
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
    }
}

/// Refuses every include: for a server, which must not read its own disk for a client.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Source for NoFiles {
    fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "files cannot be included here",
        ))
    }

    fn is_file(&self, _path: &Path) -> bool {
        false
    }
}
