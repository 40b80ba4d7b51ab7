//! The same load on the embedded store: one scheduler of one machine.

use std::{
    fs::File,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use rustix::process::Signal;

use super::{
    figure::Goal,
    load::{Agent, Site},
    raw::rate,
    report::Fact,
};
use fairlead_cluster::{clock::until, launch::Process};
use fairlead_reaper::Reaper;

/// Time limit until it is ready.
const START_TIME: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const AGENTS: usize = 64;

/// A scheduler with its own store. It ends on drop.
struct Solo(Process);

impl Drop for Solo {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.0.signal(Signal::KILL);
        self.0.reap();
    }
}

/// Place in which it runs.
pub(super) struct Place<'a> {
    pub(super) dir: PathBuf,
    pub(super) binary: PathBuf,
    pub(super) port: u16,
    pub(super) reaper: &'a Reaper,
}

impl Place<'_> {
    /// Submits and dispatches `jobs` in each round.
    pub(super) async fn measure(&self, rounds: usize, jobs: usize) -> anyhow::Result<Vec<Fact>> {
        let solo = self.start()?;
        let facts = facts(self.port, rounds, jobs).await;
        drop(solo);
        facts
    }

    fn start(&self) -> anyhow::Result<Solo> {
        let dir = &self.dir;
        std::fs::create_dir(dir)?;
        let log = File::create(dir.join("log"))?;
        let (name, value) = self.reaper.variable();
        let mut command = Command::new(&self.binary);
        command
            .arg("serve")
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .arg("--data")
            .arg(dir.join("data"))
            .env(name, value)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let started = Process::start(&mut command);
        Ok(Solo(
            started.with_context(|| self.binary.display().to_string())?,
        ))
    }
}

async fn facts(port: u16, rounds: usize, jobs: usize) -> anyhow::Result<Vec<Fact>> {
    let site = Site::new(vec![format!("http://127.0.0.1:{port}")])?;
    let ready = until(LOOK_EVERY, START_TIME, async || {
        site.is_ready().await.then_some(())
    })
    .await;
    ready.context("the scheduler over the embedded store was not ready in time")?;
    let fact = |what: &str, least: Option<f64>| {
        let goal = least.map_or(Goal::None, Goal::AtLeast);
        Fact::new(format!("embedded store: {what}"), goal)
    };
    let mut alone = fact("submits/s, 1 a request, 64 clients", None);
    let mut together = fact("submits/s, 100 a request, 8 clients", Some(10_000.0));
    let mut dispatched = fact("dispatches/s, 64 agents, up to 32 an answer", Some(5_000.0));
    let mut agents: Vec<Agent> = (0..AGENTS).map(Agent::new).collect();
    for _ in 0..rounds {
        alone.push(site.submit_many(64, jobs, 1).await?);
        together.push(site.submit_many(8, jobs, 100).await?);
        for timed in [true, false] {
            let (seconds, _) = site.dispatch(&mut agents, jobs, 32, || 0.0).await?;
            if timed {
                dispatched.push(rate(jobs, seconds));
            }
        }
    }
    Ok(vec![alone, together, dispatched])
}
