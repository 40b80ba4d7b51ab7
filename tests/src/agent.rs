//! A real `fairlead-testbox` process with folders of its own.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{clock::LOOK_EVERY, eventually, reaper, settings};

/// An agent process.
#[derive(Debug)]
pub struct Agent {
    child: Option<Child>,
    folder: TempDir,
    host: String,
}

impl Agent {
    /// Starts an agent of `server`, with more arguments of `fairlead-testbox`. Unless these say otherwise, its jobs run
    /// as its own user, because tests and jobs share folders of the test.
    pub fn start(server: &str, host: &str, more: &[&str]) -> Self {
        let folder = reaper::folder("fairlead-agent-");
        let log = File::create(folder.path().join("log"))
            .unwrap_or_else(|error| panic!("a log file: {error}"));
        let mut command = Command::new(settings::binary("fairlead-testbox"));
        if !more.contains(&"--job-user") {
            command.args(["--job-user", "none"]);
        }
        if !more.contains(&"--executor") {
            command.args(["--executor", "process"]);
        }
        if !more.contains(&"--load-root") {
            // The load of the machine that runs the tests must not affect them.
            command.arg("--load-root").arg(folder.path());
        }
        command
            .args(["--server", server, "--host", host])
            .args(more)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .envs([reaper::variable()])
            // An agent hides its environment.
            .arg0(reaper::named("fairlead-testbox"))
            .stdin(Stdio::null())
            .stdout(
                log.try_clone()
                    .unwrap_or_else(|error| panic!("a log file: {error}")),
            )
            .stderr(log);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            child: Some(child),
            folder,
            host: host.to_owned(),
        }
    }

    /// Kills it (`kill -9`), and reaps it. The processes of its jobs are not reached, and must end by themselves.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends SIGTERM, and waits for its orderly end.
    pub async fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            eventually("the agent stops in order", async || {
                child.try_wait().ok().flatten()
            })
            .await;
        }
    }

    /// Stops it with all its jobs, and kills it if that takes too long.
    fn end(&mut self) {
        if let Some(child) = &mut self.child {
            // The second signal kills its jobs at once.
            for _ in 0..2 {
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
                for _ in 0..500 {
                    if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                        return;
                    }
                    std::thread::park_timeout(LOOK_EVERY);
                }
            }
        }
        self.kill();
    }

    /// Returns its output so far.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Agent {
    #[expect(
        clippy::print_stderr,
        reason = "a failed test shows what the agent said"
    )]
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().rev().take(40).collect();
            eprintln!("--- the log of agent {} ends:", self.host);
            lines.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}
