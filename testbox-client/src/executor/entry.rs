//! The files by which a job begins in a guest: a script that runs its command there, its environment, and a note in
//! which that script puts what the job used.
//!
//! The script is POSIX sh without any other program, so an image needs `/bin/sh` and nothing else. In a container it is
//! the first process, to which the kernel gives no default for SIGTERM: it sends the signal on to all others.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Folder of the guest's own files in the job's folder: its environment and disks.
pub(crate) const GUEST_FOLDER: &str = "guest";
/// Folder of the inputs in the job's folder.
pub(crate) const INPUTS: &str = "inputs";
/// Folder of the outputs in the job's folder.
pub(crate) const OUTPUTS: &str = "outputs";
/// Path of its job's folder inside a guest.
pub(crate) const INSIDE: &str = "/fairlead";
/// Path of this module's files inside a guest.
pub(crate) const GUEST_INSIDE: &str = "/fairlead/.guest";
/// Maximum length of the note that is read, bytes. The job can write to the note.
const NOTE_BYTES_MAX: usize = 4096;

const ENTRY: &str = r#"# Runs a job's command, and notes what all of the guest used.
guest=/fairlead/.guest
trap 'kill -TERM -1' TERM
echo begun > "$guest/note"
. "$guest/env"
. "$guest/command"
cd /fairlead
"$@" &
job=$!
until wait "$job"; code=$?; ! kill -0 "$job" 2>/dev/null; do :; done
# A signal may have ended the last wait, and not the job; a shell that has told its end before says 127.
wait "$job" 2>/dev/null; told=$?
if [ $told != 127 ]; then code=$told; fi
number() { if [ -r "$1" ]; then read -r value < "$1"; echo "$2 $value"; fi; }
pairs() { if [ -r "$1" ]; then while read -r key value; do echo "$key $value"; done < "$1"; fi; }
{
    # Control groups of version 2, then those of version 1.
    number /sys/fs/cgroup/memory.peak memory_bytes
    pairs /sys/fs/cgroup/memory.events
    pairs /sys/fs/cgroup/cpu.stat
    number /sys/fs/cgroup/memory/memory.max_usage_in_bytes memory_bytes
    pairs /sys/fs/cgroup/memory/memory.oom_control
    number /sys/fs/cgroup/cpuacct/cpuacct.usage cpu_ns
} 2>/dev/null >> "$guest/note"
exit "$code"
"#;

/// Program to run.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Complete environment.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) folder: PathBuf,
    /// Mark of all processes of the run.
    pub(crate) run: String,
}

/// Note of a guest. The job can write to it, so it is only for people and decides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// True if the job's command was about to start.
    pub(crate) has_begun: bool,
    /// Peak memory, bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// CPU time of all its processes, milliseconds.
    pub(crate) cpu_ms: Option<u64>,
    /// Number of its processes that the kernel killed for lack of memory. `None`: not reported.
    pub(crate) oom_kills: Option<u64>,
}

impl Note {
    pub(crate) fn of(text: &str) -> Self {
        let mut note = Self::default();
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            let number = value.trim().parse().ok();
            match key {
                "begun" => note.has_begun = true,
                "memory_bytes" => note.memory_bytes = number.or(note.memory_bytes),
                "usage_usec" => note.cpu_ms = number.map(|us: u64| us / 1000).or(note.cpu_ms),
                "cpu_ns" => note.cpu_ms = number.map(|ns: u64| ns / 1_000_000).or(note.cpu_ms),
                "oom_kill" => note.oom_kills = number.or(note.oom_kills),
                _ => {}
            }
        }
        note
    }
}

/// Files of one guest, in a folder of the job's folder.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    folder: PathBuf,
}

impl Entry {
    /// Returns the paths of the files in this job folder.
    pub(crate) fn of(job_folder: &Path) -> Self {
        Self {
            folder: job_folder.join(GUEST_FOLDER),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn note(&self) -> PathBuf {
        self.folder.join("note")
    }

    /// Returns the home folder of the job.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// Writes the files. Variables with names that no shell accepts are left out.
    pub(crate) fn write(&self, task: &Task) -> io::Result<()> {
        fs::create_dir(&self.folder)?;
        fs::create_dir(self.home())?;
        fs::write(self.folder.join("entry"), ENTRY)?;
        fs::write(self.folder.join("env"), exports(&task.env))?;
        fs::write(self.folder.join("command"), command(task)?)?;
        fs::write(self.note(), "")?;
        // Only the agent can enter the folder around them; inside, any user of the guest must be able to read them.
        for (file, mode) in [
            ("", 0o755),
            ("entry", 0o644),
            ("env", 0o644),
            ("command", 0o644),
        ] {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(self.folder.join(file), mode)?;
        }
        Ok(())
    }

    /// Gives the job's user the files that it writes to.
    pub(crate) fn give(&self, uid: u32) -> io::Result<()> {
        let (user, group) = (
            rustix::process::Uid::from_raw(uid),
            rustix::process::Gid::from_raw(uid),
        );
        for path in [self.home(), self.note()] {
            rustix::fs::chown(&path, Some(user), Some(group))?;
        }
        Ok(())
    }

    /// Returns the guest's note. It is empty if it cannot be read.
    pub(crate) fn read(&self) -> Note {
        let Ok(file) = fs::File::open(self.note()) else {
            return Note::default();
        };
        let mut bytes = Vec::new();
        let mut start = io::Read::take(file, NOTE_BYTES_MAX as u64);
        match io::Read::read_to_end(&mut start, &mut bytes) {
            Ok(_) => Note::of(&String::from_utf8_lossy(&bytes)),
            Err(_) => Note::default(),
        }
    }
}

/// Returns a shell line that passes these words as arguments.
fn command(task: &Task) -> io::Result<String> {
    let mut line = "set --".to_owned();
    for word in std::iter::once(&task.program).chain(&task.args) {
        let word = word.to_str().ok_or_else(|| {
            let problem = format!("{} is not UTF-8", word.display());
            io::Error::new(io::ErrorKind::InvalidInput, problem)
        })?;
        line.push(' ');
        line.push_str(&quoted(word));
    }
    line.push('\n');
    Ok(line)
}

fn exports(env: &[(String, String)]) -> String {
    let known = env.iter().filter(|(name, _)| is_shell_name(name));
    let lines = known.map(|(name, value)| format!("export {name}={}", quoted(value)));
    let mut lines: Vec<_> = lines.collect();
    lines.push(String::new());
    lines.join("\n")
}

fn is_shell_name(name: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.as_bytes().first().is_some_and(is_letter)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn an_environment_goes_through_the_shell_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let entry = Entry::of(dir.path());
        let value = "it's $HOME `id` \"x\" \\\n two";
        let env = [("A_1", value), ("1a", "no"), ("a-b", "no"), ("b", "")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let words = vec!["%s|%s".into(), "it's".into()];
        let task = Task {
            program: "printf".into(),
            args: words,
            env: env.into(),
            folder: dir.path().to_owned(),
            run: String::new(),
        };
        entry.write(&task).unwrap();
        let script = format!(
            "cd {}; . ./env; . ./command; \"$@\" \"$A_1$b\"",
            entry.folder().display()
        );
        let output = Command::new("/bin/sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            format!("it's|{value}")
        );
        assert_eq!(output.stderr, b"");
    }

    #[test]
    fn a_note_tells_of_both_versions_of_control_groups() {
        let second = "begun\nmemory_bytes 4096\nlow 0\noom 1\noom_kill 1\nusage_usec 2500\n";
        let noted = Note {
            has_begun: true,
            memory_bytes: Some(4096),
            cpu_ms: Some(2),
            oom_kills: Some(1),
        };
        assert_eq!(Note::of(second), noted);
        let first = "begun\nmemory_bytes 4096\nunder_oom 0\noom_kill 1\ncpu_ns 2500000\n";
        assert_eq!(Note::of(first), noted);
        assert_eq!(Note::of("memory_bytes x\n\0"), Note::default());
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Entry::of(dir.path()).read(), Note::default());
    }
}
