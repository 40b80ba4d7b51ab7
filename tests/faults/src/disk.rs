//! The data folder of a run, on a small file system of its own that can be filled.
//!
//! A process keeps it in a mount namespace, and only the replicas enter that. So the file system goes with the last of
//! these processes, however the run ends.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fairlead_reaper::Reaper;
use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    process::geteuid,
};

use super::rig::script;

/// Size of the file system, MiB. The small files of an hour of jobs fit in.
const SIZE_MIB: u64 = 256;
/// Shell command of the process that keeps the file system mounted.
const KEEP: &str = "mount -t tmpfs -o \"$1\" tmpfs \"$2\" && echo kept && exec cat >/dev/null";
/// Shell command that tries a mount for a moment, without harm.
const TRY: &str = "command -v nsenter && mount -t tmpfs tmpfs /proc";

/// Returns a command in its own mount namespace.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if !geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command
}

/// Returns true if this user may mount a file system that only its own processes see.
pub(super) fn is_possible() -> bool {
    let tried = apart()
        .args(["sh", "-c", TRY])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// The mounted file system.
#[derive(Debug)]
pub(super) struct Disk {
    /// Process that keeps the mount. It ends when this is dropped, because its input ends.
    _keeper: Child,
    /// Path of the data folder for processes other than the replicas.
    folder: PathBuf,
    program: PathBuf,
}

impl Disk {
    /// Mounts it as the data folder below `dir`, for the replicas that [`Self::program`] starts. It ends with `reaper`
    /// at the latest.
    ///
    /// # Errors
    /// Fails if it cannot be mounted, or if a file of `dir` cannot be written.
    pub(super) fn below(dir: &Path, binary: &Path, reaper: &Reaper) -> io::Result<Self> {
        let data = dir.join("data");
        fs::create_dir_all(&data)?;
        let options = format!("size={SIZE_MIB}m,mode=700");
        let mut keeper = apart()
            .args(["sh", "-c", KEEP, "sh", &options])
            .arg(&data)
            .envs([reaper.variable()])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        if let Some(output) = keeper.stdout.take() {
            BufReader::new(output).read_line(&mut said)?;
        }
        if said.is_empty() {
            return Err(io::Error::other("a small file system cannot be mounted"));
        }
        let id = keeper.id();
        let user = if geteuid().is_root() {
            ""
        } else {
            " --user --preserve-credentials"
        };
        let program = dir.join("fairlead-on-disk");
        let binary = binary.display();
        script(
            &program,
            &format!("exec nsenter --target {id} --mount{user} -- '{binary}' \"$@\""),
        )?;
        let inside = data.strip_prefix("/").unwrap_or(&data);
        Ok(Self {
            _keeper: keeper,
            folder: Path::new("/proc")
                .join(id.to_string())
                .join("root")
                .join(inside),
            program,
        })
    }

    /// Returns a program that starts a `fairlead` with this file system.
    pub(super) fn program(&self) -> PathBuf {
        self.program.clone()
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Fills the disk except for this number of pages; no file takes less than one. Others free room, so this must be
    /// repeated.
    ///
    /// # Errors
    /// Fails if the file system is unusable.
    pub(super) fn fill(&self, pages_left: u64) -> io::Result<()> {
        let room = statvfs(&self.folder)?;
        let pages = room.f_bavail.saturating_sub(pages_left);
        let more = pages.saturating_mul(room.f_frsize);
        if more == 0 {
            return Ok(());
        }
        let filler = File::options()
            .create(true)
            .append(true)
            .open(self.filler())?;
        let size = filler.metadata()?.len();
        match fallocate(&filler, FallocateFlags::empty(), size, more) {
            // Another process took some of the room meanwhile.
            Err(rustix::io::Errno::NOSPC) => Ok(()),
            filled => Ok(filled?),
        }
    }

    /// Frees everything that was filled.
    ///
    /// # Errors
    /// Fails if the file system is unusable.
    pub(super) fn free(&self) -> io::Result<()> {
        match fs::remove_file(self.filler()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            freed => freed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_starts_on_it_sees_it_and_finds_no_room_while_it_is_full() {
        let dir = tempfile::tempdir().unwrap();
        let write = dir.path().join("write");
        script(&write, "cd \"$1\" && head -c 10000 /dev/zero >\"$2\"").unwrap();
        let reaper = Reaper::start().unwrap();
        let disk = Disk::below(dir.path(), &write, &reaper);
        assert_eq!(disk.is_ok(), is_possible(), "{disk:?}");
        let Ok(disk) = disk else {
            return;
        };
        let data = dir.path().join("data");
        let writes = |name: &str| {
            let mut command = Command::new(disk.program());
            command.arg(&data).arg(name).stderr(Stdio::null());
            command.status().unwrap().success()
        };
        let size = |name: &str| fs::metadata(disk.folder.join(name)).unwrap().len();
        assert!(writes("first"));
        assert_eq!(size("first"), 10_000);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
        for _ in 0..2 {
            disk.fill(0).unwrap();
            assert!(!writes("second"));
            assert_eq!(size("second"), 0);
        }
        disk.free().unwrap();
        disk.free().unwrap();
        assert!(writes("second"));
        let folder = disk.folder.clone();
        drop((disk, reaper));
        assert!(!folder.exists());
    }
}
