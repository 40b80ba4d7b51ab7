//! Reads files that somebody may have put others in the place of.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use fairlead_content::Digest;
use rustix::fs::OFlags;
use tokio_util::sync::CancellationToken;

/// Number of bytes per read.
pub(super) const STEP_BYTES: usize = 256 << 10;

/// Opens a file without following a link.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    options.open(path)
}

/// Returns the hash of a file. `None`: stopped.
pub(super) fn hashed(
    mut source: impl Read,
    stop: &CancellationToken,
) -> io::Result<Option<Digest>> {
    let mut hasher = blake3::Hasher::new();
    let mut step = vec![0; STEP_BYTES];
    loop {
        let many = source.read(&mut step)?;
        if many == 0 {
            return Ok(Some(hasher.finalize().into()));
        }
        hasher.update(step.get(..many).unwrap_or_default());
        if stop.is_cancelled() {
            return Ok(None);
        }
    }
}
