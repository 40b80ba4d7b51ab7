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

/// The bits of a mode that count.
const MODE_BITS: u32 = 0o7777;

/// How a job gets a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The very file, where the job is another user and cannot change it.
    Link,
    /// A copy, which shares the disk's blocks where the file system can do that.
    Copy,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The job has the file.
    Whole,
    /// The file of the cache is not what it should be; the job has nothing.
    Damaged,
    /// Stopped on the way; the job has nothing.
    Stopped,
}

/// Puts the file of the cache at `from` to `to`, where nothing is. Errors are those of `to`. Blocks.
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
    // A link may be impossible there.
    let source = open(from).and_then(|file| Ok(fits(&file, bytes)?.then_some(file)));
    let Ok(Some(source)) = source else {
        return Ok(Placed::Damaged);
    };
    let (mut target, unfinished) = Unfinished::new(to.to_owned())?;
    let read = if ioctl_ficlone(&target, &source).is_ok() {
        // What the job gets is what is hashed.
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

/// Leaves `to` there only if it holds what it should. `read`: its hash; `None`: stopped. A file that cannot be read is a
/// damaged one.
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

/// Whether no job's user can write to it.
fn is_safe(file: &File, key: FileKey) -> io::Result<bool> {
    let about = file.metadata()?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    Ok(is_own && about.mode() & MODE_BITS == key.mode())
}

/// Which end of a copy cannot be used.
enum Broken {
    Source(io::Error),
    Target(io::Error),
}

/// Copies, and hashes what it copied; `None`: stopped.
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
