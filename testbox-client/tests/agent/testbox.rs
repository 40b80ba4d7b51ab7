//! An agent inside the test, with its own folder.

use std::path::PathBuf;

use fairlead_api::Grant;
use serde_json::json;
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub(crate) use crate::testing::{DC, grant as job};
use crate::{AgentConfig, AgentEvent, Kinds, fake::Fake, testing};

#[expect(
    clippy::print_stderr,
    reason = "a test that waits for this agent does not know why it waits in vain"
)]
fn say_why(error: &anyhow::Error) {
    eprintln!("the agent ended: {error:#}");
}

/// A running agent.
pub(crate) struct Testbox {
    pub(crate) stop: CancellationToken,
    pub(crate) events: mpsc::Receiver<AgentEvent>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Testbox {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test itself owns the agent's task and joins it in `stopped`"
    )]
    pub(crate) fn start(config: AgentConfig) -> Self {
        let stop = CancellationToken::new();
        let (sender, events) = mpsc::channel(1000);
        let run = fairlead_testbox::run(config, stop.clone(), Some(sender));
        let task = tokio::spawn(async move {
            let ended = run.await;
            if let Err(error) = &ended {
                say_why(error);
            }
            ended
        });
        Self { stop, events, task }
    }

    /// Stops it and waits for its end.
    pub(crate) async fn stopped(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await.unwrap()
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(self) -> anyhow::Result<()> {
        self.task.await.unwrap()
    }

    /// Returns the next event that `wanted` accepts.
    pub(crate) async fn event<T>(&mut self, wanted: impl Fn(AgentEvent) -> Option<T>) -> T {
        loop {
            let event = self.events.recv().await.unwrap();
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }
}

pub(crate) fn config(fake: &Fake, folder: &TempDir, kinds: Kinds) -> AgentConfig {
    testing::config(&fake.url(), kinds, folder.path())
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn script(job_id: &str, text: &str) -> Grant {
    job(
        job_id,
        json!({"suite": "s", "testbox": "dc", "script": text}),
    )
}

/// Returns a job that runs until the file exists.
pub(crate) fn gated(job_id: &str, gate: &Gate) -> Grant {
    script(job_id, &format!("{}; echo through", gate.wait()))
}

/// A file that lets a job go on.
pub(crate) struct Gate(PathBuf);

impl Gate {
    pub(crate) fn new(folder: &TempDir, name: &str) -> Self {
        Self(folder.path().join(name))
    }

    /// Returns shell words that wait until the gate is open.
    pub(crate) fn wait(&self) -> String {
        format!("while [ ! -e {} ]; do sleep 0.02; done", self.0.display())
    }

    pub(crate) fn open(&self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

/// Returns true if a process runs. A zombie does not.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Returns the local result folder of a job.
pub(crate) fn results(folder: &TempDir, job_id: &str) -> PathBuf {
    folder.path().join(format!("{job_id}-1/result"))
}

/// Returns the folders of jobs in the work folder.
pub(crate) fn job_folders(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_job = |name: &String| {
        name.split_once('-')
            .is_some_and(|(id, _)| id.parse::<u64>().is_ok())
    };
    names.filter(is_job).collect()
}
