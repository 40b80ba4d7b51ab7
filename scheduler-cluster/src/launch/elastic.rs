//! The launcher's own Elasticsearch, run by the project's script, which is part of the program.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use fairlead_reaper::Reaper;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::LaunchError;

const SCRIPT: &str = include_str!("../../../scripts/elasticsearch");

/// How an Elasticsearch of our own is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnElastic {
    /// Nodes, 1 to 9.
    pub nodes: u16,
    /// Port of the first; the others have the next ones.
    pub port: u16,
}

/// A folder with an Elasticsearch cluster in it.
#[derive(Debug, Clone)]
pub struct Elastic {
    script: PathBuf,
    dir: PathBuf,
    /// Of the reaper that ends it.
    variable: Option<(&'static str, OsString)>,
}

impl Elastic {
    /// The one below a launcher's folder, started or not. Nodes that it starts end with `reaper`, if there is one.
    ///
    /// # Errors
    /// The script cannot be written to `folder`.
    pub fn below(folder: &Path, reaper: Option<&Reaper>) -> Result<Self, LaunchError> {
        let script = folder.join("elasticsearch.sh");
        let write = || {
            fs::write(&script, SCRIPT)?;
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
        };
        write().map_err(|cause| LaunchError::file(&script, cause))?;
        Ok(Self {
            script,
            dir: folder.join("elasticsearch"),
            variable: reaper.map(Reaper::variable),
        })
    }

    /// Lets the reaper stop all of it, wherever its nodes run.
    ///
    /// # Errors
    /// The reaper has ended.
    pub fn ends_with(&self, reaper: &Reaper) -> Result<(), LaunchError> {
        let told = reaper.stops(&self.script, &self.dir);
        told.map_err(LaunchError::reaper)
    }

    /// Starts it, or what of it does not run, and returns its URLs.
    ///
    /// # Errors
    /// The script could not be run, or failed.
    pub async fn start(&self, own: OwnElastic) -> Result<Vec<String>, LaunchError> {
        let (nodes, port) = (own.nodes.to_string(), own.port.to_string());
        let said = self
            .run(&["start", "--nodes", &nodes, "--port", &port])
            .await?;
        Ok(said.trim().split(',').map(str::to_owned).collect())
    }

    /// `kill`, `pause` or `resume` node `number`, from 1.
    ///
    /// # Errors
    /// The script could not be run, or failed.
    pub async fn node(&self, what: &str, number: u16) -> Result<(), LaunchError> {
        self.run(&[what, &number.to_string()]).await.map(drop)
    }

    /// Stops all of it; its data stays.
    ///
    /// # Errors
    /// The script could not be run, or failed.
    pub async fn stop(&self) -> Result<(), LaunchError> {
        self.run(&["stop"]).await.map(drop)
    }

    /// Runs the script and returns what it printed; its remarks go to our stderr.
    async fn run(&self, words: &[&str]) -> Result<String, LaunchError> {
        let failed = |why: String| {
            LaunchError::local(
                format!("Elasticsearch: {} failed: {why}", words.join(" ")),
                "see its messages above, or name a running one with --elasticsearch URL",
            )
        };
        let started = Command::new("bash")
            .arg(&self.script)
            .args(words)
            .arg("--dir")
            .arg(&self.dir)
            .envs(self.variable.clone())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let output = started.wait_with_output().await;
        let output = output.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(output.status.to_string()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
