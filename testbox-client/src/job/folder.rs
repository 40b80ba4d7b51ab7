//! A job's folder in the agent's `work_dir`, and the journal in it that outlives the agent.
//!
//! `<job_id>-<attempt>/` holds `job.json`, `job.yaml` (the same, for runners that want that name),
//! `script`, `tmp/`, `result/` (what is uploaded) and `journal.json`. A job that has inputs or outputs also has `inputs/`
//! and `outputs/`. The journal is written before
//! anything that it speaks of happens, and replaced whole: a crash leaves the old one or the new one.
//!
//! The job may replace most of these files. The agent never reads them back: `job.kept` is its own copy of the job, without
//! secrets, and takes the place of `job.json` and `job.yaml` in the end.
//!
//! Unless folders are to be kept, a job that is over leaves only what is to be delivered, and nothing afterwards.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use fairlead_api::Grant;
use rustix::{
    fs::OFlags,
    process::{Gid, Uid, geteuid},
};

use super::journal::Journal;
use crate::{
    executor::{GUEST_FOLDER, INPUTS, OUTPUTS},
    remove_tree::remove_tree,
};

/// Maximum length of a job id that becomes a folder's name, characters.
const JOB_ID_CHARS_MAX: usize = 64;
/// Name of the job field with its secrets.
const SECRETS: &str = "secrets";
/// Maximum length of a journal that is read, bytes. Jobs that run as the agent may replace it with anything.
const JOURNAL_BYTES_MAX: u64 = 1 << 20;
/// File name of the journal.
const JOURNAL: &str = "journal.json";
/// File name of the job without its secrets, kept after its end.
const KEPT: &str = "job.kept";
/// Files that an ended job keeps until delivery: its results, its outputs, and the agent's records.
const DELIVERED: [&str; 6] = ["result", OUTPUTS, JOURNAL, KEPT, "job.json", "job.yaml"];

/// Folder of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobFolder {
    path: PathBuf,
}

impl JobFolder {
    /// Returns the folder's name. Fails for ids that are not plain file names.
    pub(crate) fn new(work_dir: &Path, job_id: &str, attempt: u16) -> io::Result<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let good = (1..=JOB_ID_CHARS_MAX).contains(&job_id.len())
            && job_id.chars().all(plain)
            && !job_id.starts_with('.');
        if !good {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "job id {job_id:?} is not a plain name of at most {JOB_ID_CHARS_MAX} letters"
                ),
            ));
        }
        Ok(Self {
            path: work_dir.join(format!("{job_id}-{attempt}")),
        })
    }

    /// Returns true if its name has the form of [`JobFolder::new`]: the numbers of a job and an attempt.
    fn is_named_as_job(&self) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str());
        let numbers = name.and_then(|name| name.split_once('-'));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        numbers.is_some_and(|(id, attempt)| is_number(id) && is_number(attempt))
    }

    /// Returns the folder as a guest sees it at another path.
    pub(crate) fn seen_at(path: &str) -> Self {
        Self { path: path.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn job_json(&self) -> PathBuf {
        self.path.join("job.json")
    }

    pub(crate) fn job_yaml(&self) -> PathBuf {
        self.path.join("job.yaml")
    }

    pub(crate) fn script(&self) -> PathBuf {
        self.path.join("script")
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Returns the folder of the job's inputs, read-only. It exists only if the job asks for inputs.
    pub(crate) fn inputs(&self) -> PathBuf {
        self.path.join(INPUTS)
    }

    /// Returns the folder of the job's outputs for others. It exists only if the job declares outputs.
    pub(crate) fn outputs(&self) -> PathBuf {
        self.path.join(OUTPUTS)
    }

    pub(crate) fn result(&self) -> PathBuf {
        self.path.join("result")
    }

    /// Returns the file with the job's output, in its result folder.
    pub(crate) fn output(&self) -> PathBuf {
        self.result().join("output")
    }

    /// Returns true if the job left nothing: no output and no other file.
    pub(crate) fn is_silent(&self) -> io::Result<bool> {
        let output = self.output();
        for entry in fs::read_dir(self.result())? {
            let entry = entry?;
            if entry.path() != output || entry.metadata()?.len() > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the parts that a guest sees, by name, with true if the job may write to them. The agent writes the
    /// output.
    pub(crate) fn shared(&self) -> Vec<(PathBuf, String, bool)> {
        let parts = [
            ("job.json", false),
            ("job.yaml", false),
            ("script", false),
            (INPUTS, false),
            ("tmp", true),
            (OUTPUTS, true),
            ("result", true),
            ("result/output", false),
        ];
        parts
            .map(|(name, is_writable)| (self.path.join(name), name.to_owned(), is_writable))
            .into()
    }

    /// Creates the folder. Only the agent's own user can look into it, because jobs hold secrets.
    pub(crate) fn create(&self, grant: &Grant) -> io::Result<()> {
        self.remove()?;
        let make = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
        make(&self.path)?;
        make(&self.tmp())?;
        make(&self.result())?;
        if !grant.outputs.is_empty() {
            make(&self.outputs())?;
        }
        let json = json_of(&grant.job)?;
        write_anew(&self.job_json(), &json)?;
        // JSON is valid YAML.
        write_anew(&self.job_yaml(), &json)?;
        let mut kept = grant.job.clone();
        kept.shift_remove(SECRETS);
        write_anew(&self.path.join(KEPT), &json_of(&kept)?).map(drop)
    }

    /// Gives the folder to the job's user, except for the parts that the agent needs. The job owns its files, and can
    /// create and remove others. It can neither move `result` away nor touch the journal, the output and the inputs.
    pub(crate) fn give(&self, uid: u32) -> io::Result<()> {
        let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
        for folder in [&self.path, &self.result(), &self.outputs()] {
            match rustix::fs::chown(folder, None, Some(group)) {
                // A job without outputs has no such folder.
                Err(rustix::io::Errno::NOENT) if *folder == self.outputs() => continue,
                outcome => outcome?,
            }
            fs::set_permissions(folder, fs::Permissions::from_mode(0o1770))?;
        }
        rustix::fs::chown(self.tmp(), Some(user), Some(group))?;
        for file in [self.job_json(), self.job_yaml(), self.script()] {
            match rustix::fs::chown(&file, Some(user), Some(group)) {
                Err(rustix::io::Errno::NOENT) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Returns the folder to the agent after the job's last process. Removes its secrets and disks, and everything that
    /// is not delivered, unless `keep` is set.
    pub(crate) fn take_back(&self, keep: bool) -> io::Result<()> {
        let own = self.take_back_own();
        if keep {
            return own;
        }
        own.and(self.remove_all_but_delivered())
    }

    fn take_back_own(&self) -> io::Result<()> {
        remove_tree(&self.path.join(GUEST_FOLDER))?;
        fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700))?;
        let (user, group) = (geteuid(), rustix::process::getegid());
        if fs::metadata(&self.path)?.gid() != group.as_raw() {
            rustix::fs::chown(&self.path, Some(user), Some(group))?;
        }
        let kept = self.path.join(KEPT);
        for file in [self.job_json(), self.job_yaml()] {
            remove_tree(&file)?;
            match fs::hard_link(&kept, file) {
                // An earlier agent started the job, and made no copy.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Removes all other files. Continues after errors, and returns the first one.
    fn remove_all_but_delivered(&self) -> io::Result<()> {
        let mut outcome = Ok(());
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if !DELIVERED.iter().any(|kept| *kept == name) {
                outcome = outcome.and(remove_tree(&self.path.join(name)));
            }
        }
        outcome
    }

    /// Removes the folder, if it exists.
    pub(crate) fn remove(&self) -> io::Result<()> {
        if fs::symlink_metadata(&self.path).is_ok_and(|about| about.is_file()) {
            // An unknown file at this path stays.
            return Err(io::ErrorKind::NotADirectory.into());
        }
        remove_tree(&self.path)
    }

    /// Replaces the journal. It is synced to the disk before this returns.
    pub(crate) fn save(&self, journal: &Journal) -> io::Result<()> {
        let next = self.path.join("journal.next");
        let json = serde_json::to_vec(journal)?;
        write_anew(&next, &json)?.sync_all()?;
        fs::rename(next, self.path.join(JOURNAL))
    }

    pub(crate) fn load(&self) -> io::Result<Journal> {
        let path = self.path.join(JOURNAL);
        if fs::symlink_metadata(&path)?.uid() != geteuid().as_raw() {
            return Err(io::Error::other("another user owns it"));
        }
        Ok(serde_json::from_slice(&read_bounded(&path)?)?)
    }
}

fn json_of(job: &fairlead_job::Spec) -> io::Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(job)?;
    json.push(b'\n');
    Ok(json)
}

/// Writes a file that only the agent's user can read. Replaces an existing entry, because a job may have put a link
/// there.
fn write_anew(path: &Path, bytes: &[u8]) -> io::Result<fs::File> {
    remove_tree(path)?;
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    io::Write::write_all(&mut file, bytes)?;
    Ok(file)
}

/// Reads a journal without following a link, and only up to its maximum length.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(
        &mut io::Read::take(&mut file, JOURNAL_BYTES_MAX + 1),
        &mut bytes,
    )?;
    if bytes.len() as u64 > JOURNAL_BYTES_MAX {
        let problem = format!("it has more than {JOURNAL_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(bytes)
}

/// Returns the jobs that an earlier agent left open in `work_dir`, oldest first. Removes the folders of all others,
/// unless `keep` is set.
pub(crate) fn leftovers(work_dir: &Path, keep: bool) -> io::Result<Vec<(JobFolder, Journal)>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(work_dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let age = entry.metadata()?.modified()?;
            folders.push((age, JobFolder { path: entry.path() }));
        }
    }
    folders.sort_by_key(|(age, _)| *age);
    let mut open = Vec::new();
    for (_, folder) in folders {
        match folder.load() {
            Ok(journal) if journal.closed && keep => {}
            Ok(journal) if journal.closed => remove_left(&folder),
            Ok(journal) => open.push((folder, journal)),
            // The job was never started: its agent died before it wrote the journal.
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_named_as_job() => {
                tracing::info!(folder = %folder.path().display(), "removing the folder of a job that never started");
                folder.remove()?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(folder = %folder.path().display(), %error, "the journal of a job cannot be read, so nothing of it is delivered");
                if !keep && folder.is_named_as_job() {
                    remove_left(&folder);
                }
            }
        }
    }
    Ok(open)
}

/// Removes the folder of an ended job. A failure to remove it completely does not stop the agent.
fn remove_left(folder: &JobFolder) {
    if let Err(error) = folder.remove() {
        tracing::warn!(folder = %folder.path().display(), %error, "the folder of a job cannot be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::grant;

    #[test]
    fn a_journal_survives_and_closed_ones_are_not_left_over() {
        let dir = tempfile::tempdir().unwrap();
        let mut made = Vec::new();
        for id in ["7", "8"] {
            let grant = grant(id, serde_json::json!({"suite": "x"}));
            let folder = JobFolder::new(dir.path(), id, 1).unwrap();
            folder.create(&grant).unwrap();
            let journal = Journal::new(&grant, "run".to_owned());
            folder.save(&journal).unwrap();
            made.push((folder, journal));
        }
        let mut found = leftovers(dir.path(), false).unwrap();
        found.sort_by(|a, b| a.1.job_id.cmp(&b.1.job_id));
        assert_eq!(found, made);
        made[0].1.closed = true;
        made[0].0.save(&made[0].1).unwrap();
        let found = leftovers(dir.path(), true).unwrap();
        assert_eq!(found, [made[1].clone()]);
        assert!(made[0].0.path().exists(), "all are to be kept");
        let found = leftovers(dir.path(), false).unwrap();
        assert_eq!(found, [made[1].clone()]);
        assert!(!made[0].0.path().exists());
    }

    #[test]
    fn a_job_with_a_broken_journal_is_swept_unless_it_is_to_be_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = JobFolder::new(dir.path(), "7", 1).unwrap();
        folder.create(&grant("7", serde_json::json!({}))).unwrap();
        let huge = "[".repeat(usize::try_from(JOURNAL_BYTES_MAX).unwrap() + 1);
        for journal in ["", "{", "[]", &huge] {
            fs::create_dir_all(folder.path()).unwrap();
            fs::write(folder.path().join(JOURNAL), journal).unwrap();
            assert_eq!(leftovers(dir.path(), true).unwrap(), []);
            assert!(folder.path().exists());
            assert_eq!(leftovers(dir.path(), false).unwrap(), []);
            assert!(!folder.path().exists(), "{journal:.9}");
        }
    }

    #[test]
    fn a_job_that_is_over_leaves_only_what_is_to_be_delivered() {
        let dir = tempfile::tempdir().unwrap();
        let grant = Grant {
            outputs: vec!["disk.img".to_owned()],
            ..grant("7", serde_json::json!({"suite": "x"}))
        };
        for keep in [true, false] {
            let folder = JobFolder::new(dir.path(), "7", 1).unwrap();
            folder.create(&grant).unwrap();
            folder
                .save(&Journal::new(&grant, "run".to_owned()))
                .unwrap();
            for made in ["tmp/deep/er", "inputs/a", "src/core", "result/sub"] {
                fs::create_dir_all(folder.path().join(made)).unwrap();
            }
            std::os::unix::fs::symlink(dir.path(), folder.path().join("link")).unwrap();
            folder.take_back(keep).unwrap();
            let left = fs::read_dir(folder.path()).unwrap();
            let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut left: Vec<String> = left.collect();
            left.sort();
            let delivered = [
                "job.json",
                "job.kept",
                "job.yaml",
                "journal.json",
                "outputs",
                "result",
            ];
            assert_eq!(left == delivered, !keep, "{left:?}");
            assert!(folder.result().join("sub").exists() && folder.load().is_ok());
        }
    }

    #[test]
    fn a_folder_without_a_journal_is_swept_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let begun = JobFolder::new(dir.path(), "7", 1).unwrap();
        begun
            .create(&grant("7", serde_json::json!({"suite": "x"})))
            .unwrap();
        for other in ["cache", "7", "a-1", "7-x"] {
            fs::create_dir(dir.path().join(other)).unwrap();
        }
        assert_eq!(leftovers(dir.path(), true).unwrap(), []);
        assert!(!begun.path().exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
    }

    #[test]
    fn secrets_leave_with_the_end_whatever_the_job_put_there() {
        let dir = tempfile::tempdir().unwrap();
        let job = serde_json::json!({"suite": "x", "secrets": {"password": "hush"}});
        let grant = grant("7", job);
        let folder = JobFolder::new(dir.path(), "7", 1).unwrap();
        folder.create(&grant).unwrap();
        folder.take_back(false).unwrap();
        let text = fs::read_to_string(folder.job_json()).unwrap();
        assert!(text.contains("suite") && !text.contains("hush"), "{text}");
        assert_eq!(fs::read_to_string(folder.job_yaml()).unwrap(), text);
        folder.create(&grant).unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "{}").unwrap();
        fs::remove_file(folder.job_json()).unwrap();
        std::os::unix::fs::symlink(&other, folder.job_json()).unwrap();
        fs::write(folder.job_yaml(), "hush ".repeat(1 << 20)).unwrap();
        // The second round is the one after a restart.
        for _ in 0..2 {
            folder.take_back(false).unwrap();
            for file in [folder.job_json(), folder.job_yaml()] {
                assert_eq!(fs::read_to_string(file).unwrap(), text);
            }
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "{}");
        // An earlier agent made no copy.
        fs::remove_file(folder.path().join(KEPT)).unwrap();
        folder.take_back(false).unwrap();
        assert!(!folder.job_json().exists() && !folder.job_yaml().exists());
        // The journal is not written through a link either.
        std::os::unix::fs::symlink(&other, folder.path().join("journal.next")).unwrap();
        folder
            .save(&Journal::new(&grant, "run".to_owned()))
            .unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "{}");
    }

    #[test]
    fn an_id_that_is_no_name_makes_no_folder() {
        for id in ["", "..", "a/b", ".x", "a\0b", &"1".repeat(65)] {
            assert!(JobFolder::new(Path::new("/tmp"), id, 1).is_err(), "{id:?}");
        }
    }
}
