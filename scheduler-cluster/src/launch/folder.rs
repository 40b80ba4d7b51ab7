//! The launcher's folder: its stored state, and its lock.

use std::{
    fs::{self, DirBuilder, File},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{LaunchError, OwnElastic, Process};

/// Version of `cluster.json`.
const FORMAT: u32 = 1;

/// How a cluster is run, from `up` on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The program of new replicas, `fairlead`.
    pub binary: PathBuf,
    /// Port of the first replica; the next ones have the next ports.
    pub port: u16,
    /// URLs of Elasticsearch.
    pub elasticsearch: Vec<String>,
    /// How the replicas log in there, as arguments of `fairlead serve`: names of files, no secrets.
    #[serde(default)]
    pub login: Vec<String>,
    /// Prefix of all its indices.
    pub index_prefix: String,
    /// How it is run, if it is our own, in the folder's `elasticsearch/`.
    pub own_elasticsearch: Option<OwnElastic>,
    /// More arguments of `fairlead serve`.
    pub more: Vec<String>,
}

/// One replica, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// Its number, from 1.
    pub number: u16,
    /// Where it listens, on loopback.
    pub port: u16,
    /// What it was started from last.
    pub binary: PathBuf,
    /// Its process, as started last.
    pub process: Option<Process>,
}

impl Replica {
    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Whether its process runs, paused or not.
    pub fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_running)
    }
}

/// What is remembered between two commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory {
    format: u32,
    pub(super) settings: Settings,
    pub(super) replicas: Vec<Replica>,
}

impl Memory {
    pub(super) fn new(settings: Settings, replicas: Vec<Replica>) -> Self {
        Self {
            format: FORMAT,
            settings,
            replicas,
        }
    }
}

/// A folder of the launcher.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// While it lives, no other command changes anything in the folder.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held until it is dropped")] File);

impl Folder {
    pub(super) fn new(path: &Path) -> Result<Self, LaunchError> {
        let path = std::path::absolute(path).map_err(|cause| LaunchError::file(path, cause))?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What all replicas share: results and logs of jobs.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(super) fn log(&self, number: u16) -> PathBuf {
        self.path.join("logs").join(format!("replica-{number}.log"))
    }

    /// Makes the folder if need be, and takes it for one command.
    pub(super) fn lock(&self) -> Result<Lock, LaunchError> {
        let failed = |cause| LaunchError::file(&self.path, cause);
        fs::create_dir_all(&self.path).map_err(failed)?;
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(self.path.join("logs")).map_err(failed)?;
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(self.path.join("lock")).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LaunchError::usage(
                format!("another command uses '{}'", self.path.display()),
                "wait for its end, or give another --dir",
            )),
            Err(error) => Err(LaunchError::file(&self.path, error)),
        }
    }

    /// What was remembered; `None`: nothing was ever started here.
    pub(super) fn load(&self) -> Result<Option<Memory>, LaunchError> {
        let path = self.path.join("cluster.json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LaunchError::file(&path, error)),
        };
        let memory: Memory =
            serde_json::from_str(&text).map_err(|error| LaunchError::file(&path, error))?;
        if memory.format != FORMAT {
            return Err(LaunchError::file(
                &path,
                format!("its format is {}, expected {FORMAT}", memory.format),
            ));
        }
        Ok(Some(memory))
    }

    /// Remembers, whole or not at all.
    pub(super) fn save(&self, memory: &Memory) -> Result<(), LaunchError> {
        let path = self.path.join("cluster.json");
        let new = self.path.join("cluster.json.new");
        let write = || {
            let mut file = File::create(&new)?;
            serde_json::to_writer_pretty(&mut file, memory)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|cause| LaunchError::file(&path, cause))
    }
}
