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

/// The first argument that makes this program a launcher.
const WORD: &str = "launch-job";
/// The second one that makes it kill all processes of a user.
const KILL: &str = "kill";
/// This program, also after its file was replaced.
const SELF: &str = "/proc/self/exe";
/// The exit code of a launcher that could not become its job.
const FAILED: u8 = 125;
/// It holds nothing but the way to the job's folder.
const COVER_OPTIONS: &std::ffi::CStr = c"mode=755,size=1m,nr_inodes=1k";
/// Folders that all users may write, and of which each job has its own: of locks, of shared memory, of queues of messages.
const OWN: [&str; 4] = ["/run/lock", "/run/shm", "/dev/shm", "/dev/mqueue"];
/// All users may write there, and remove what is theirs.
const OWN_OPTIONS: &std::ffi::CStr = c"mode=1777";
/// Each user sees its own processes only.
const PROC_OPTIONS: &std::ffi::CStr = c"hidepid=2";

/// What to run, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) uid: u32,
    /// The job's own folder, absolute; the folder around it is hidden from the job.
    pub(crate) folder: OsString,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(String, String)>,
    /// The control groups that count and limit it from its first step on.
    pub(crate) groups: Vec<PathBuf>,
}

/// Why a launcher could not become its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// What it was at; [`Failure::is_program`]: the job's own program.
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

    /// Whether all was prepared, and the job's own program could not be started.
    pub(crate) fn is_program(&self) -> bool {
        self.step == Self::PROGRAM
    }

    pub(crate) fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

/// An order on its way: a memory file that the launcher has as its stdin.
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

    /// The launcher's command; its environment is empty.
    pub(crate) fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(SELF);
        command
            .arg(WORD)
            .env_clear()
            .stdin(Stdio::from(self.file.try_clone()?));
        Ok(command)
    }

    /// What the launcher answered, once it has ended: nothing when it became its job.
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

/// Launches a program that ends at once. An error: no job can be launched.
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

/// The command that kills all processes of a user, however many it makes meanwhile. They can stop or kill the command, too.
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

/// A program that runs agents with [`JobUsers`](super::JobUsers) calls this first in its `main`, before it starts
/// any thread. `None`: it was started as itself. Else it was started as a launcher, and this is its exit code.
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

/// Becomes the job. Returns only when that failed.
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
        // Where this fails, the job is neither counted nor limited. It runs all the same.
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

/// Gives away everything that a job must not have.
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

/// Hides all around the job's folder: an empty file system takes the place of the work folder, or of the first
/// folder on the way there that the job could not enter, and holds the way to the job's folder alone.
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

/// Puts an empty folder over each that jobs would share. Links among them lead to others of them.
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

/// Where the empty file system goes: never above the first folder that others may not enter.
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

/// Kills all processes of a user but this one. As that user, so that no other can be hit.
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
