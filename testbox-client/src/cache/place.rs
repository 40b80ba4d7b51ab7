//! The way of a file out of the cache into the folder of a job: hashed on its way, and read-only there.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::Path,
};

use fairlead_content::Digest;
use rustix::fs::{AtFlags, CWD, ioctl_ficlone, linkat};
use tokio_util::sync::CancellationToken;

use super::{
    key::{FileKey, Wanted},
    reading::{STEP_BYTES, hashed, open},
    unfinished::Unfinished,
};

/// Mask of the permission bits of a mode.
const MODE_BITS: u32 = 0o7777;

/// Way in which a job gets a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Hard link to the cached file, if the job runs as another user and cannot change it.
    Link,
    /// Copy. It shares the disk's blocks if the file system can do that.
    Copy,
}

/// Result of placing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The job has the file.
    Whole,
    /// The cached file is damaged. The job has nothing.
    Damaged,
    /// Stopped before the end. The job has nothing.
    Stopped,
}

/// Places the cached file `from` at the new path `to`. Errors are those of `to`. Blocks.
pub(crate) fn place(
    from: &Path,
    to: &Path,
    wanted: Wanted,
    way: Way,
    stop: &CancellationToken,
) -> io::Result<Placed> {
    let Wanted { key, bytes } = wanted;
    if way == Way::Link && linkat(CWD, from, CWD, to, AtFlags::empty()).is_ok() {
        let read = open(to).and_then(|file| {
            if fits(&file, bytes)? && is_safe(&file, key)? {
                hashed(file, stop)
            } else {
                Err(io::ErrorKind::InvalidData.into())
            }
        });
        return settled(to, &read, key);
    }
    // A link may be impossible at this place.
    let source = open(from).and_then(|file| Ok(fits(&file, bytes)?.then_some(file)));
    let Ok(Some(source)) = source else {
        return Ok(Placed::Damaged);
    };
    let (mut target, unfinished) = Unfinished::new(to.to_owned())?;
    let read = if ioctl_ficlone(&target, &source).is_ok() {
        // The hash is of the file that the job gets.
        hashed(&target, stop)
    } else {
        match copied(source, &mut target, stop) {
            Err(Broken::Target(error)) => return Err(error),
            Err(Broken::Source(error)) => Err(error),
            Ok(read) => Ok(read),
        }
    };
    unfinished.keep(key.mode())?;
    settled(to, &read, key)
}

/// Leaves `to` in place only if its hash is right. `read` has the hash, or `None` if stopped. An unreadable file counts
/// as damaged.
fn settled(to: &Path, read: &io::Result<Option<Digest>>, key: FileKey) -> io::Result<Placed> {
    let placed = match read {
        Ok(None) => Placed::Stopped,
        Ok(Some(found)) if *found == key.digest => Placed::Whole,
        Ok(Some(_)) | Err(_) => Placed::Damaged,
    };
    if placed != Placed::Whole {
        fs::remove_file(to)?;
    }
    Ok(placed)
}

fn fits(file: &File, bytes: u64) -> io::Result<bool> {
    let about = file.metadata()?;
    Ok(about.is_file() && about.len() == bytes)
}

/// Returns true if no job's user can write to the file.
fn is_safe(file: &File, key: FileKey) -> io::Result<bool> {
    let about = file.metadata()?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    Ok(is_own && about.mode() & MODE_BITS == key.mode())
}

/// Failed end of a copy.
enum Broken {
    Source(io::Error),
    Target(io::Error),
}

/// Copies a file, and returns the hash of the copied bytes. `None`: stopped.
fn copied(
    mut source: File,
    target: &mut File,
    stop: &CancellationToken,
) -> Result<Option<Digest>, Broken> {
    let mut hasher = blake3::Hasher::new();
    let mut step = vec![0; STEP_BYTES];
    loop {
        let many = source.read(&mut step).map_err(Broken::Source)?;
        if many == 0 {
            return Ok(Some(hasher.finalize().into()));
        }
        let read = step.get(..many).unwrap_or_default();
        hasher.update(read);
        target.write_all(read).map_err(Broken::Target)?;
        if stop.is_cancelled() {
            return Ok(None);
        }
    }
}
