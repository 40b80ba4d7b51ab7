//! Control groups that count the memory and the CPU time of a job's processes, and limit their memory and their number.
//!
//! Version 1 has a tree for each resource, version 2 one for all. Where the agent may not make groups, nothing is
//! counted or limited. In version 2, memory is counted only where no process is beside the groups. So the agent moves itself into
//! a group of its own if it is alone in its group.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Pid;

use super::entry::Note;
use crate::isolation::kill::{await_end, kill_those};

/// Mount point of control groups.
const MOUNTED: &str = "/sys/fs/cgroup";
/// Prefix of the group names of jobs, before the mark of the run.
const PREFIX: &str = "fairlead-";
/// Maximum number of processes added to a group: those that a job starts before it is a member.
const ADDED_MAX: u32 = 1_000;
/// Maximum number of rounds that kill the processes of a group.
const KILLS_MAX: u32 = 20;
/// Age below which a group without processes is kept, because it may still get its first.
const NEW: Duration = Duration::from_mins(1);
/// Group that an agent moves itself into.
const OWN: &str = "fairlead_agent";
/// Minimum memory limit of a group, MB. Jobs with small requests often start an interpreter, and expect no limit.
const MEMORY_MB_MIN: u32 = 256;
/// Number of processes and threads for each CPU of a job, with its minimum and maximum.
const PROCESSES_PER_CPU: u32 = 1_024;
const PROCESSES_MIN: u32 = 2_048;
pub(crate) const PROCESSES_MAX: u32 = 16_384;
/// Files with one number, and its meaning.
const NUMBERS: [(&str, &str); 3] = [
    ("memory.peak", "memory_bytes"),
    ("memory.max_usage_in_bytes", "memory_bytes"),
    ("cpuacct.usage", "cpu_ns"),
];
/// Files with pairs of a name and a number.
const PAIRS: [&str; 3] = ["memory.events", "memory.oom_control", "cpu.stat"];

/// Limits of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupLimits {
    memory_mb: u32,
    processes: u32,
}

impl GroupLimits {
    /// Returns the limits of a job that asked for this memory and these CPUs.
    pub(crate) fn of(memory_mb: u32, cpus: u32) -> Self {
        let processes = cpus.saturating_mul(PROCESSES_PER_CPU);
        Self {
            memory_mb: memory_mb.max(MEMORY_MB_MIN),
            processes: processes.clamp(PROCESSES_MIN, PROCESSES_MAX),
        }
    }

    /// Returns the contents for the files of a group, in this order. Each cgroup version has some of them. Swap is off.
    fn files(self) -> [(&'static str, String); 5] {
        let bytes = (u64::from(self.memory_mb) << 20).to_string();
        [
            ("memory.limit_in_bytes", bytes.clone()),
            ("memory.memsw.limit_in_bytes", bytes.clone()),
            ("memory.max", bytes),
            ("memory.swap.max", "0".to_owned()),
            ("pids.max", self.processes.to_string()),
        ]
    }
}

/// Folders in which groups of jobs are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Groups {
    parents: Vec<PathBuf>,
    /// Limits of each job.
    limits: Option<GroupLimits>,
}

/// Groups of one job. They are removed on drop.
#[derive(Debug)]
pub(crate) struct Group {
    folders: Vec<PathBuf>,
}

impl Groups {
    /// Finds folders in which this process may make groups, and removes leftovers of earlier agents. Blocks.
    pub(crate) fn find() -> Self {
        let said = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::below(Path::new(MOUNTED), &said, NEW)
    }

    fn below(mounted: &Path, said: &str, new: Duration) -> Self {
        let mut parents = Vec::new();
        for (controllers, folder) in own_groups(mounted, said) {
            if controllers.is_empty() {
                make_room(&folder);
            }
            let trial = folder.join(format!("{PREFIX}{}", uuid::Uuid::new_v4()));
            if fs::create_dir(&trial).is_ok() && fs::remove_dir(&trial).is_ok() {
                parents.push(folder);
            }
        }
        for parent in &parents {
            clear_left(parent, new);
        }
        Self {
            parents,
            limits: None,
        }
    }

    /// Returns the folders with these limits for jobs.
    pub(crate) fn limited(&self, limits: Option<GroupLimits>) -> Self {
        Self {
            limits,
            ..self.clone()
        }
    }

    /// Returns true if memory can be limited.
    pub(crate) fn can_limit(&self) -> bool {
        let trial = self.open(&uuid::Uuid::new_v4().to_string());
        let files = ["memory.max", "memory.limit_in_bytes"];
        let mut folders = trial.folders.iter();
        folders.any(|folder| files.iter().any(|file| folder.join(file).exists()))
    }

    /// Creates the groups of a run, if possible.
    pub(crate) fn open(&self, run: &str) -> Group {
        let folders = self.parents.iter();
        let folders = folders.map(|parent| parent.join(format!("{PREFIX}{run}")));
        let group = Group {
            folders: folders
                .filter(|folder| fs::create_dir(folder).is_ok())
                .collect(),
        };
        for (file, value) in self.limits.iter().flat_map(|limits| limits.files()) {
            group.limit(file, &value);
        }
        group
    }
}

/// Returns the groups of this process that can count or limit: controllers (empty: version 2) and folders.
fn own_groups(mounted: &Path, said: &str) -> Vec<(String, PathBuf)> {
    let lines = said
        .lines()
        .filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let lines: Vec<_> = lines.collect();
    let first = lines.iter().filter_map(|(controllers, path)| {
        let wanted = controllers
            .split(',')
            .find(|word| matches!(*word, "memory" | "cpuacct" | "pids"))?;
        let folder = mounted.join(wanted).join(path.trim_start_matches('/'));
        Some(((*controllers).to_owned(), folder))
    });
    let first: Vec<_> = first.collect();
    if !first.is_empty() {
        return first;
    }
    let second = lines
        .iter()
        .filter(|(controllers, _)| controllers.is_empty());
    second
        .map(|(_, path)| (String::new(), mounted.join(path.trim_start_matches('/'))))
        .collect()
}

/// Enables counting of memory and processes in groups below `folder`, if this process is alone there. Errors are
/// ignored.
fn make_room(folder: &Path) {
    let me = std::process::id().to_string();
    let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    if members.trim() == me {
        let own = folder.join(OWN);
        // The folder may exist, or its creation may be impossible: the next step shows which.
        let _ = fs::create_dir(&own);
        if fs::write(own.join("cgroup.procs"), &me).is_err() {
            return;
        }
    }
    for controller in ["+memory", "+pids"] {
        let _ = fs::write(folder.join("cgroup.subtree_control"), controller);
    }
}

/// Removes groups of jobs without processes, except new ones, which another agent may have just made.
fn clear_left(parent: &Path, new: Duration) {
    let is_old = |entry: &fs::DirEntry| {
        let made = entry.metadata().and_then(|about| about.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age >= new))
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_old(&entry) {
            // A group with processes belongs to another agent, and stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Group {
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Writes a limit if the file exists.
    fn limit(&self, file: &str, value: &str) {
        let files = self.folders.iter().map(|folder| folder.join(file));
        for file in files.filter(|file| file.exists()) {
            if let Err(error) = write(&file, value) {
                tracing::warn!(file = %file.display(), value, %error, "a job is not limited");
            }
        }
    }

    /// Adds a process that has just started, and its children.
    pub(crate) fn add(&self, pid: u32) {
        let mut found = vec![pid];
        for _ in 0..ADDED_MAX {
            let Some(pid) = found.pop() else { return };
            for folder in &self.folders {
                if let Err(error) = write(&folder.join("cgroup.procs"), &pid.to_string()) {
                    tracing::debug!(folder = %folder.display(), %error, "a job is not counted");
                }
            }
            // The process may have started children before it was a member.
            found.extend(children_of(pid));
        }
    }

    /// Kills all of its processes, even those that left the job's process group and cleared their environment. Blocks.
    pub(crate) fn kill(&self) {
        for folder in &self.folders {
            // This kills all processes at once, in version 2 from Linux 5.14 on. Older kernels lack the file.
            let _ = write(&folder.join("cgroup.kill"), "1");
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            for _ in 0..KILLS_MAX {
                let killed = kill_those(members(folder), |pid| is_member(pid, &name));
                if killed.is_empty() {
                    break;
                }
                await_end(&killed);
            }
        }
    }

    /// Returns the counts so far. `before` has those known from elsewhere.
    pub(crate) fn note(&self, before: Note) -> Note {
        let mut text = String::new();
        for folder in &self.folders {
            for (file, name) in NUMBERS {
                if let Ok(number) = fs::read_to_string(folder.join(file)) {
                    text.extend([name, " ", number.trim(), "\n"]);
                }
            }
            for file in PAIRS {
                text.push_str(&fs::read_to_string(folder.join(file)).unwrap_or_default());
            }
        }
        let counted = Note::of(&text);
        Note {
            has_begun: before.has_begun,
            memory_bytes: counted.memory_bytes.or(before.memory_bytes),
            cpu_ms: counted.cpu_ms.or(before.cpu_ms),
            oom_kills: before.oom_kills.or(counted.oom_kills),
        }
    }
}

/// Writes to a file of a group. The kernel made the file.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(file)?;
    file.write_all(text.as_bytes())
}

/// Returns the processes of a group.
fn members(folder: &Path) -> Vec<Pid> {
    let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let numbers = listed.lines().filter_map(|line| line.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

/// Returns the children that the first thread of a process started.
fn children_of(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    let numbers = listed.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Returns true if a process is in a group of this name.
fn is_member(pid: Pid, name: &str) -> bool {
    let groups = format!("/proc/{}/cgroup", pid.as_raw_nonzero());
    let groups = fs::read_to_string(groups).unwrap_or_default();
    groups
        .lines()
        .any(|line| line.rsplit('/').next() == Some(name))
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            if let Err(error) = remove(folder) {
                tracing::debug!(folder = %folder.display(), %error, "a control group stays until the next start");
            }
        }
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found_and_read() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["memory/a", "cpuacct", "b"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let first = Groups::below(
            dir.path(),
            "9:name=systemd:/\n4:memory:/a\n2:cpu,cpuacct:/\n0::/\n",
            NEW,
        );
        assert_eq!(
            first.parents,
            [dir.path().join("memory/a"), dir.path().join("cpuacct")]
        );
        let group = first.open("run");
        fs::write(group.folders[0].join("memory.max_usage_in_bytes"), "4096\n").unwrap();
        fs::write(
            group.folders[0].join("memory.oom_control"),
            "under_oom 0\noom_kill 1\n",
        )
        .unwrap();
        fs::write(group.folders[1].join("cpuacct.usage"), "7000000\n").unwrap();
        let counted = Note {
            has_begun: false,
            memory_bytes: Some(4096),
            cpu_ms: Some(7),
            oom_kills: Some(1),
        };
        assert_eq!(group.note(Note::default()), counted);
        let second = Groups::below(dir.path(), "0::/b\n", NEW);
        assert_eq!(second.parents, [dir.path().join("b")]);
        let group = second.open("run");
        fs::write(group.folders[0].join("memory.peak"), "4096\n").unwrap();
        fs::write(
            group.folders[0].join("memory.events"),
            "oom 1\noom_kill 1\n",
        )
        .unwrap();
        fs::write(group.folders[0].join("cpu.stat"), "usage_usec 7000\n").unwrap();
        assert_eq!(group.note(Note::default()), counted);
        // The host's count of memory overrides the guest's, and the guest's count of kills overrides the host's.
        let guest = Note {
            oom_kills: Some(0),
            ..counted
        };
        assert_eq!(group.note(guest), guest);
    }

    #[test]
    fn each_version_limits_by_its_own_files() {
        let of = |memory_mb, cpus| {
            let limits = GroupLimits::of(memory_mb, cpus);
            (limits.memory_mb, limits.processes)
        };
        assert_eq!(of(1, 1), (256, 2_048));
        assert_eq!(of(512, 4), (512, 4_096));
        assert_eq!(of(512, u32::MAX), (512, 16_384));
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("g");
        fs::create_dir(&folder).unwrap();
        let files = ["memory.max", "memory.swap.max", "pids.max"];
        for file in files {
            fs::write(folder.join(file), "").unwrap();
        }
        let group = Group {
            folders: vec![folder.clone()],
        };
        for (file, value) in GroupLimits::of(512, 2).files() {
            group.limit(file, &value);
        }
        let written = files.map(|file| fs::read_to_string(folder.join(file)).unwrap());
        assert_eq!(written, ["536870912", "0", "2048"]);
        assert!(!folder.join("memory.limit_in_bytes").exists());
    }

    #[test]
    fn groups_leave_with_their_job_or_with_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let groups = Groups::below(dir.path(), "0::/\n", NEW);
        drop(groups.open("one"));
        std::mem::forget(groups.open("two"));
        assert!(dir.path().join("fairlead-two").exists());
        assert!(!dir.path().join("fairlead-one").exists());
        Groups::below(dir.path(), "0::/\n", NEW);
        assert!(dir.path().join("fairlead-two").exists(), "it is new");
        Groups::below(dir.path(), "0::/\n", Duration::ZERO);
        assert!(!dir.path().join("fairlead-two").exists());
        let none = Groups::below(Path::new("/nowhere"), "0::/\n", NEW);
        assert_eq!(none.open("x").note(Note::default()), Note::default());
    }
}
