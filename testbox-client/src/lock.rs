//! Files that are locked by one process at a time.

use std::{fs::File, io, path::Path};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// A file that is locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Creates a file if necessary, and locks it. `Ok(None)`: somebody else has locked it.
    ///
    /// # Errors
    /// Fails if the file is unusable.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = File::create(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process has a copy until it runs its program.
        if let Err(error) = flock(&self.0, FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock a file");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: an agent that started right after the end of another one found its folder in use.
    #[test]
    fn a_lock_ends_though_a_child_has_a_copy_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        let of_child = lock.0.try_clone().unwrap();
        assert!(Lock::take(&path).unwrap().is_none());
        drop(lock);
        assert!(Lock::take(&path).unwrap().is_some());
        drop(of_child);
    }
}
