//! A `fairlead serve` process, and an agent in the test's own process.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use fairlead_testbox::{AgentConfig, Kinds};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, Ran};

/// Time limit of any wait, on any loaded machine.
const LIMIT: Duration = Duration::from_mins(2);
/// Interval between checks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Calls `ask` repeatedly until it has an answer.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    #[expect(clippy::disallowed_methods, reason = "the test's deadline")]
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begin.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::park_timeout(LOOK_EVERY);
    }
}

/// A scheduler process, killed on drop.
pub(crate) struct Serving {
    child: Child,
    pub(crate) url: String,
}

impl Serving {
    /// Starts a scheduler on a free port, with data in the lab's folder `data`.
    pub(crate) fn start(lab: &Lab, more: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", lab, more)
    }

    /// Starts a scheduler at an address that an earlier one of this lab may have had.
    pub(crate) fn start_at(address: &str, lab: &Lab, more: &[&str]) -> Self {
        let args = ["serve", "--listen", address, "--data", "data"];
        let log = fs::File::create(lab.path().join("serve.log")).expect("a log");
        let mut child = lab
            .fairlead(&[&args, more].concat())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("fairlead starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("its stdout");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("fairlead serves on ");
        let url = url.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, url }
    }

    /// Runs a command with it.
    pub(crate) fn run(&self, lab: &Lab, args: &[&str]) -> Ran {
        lab.run(&[args, &["--server", &self.url]].concat())
    }

    /// Sends SIGTERM. Returns the exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status();
    assert!(sent.expect("kill").success());
}

/// Returns true if any process has this text in its command line.
pub(crate) fn runs(text: &str) -> bool {
    let entries = fs::read_dir("/proc").expect("/proc");
    entries.flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        // A process that has ended and is not reaped yet has no command line.
        String::from_utf8_lossy(&line)
            .replace('\0', " ")
            .contains(text)
    })
}

/// An agent with 4 GB in the test's own process, stopped on drop.
pub(crate) struct Agent {
    runtime: Option<tokio::runtime::Runtime>,
    stop: CancellationToken,
    task: Option<tokio::task::JoinHandle<anyhow::Result<()>>>,
}

impl Agent {
    pub(crate) fn start(url: &str, token: Option<&str>, work_dir: &Path) -> Self {
        let kinds = Kinds::Host { vm: true, dc: true };
        let config = AgentConfig {
            token: token.map(str::to_owned),
            ..AgentConfig::new(vec![url.to_owned()], "box-1", kinds, 4096, work_dir)
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let stop = CancellationToken::new();
        let task = runtime.spawn(fairlead_testbox::run(config, stop.clone(), None));
        Self {
            runtime: Some(runtime),
            stop,
            task: Some(task),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.cancel();
        if let (Some(runtime), Some(task)) = (self.runtime.take(), self.task.take()) {
            let _ = runtime.block_on(task);
        }
    }
}
