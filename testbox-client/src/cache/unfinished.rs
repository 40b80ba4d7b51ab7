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

/// A file that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// Empty: it is kept.
    path: PathBuf,
}

impl Unfinished {
    /// A new file at `path`, where nothing is, which only the agent can read. Blocks.
    pub(super) fn new(path: PathBuf) -> io::Result<(File, Self)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        Ok((file, Self { path }))
    }

    /// The hash of what was written; `None`: stopped. Blocks.
    pub(super) fn hash(&self, stop: &CancellationToken) -> io::Result<Option<Digest>> {
        hashed(File::open(&self.path)?, stop)
    }

    /// It stays where it is, with this mode. Blocks.
    pub(super) fn keep(mut self, mode: u32) -> io::Result<()> {
        fs::set_permissions(&self.path, fs::Permissions::from_mode(mode))?;
        self.path.clear();
        Ok(())
    }

    /// It moves, with this mode, in the place of whatever is there. Blocks.
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
