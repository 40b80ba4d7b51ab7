//! The launcher: a process that starts as root, drops all rights, and becomes a job.
//!
//! It is this same program, started with [`WORD`]. While it has rights, it has no environment of the job: its order
//! comes in a memory file on its stdin, and errors go back the same way. It makes a mount namespace with a `/proc` that
//! shows only the job's own processes. It hides the agent's work folder except the job's own folder, and gives the job its
//! own empty folders where programs share memory and locks. Then it drops groups and user for good.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::{
        fd::AsFd,
        unix::{fs::MetadataExt, fs::PermissionsExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use nix::sched::{CloneFlags, unshare};
use rustix::{
    fs::{CWD, MemfdFlags, Mode, OFlags, memfd_create, openat},
    mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change},
    process::{Gid, Uid},
    thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};
use serde::{Deserialize, Serialize};

use super::children;

/// First argument that makes this program a launcher.
const WORD: &str = "launch-job";
/// Second argument that makes a launcher kill all processes of a user.
const KILL: &str = "kill";
/// Path of this program, which stays valid after its file was replaced.
const SELF: &str = "/proc/self/exe";
/// Exit code of a launcher that could not become its job.
const FAILED: u8 = 125;
/// Mount options of the covering file system. It holds only the path to the job's folder.
const COVER_OPTIONS: &std::ffi::CStr = c"mode=755,size=1m,nr_inodes=1k";
/// World-writable folders of which each job gets its own: for locks, shared memory and message queues.
const OWN: [&str; 4] = ["/run/lock", "/run/shm", "/dev/shm", "/dev/mqueue"];
/// Mount options of these folders. All users may write there, and remove their own files.
const OWN_OPTIONS: &std::ffi::CStr = c"mode=1777";
/// Mount options by which each user sees only its own processes.
const PROC_OPTIONS: &std::ffi::CStr = c"hidepid=2";

/// Order for a launcher: a program and its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) uid: u32,
    /// The job's own folder, absolute. The folder around it is hidden from the job.
    pub(crate) folder: OsString,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(String, String)>,
    /// Control groups that count and limit the job from its first step on.
    pub(crate) groups: Vec<PathBuf>,
}

/// Failure of a launcher to become its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Failed step. [`Failure::is_program`] tells if it was the start of the job's own program.
    pub(crate) step: String,
    pub(crate) errno: i32,
}

impl Failure {
    const PROGRAM: &'static str = "start the program";

    fn of(step: &str, error: &io::Error) -> Self {
        Self {
            step: step.to_owned(),
            errno: error.raw_os_error().unwrap_or_default(),
        }
    }

    /// Returns true if everything was prepared, but the job's own program could not be started.
    pub(crate) fn is_program(&self) -> bool {
        self.step == Self::PROGRAM
    }

    pub(crate) fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

/// An order in transit: a memory file that is the launcher's stdin.
#[derive(Debug)]
pub(crate) struct Post {
    file: File,
    bytes: u64,
}

impl Post {
    pub(crate) fn of(order: &Order) -> io::Result<Self> {
        let mut file = File::from(memfd_create("fairlead-order", MemfdFlags::CLOEXEC)?);
        let json = serde_json::to_vec(order)?;
        file.write_all(&json)?;
        file.rewind()?;
        Ok(Self {
            file,
            bytes: json.len() as u64,
        })
    }

    /// Returns the launcher's command. Its environment is empty.
    pub(crate) fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(SELF);
        command
            .arg(WORD)
            .env_clear()
            .stdin(Stdio::from(self.file.try_clone()?));
        Ok(command)
    }

    /// Returns the launcher's failure after its end. `None`: it became its job.
    pub(crate) fn failure(&self) -> io::Result<Option<Failure>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.bytes))?;
        let mut json = Vec::new();
        file.read_to_end(&mut json)?;
        if json.is_empty() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&json)?))
    }
}

/// Launches a program that ends at once. Fails if no job can be launched.
pub(crate) fn try_out(uid: u32, folder: &Path) -> io::Result<()> {
    let post = Post::of(&Order {
        uid,
        folder: folder.into(),
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "exit 0".into()],
        env: Vec::new(),
        groups: Vec::new(),
    })?;
    let mut command = post.command()?;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (mut child, own) = children::start(|| command.spawn(), |child| Some(child.id()))?;
    let status = child.wait()?;
    drop(own);
    match post.failure()? {
        Some(failure) => {
            let error = failure.error();
            let message = format!("the launcher cannot {}: {error}", failure.step);
            Err(io::Error::new(error.kind(), message))
        }
        None if status.success() => Ok(()),
        None => Err(io::Error::other(format!("the launcher ended: {status}"))),
    }
}

/// Returns the command that kills all processes of a user, even if they multiply meanwhile. They can stop or kill the
/// command.
pub(crate) fn kill_command(uid: u32) -> Command {
    let mut command = Command::new(SELF);
    command
        .args([WORD, KILL, &uid.to_string()])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs the launcher, if the program was started as one. A program that runs agents with [`JobUsers`](super::JobUsers)
/// must call this first in `main`, before it starts a thread. Returns the launcher's exit code. `None`: the program was
/// started normally.
pub fn launched() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != WORD {
        return None;
    }
    let outcome = match args.next() {
        None => launch(),
        Some(word) if word == KILL => {
            let uid = args.next().and_then(|uid| uid.to_str()?.parse().ok());
            uid.map_or(Ok(()), kill_all)
        }
        Some(_) => Ok(()),
    };
    Some(outcome.map_or(ExitCode::from(FAILED), |()| ExitCode::SUCCESS))
}

/// Becomes the job. Returns only on failure.
fn launch() -> io::Result<()> {
    let mut order = Vec::new();
    io::stdin().lock().read_to_end(&mut order)?;
    let order: Order = serde_json::from_slice(&order)?;
    let failure = become_job(&order);
    let json = serde_json::to_vec(&failure)?;
    rustix::io::write(io::stdin().as_fd(), &json)?;
    Err(failure.error())
}

fn become_job(order: &Order) -> Failure {
    for group in &order.groups {
        // On failure, the job runs without being counted or limited.
        let _ = fs::write(group.join("cgroup.procs"), "0");
    }
    if let Err(failure) = enclose(order) {
        return failure;
    }
    let error = Command::new(&order.program)
        .args(&order.args)
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&order.folder)
        .stdin(Stdio::null())
        .exec();
    Failure::of(Failure::PROGRAM, &error)
}

/// Drops everything that a job must not have.
fn enclose(order: &Order) -> Result<(), Failure> {
    let at = |step: &'static str| move |error: io::Error| Failure::of(step, &error);
    let (uid, gid) = (Uid::from_raw(order.uid), Gid::from_raw(order.uid));
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC)
        .map_err(io::Error::from)
        .map_err(at("make namespaces"))?;
    let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", propagation)
        .map_err(io::Error::from)
        .map_err(at("make mounts its own"))?;
    cover(Path::new(&order.folder)).map_err(at("hide the work folder"))?;
    give_own(Path::new(&order.folder)).map_err(at("make folders of its own"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, PROC_OPTIONS)
        .map_err(io::Error::from)
        .map_err(at("hide processes"))?;
    let give_up = || -> rustix::io::Result<()> {
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        set_no_new_privs(true)
    };
    give_up()
        .map_err(io::Error::from)
        .map_err(at("give up rights"))
}

/// Hides everything around the job's folder. An empty file system covers the work folder, or the first folder above it
/// that the job could not enter. It holds only the path to the job's folder.
fn cover(folder: &Path) -> io::Result<()> {
    let place = covered(folder)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let own = openat(CWD, folder, flags, Mode::empty())?;
    let nothing = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("fairlead", &place, "tmpfs", nothing, COVER_OPTIONS)?;
    fs::create_dir_all(folder)?;
    let mut way = folder;
    while way != place {
        fs::set_permissions(way, fs::Permissions::from_mode(0o755))?;
        way = way.parent().unwrap_or(&place);
    }
    let source = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&own));
    Ok(mount_bind(source, folder)?)
}

/// Mounts an empty folder over each shared folder. Links among these folders lead to other ones of them.
fn give_own(folder: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    for place in OWN {
        let is_folder = fs::symlink_metadata(place).is_ok_and(|about| about.is_dir());
        // A work folder below it stays where it is.
        if is_folder && !folder.starts_with(place) {
            mount("fairlead", place, "tmpfs", flags, OWN_OPTIONS)?;
        }
    }
    Ok(())
}

/// Returns the folder to cover. It is never above the first folder that others may not enter.
fn covered(folder: &Path) -> io::Result<PathBuf> {
    let work_dir = folder.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut way: VecDeque<&Path> = work_dir.ancestors().collect();
    // The root itself cannot be covered.
    way.pop_back();
    while let Some(place) = way.pop_back() {
        if fs::metadata(place)?.mode() & 0o001 == 0 {
            return Ok(place.to_owned());
        }
    }
    if work_dir.parent().is_none() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(work_dir.to_owned())
}

/// Kills all processes of a user except this one. It runs as that user, so it can hit no other.
fn kill_all(uid: u32) -> io::Result<()> {
    let uid = Uid::from_raw(uid);
    if uid.is_root() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    set_thread_res_uid(uid, uid, uid)?;
    let all = nix::unistd::Pid::from_raw(-1);
    match nix::sys::signal::kill(all, nix::sys::signal::Signal::SIGKILL) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_and_so_does_its_failure() {
        let order = Order {
            uid: 7,
            folder: "/w/7-1".into(),
            program: "/bin/sh".into(),
            args: vec!["script".into()],
            env: vec![("A".to_owned(), "b c".to_owned())],
            groups: vec!["/g".into()],
        };
        let post = Post::of(&order).unwrap();
        let mut launcher = post.file.try_clone().unwrap();
        let mut json = Vec::new();
        launcher.read_to_end(&mut json).unwrap();
        assert_eq!(serde_json::from_slice::<Order>(&json).unwrap(), order);
        assert_eq!(post.failure().unwrap(), None);
        let failure = Failure::of(Failure::PROGRAM, &io::Error::from_raw_os_error(2));
        let json = serde_json::to_vec(&failure).unwrap();
        rustix::io::write(&launcher, &json).unwrap();
        let told = post.failure().unwrap().unwrap();
        assert!(told.is_program() && told.error().kind() == io::ErrorKind::NotFound);
    }

    #[test]
    fn the_first_folder_that_others_may_not_enter_is_covered() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = dir.path().join("a/work");
        let folder = work_dir.join("7-1");
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(covered(&folder).unwrap(), dir.path());
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(covered(&folder).unwrap(), work_dir);
    }
}
