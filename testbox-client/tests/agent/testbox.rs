//! An agent inside the test, with a folder of its own.

use std::{path::PathBuf, time::Duration};

use fairlead_api::Grant;
use fairlead_testbox::{AgentConfig, AgentEvent, Kinds};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::fake::Fake;

pub(crate) const DC: Kinds = Kinds::Host { vm: true, dc: true };

/// An agent that runs.
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
        let task = tokio::spawn(fairlead_testbox::run(config, stop.clone(), Some(sender)));
        Self { stop, events, task }
    }

    /// Stops it and waits for its end.
    pub(crate) async fn stopped(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await.unwrap()
    }

    /// Waits for its own end.
    pub(crate) async fn ended(self) -> anyhow::Result<()> {
        self.task.await.unwrap()
    }

    /// The next event that `wanted` takes.
    pub(crate) async fn event<T>(&mut self, wanted: impl Fn(AgentEvent) -> Option<T>) -> T {
        loop {
            let event = self.events.recv().await.unwrap();
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }
}

/// A configuration for tests: short waits, 1000 MB.
pub(crate) fn config(fake: &Fake, folder: &TempDir, kinds: Kinds) -> AgentConfig {
    AgentConfig {
        grace: Duration::from_millis(300),
        report_on_stop: Duration::from_secs(20),
        ..AgentConfig::new(vec![fake.url()], "box", kinds, 1000, folder.path())
    }
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A job of 100 MB that may run a minute.
pub(crate) fn job(job_id: &str, job: Value) -> Grant {
    let Value::Object(job) = job else {
        panic!("not an object")
    };
    Grant {
        job_id: job_id.to_owned(),
        attempt: 1,
        claim_token: "claim".to_owned(),
        job_token: "token".to_owned(),
        tbox_type: "dc".to_owned(),
        memory_mb: 100,
        timeout_s: 60,
        result_root: format!("/result/s/{job_id}"),
        stop_when_cut_off: false,
        job,
    }
}

pub(crate) fn script(job_id: &str, text: &str) -> Grant {
    job(
        job_id,
        json!({"suite": "s", "testbox": "dc", "script": text}),
    )
}

/// A job that goes on until the file is there.
pub(crate) fn gated(job_id: &str, gate: &Gate) -> Grant {
    let path = gate.0.display();
    script(
        job_id,
        &format!("while [ ! -e {path} ]; do sleep 0.02; done; echo through"),
    )
}

/// A file that lets a job go on.
pub(crate) struct Gate(PathBuf);

impl Gate {
    pub(crate) fn new(folder: &TempDir, name: &str) -> Self {
        Self(folder.path().join(name))
    }

    pub(crate) fn open(&self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

/// Whether a process runs (a zombie does not).
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// The local result folder of a job.
pub(crate) fn results(folder: &TempDir, job_id: &str) -> PathBuf {
    folder.path().join(format!("{job_id}-1/result"))
}
