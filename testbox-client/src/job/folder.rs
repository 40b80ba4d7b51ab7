//! A job's folder in the agent's `work_dir`, and the journal in it that outlives the agent.
//!
//! `<job_id>-<attempt>/` holds `job.json`, `job.yaml` (the same, for runners that want that name),
//! `script`, `tmp/`, `result/` (what is uploaded) and `journal.json`. The journal is written before
//! anything that it speaks of happens, and replaced whole: a crash leaves the old one or the new one.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use fairlead_api::{Grant, HeldJob};
use fairlead_job::Health;
use serde::{Deserialize, Serialize};

/// Version of the journal's format.
const FORMAT: u32 = 1;
/// Longest job id that becomes a folder's name.
const JOB_ID_CHARS_MAX: usize = 64;
/// How many closed folders (of jobs that were no longer this agent's) are kept for people to look at.
const CLOSED_MAX: usize = 100;

/// What the agent must know of a job after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    format: u32,
    pub(crate) job_id: String,
    pub(crate) attempt: u16,
    pub(crate) claim_token: String,
    pub(crate) job_token: String,
    /// Where its results go, `/result/…`.
    pub(crate) result_root: String,
    /// The mark of its processes.
    pub(crate) run: String,
    /// Whether its workload was about to be started.
    pub(crate) started: bool,
    /// How it ended, once it has.
    pub(crate) end: Option<End>,
    /// Nothing more is to be done about it.
    pub(crate) closed: bool,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) health: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) reason: String,
    /// Whether it ran at all, so that there may be results.
    pub(crate) ran: bool,
}

impl End {
    /// Whether it is the machine that could not begin the job.
    pub(crate) fn is_fault(&self) -> bool {
        !self.ran && self.health == Health::AbortProvider.as_str()
    }
}

impl Journal {
    pub(crate) fn new(grant: &Grant, run: String) -> Self {
        Self {
            format: FORMAT,
            job_id: grant.job_id.clone(),
            attempt: grant.attempt,
            claim_token: grant.claim_token.clone(),
            job_token: grant.job_token.clone(),
            result_root: grant.result_root.clone(),
            run,
            started: false,
            end: None,
            closed: false,
        }
    }

    pub(crate) fn held(&self) -> HeldJob {
        HeldJob {
            job_id: self.job_id.clone(),
            attempt: self.attempt,
            claim_token: self.claim_token.clone(),
        }
    }
}

/// One job's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobFolder {
    path: PathBuf,
}

impl JobFolder {
    /// Names the folder; refuses ids that are no plain file name.
    pub(crate) fn new(work_dir: &Path, job_id: &str, attempt: u16) -> io::Result<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let good = (1..=JOB_ID_CHARS_MAX).contains(&job_id.len())
            && job_id.chars().all(plain)
            && !job_id.starts_with('.');
        if !good {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("job id {job_id:?} is no plain name of at most {JOB_ID_CHARS_MAX} letters"),
            ));
        }
        Ok(Self {
            path: work_dir.join(format!("{job_id}-{attempt}")),
        })
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

    pub(crate) fn result(&self) -> PathBuf {
        self.path.join("result")
    }

    /// What the job has printed, in its result folder.
    pub(crate) fn output(&self) -> PathBuf {
        self.result().join("output")
    }

    /// Makes the folder anew. Only the agent's own user can look into it: jobs hold secrets.
    pub(crate) fn create(&self, grant: &Grant) -> io::Result<()> {
        self.remove()?;
        let make = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
        make(&self.path)?;
        make(&self.tmp())?;
        make(&self.result())?;
        let mut json = serde_json::to_vec_pretty(&grant.job)?;
        json.push(b'\n');
        fs::write(self.job_json(), &json)?;
        // JSON is YAML.
        fs::write(self.job_yaml(), &json)
    }

    /// Removes the folder, if it is there.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Replaces the journal; it is on the disk when this returns.
    pub(crate) fn save(&self, journal: &Journal) -> io::Result<()> {
        let next = self.path.join("journal.next");
        let json = serde_json::to_vec(journal)?;
        {
            let mut file = fs::File::create(&next)?;
            io::Write::write_all(&mut file, &json)?;
            file.sync_all()?;
        }
        fs::rename(next, self.path.join("journal.json"))
    }

    pub(crate) fn load(&self) -> io::Result<Journal> {
        let json = fs::read(self.path.join("journal.json"))?;
        Ok(serde_json::from_slice(&json)?)
    }
}

/// The jobs that an earlier agent left open in `work_dir`, oldest first. Also removes the oldest of
/// the closed folders beyond [`CLOSED_MAX`], unless all are to be kept.
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
    let mut closed = Vec::new();
    for (_, folder) in folders {
        match folder.load() {
            Ok(journal) if journal.closed => closed.push(folder),
            Ok(journal) => open.push((folder, journal)),
            // Not a job's, or of a job that was never begun.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(folder = %folder.path().display(), %error, "a journal cannot be read");
            }
        }
    }
    if !keep {
        let surplus = closed.len().saturating_sub(CLOSED_MAX);
        for folder in closed.iter().take(surplus) {
            folder.remove()?;
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::environment::tests::grant;

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
        let found = leftovers(dir.path(), false).unwrap();
        assert_eq!(found, [made[1].clone()]);
    }

    #[test]
    fn an_id_that_is_no_name_makes_no_folder() {
        for id in ["", "..", "a/b", ".x", "a\0b", &"1".repeat(65)] {
            assert!(JobFolder::new(Path::new("/tmp"), id, 1).is_err(), "{id:?}");
        }
    }
}
