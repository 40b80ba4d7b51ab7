//! A file that is being written: it is gone unless somebody keeps it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use fairlead_content::Digest;
use tokio_util::sync::CancellationToken;

use super::reading::hashed;

/// A file that is removed on drop, unless it is kept.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// Path of the file. Empty: it is kept.
    path: PathBuf,
}

impl Unfinished {
    /// Creates a file at the new path `path` that only the agent can read. Blocks.
    pub(super) fn new(path: PathBuf) -> io::Result<(File, Self)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        Ok((file, Self { path }))
    }

    /// Returns the hash of the written bytes. `None`: stopped. Blocks.
    pub(super) fn hash(&self, stop: &CancellationToken) -> io::Result<Option<Digest>> {
        hashed(File::open(&self.path)?, stop)
    }

    /// Keeps the file at its path, with this mode. Blocks.
    pub(super) fn keep(mut self, mode: u32) -> io::Result<()> {
        fs::set_permissions(&self.path, fs::Permissions::from_mode(mode))?;
        self.path.clear();
        Ok(())
    }

    /// Moves the file with this mode to `to`, and replaces an existing file. Blocks.
    pub(super) fn move_to(mut self, to: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(&self.path, fs::Permissions::from_mode(mode))?;
        fs::rename(&self.path, to)?;
        self.path.clear();
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty()
            && let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(file = %self.path.display(), %error, "cannot remove an unfinished input");
        }
    }
}
