//! The scheduler and the agent of one run, started and stopped together.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use fairlead_api::{
    AccountChange, AccountView, ClientError,
    client::{Client, ClientConfig},
};
use fairlead_job::SiteDefaults;
use fairlead_scheduler::{Access, Config, Server};
use fairlead_testbox::{AgentConfig, Kinds};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::machine::Machine;
use crate::{cmd_serve, exit::Failure};

/// Interval of the agent's heartbeats. Orders to stop a job come with their answers.
const HEARTBEAT_MS: u64 = 1000;
/// Time for a job to end by itself after Ctrl-C.
const GRACE: Duration = Duration::from_secs(5);
/// Time for a killed agent to disappear.
const KILLED: Duration = Duration::from_secs(5);

/// Account that submits, and account that runs the jobs.
const ADMIN: &str = "fairlead-run";
const TESTBOX: &str = "fairlead-run-testbox";

/// A running lab: scheduler and agent.
#[derive(Debug)]
pub(crate) struct LocalLab {
    server: Server,
    agent: JoinSet<anyhow::Result<()>>,
    stop_agent: CancellationToken,
    kill_agent: CancellationToken,
    pub(crate) client: Client,
    data_dir: PathBuf,
}

impl LocalLab {
    /// Starts scheduler and agent. `data_dir` is absolute.
    pub(crate) async fn start(
        data_dir: &Path,
        machine: &Machine,
        site: &SiteDefaults,
        jobs_max: u32,
        runner: Option<&str>,
    ) -> Result<Self, Failure> {
        // A process that reaches the loopback port must not be able to run commands as this user.
        let token = format!(
            "{}{}",
            uuid::Uuid::new_v4().simple(),
            uuid::Uuid::new_v4().simple()
        );
        let server = cmd_serve::start(Config {
            access: Access::Tokens,
            admin: Some((ADMIN.to_owned(), token.clone())),
            site: site.clone(),
            heartbeat_ms: HEARTBEAT_MS,
            ..Config::embedded(data_dir.to_owned())
        })
        .await?;
        let urls = [server.url()];
        let mut client = ClientConfig::new(urls.clone());
        client.token = Some(token);
        let client = Client::new(client)?;
        let testbox = testbox_of(&client, &machine.name).await?;
        let stop_agent = CancellationToken::new();
        let kill_agent = CancellationToken::new();
        let kinds = Kinds::Host { vm: true, dc: true };
        let config = AgentConfig {
            token: testbox.my_token,
            runner: runner.map(str::to_owned),
            jobs_max,
            cpus: Some(machine.processors.max(jobs_max)),
            grace: GRACE,
            kill_now: kill_agent.clone(),
            ..AgentConfig::new(
                urls.into(),
                machine.name.clone(),
                kinds,
                machine.memory_mb,
                data_dir.join("testbox"),
            )
        };
        let mut agent = JoinSet::new();
        agent.spawn(fairlead_testbox::run(config, stop_agent.clone(), None));
        Ok(Self {
            server,
            agent,
            stop_agent,
            kill_agent,
            client,
            data_dir: data_dir.to_owned(),
        })
    }

    /// Waits until the agent ends by itself, which is always a failure.
    pub(crate) async fn broken(&mut self) -> Failure {
        let why = match self.agent.join_next().await {
            Some(Ok(Err(error))) => format!("{error:#}"),
            Some(Err(error)) => error.to_string(),
            Some(Ok(Ok(()))) | None => "it ended by itself".to_owned(),
        };
        Failure::local(format!("the local testbox failed: {why}"), "")
    }

    /// Stops the agent. Its jobs end or are killed after a while, and are reported.
    pub(crate) async fn stop_agent(&mut self) {
        self.stop_agent.cancel();
        while self.agent.join_next().await.is_some() {}
    }

    /// Kills the agent's jobs at once, and waits only briefly for anything else.
    pub(crate) async fn kill_agent(&mut self) {
        self.kill_agent.cancel();
        self.stop_agent.cancel();
        let gone = async { while self.agent.join_next().await.is_some() {} };
        // A task that hangs longer is not a process of a job.
        let _ = tokio::time::timeout(KILLED, gone).await;
    }

    /// Stops scheduler and agent.
    pub(crate) async fn stop(mut self) {
        self.stop_agent().await;
        self.server.stop().await;
    }

    /// Returns the folder of a result root, if it exists.
    pub(crate) fn folder(&self, result_root: &str) -> String {
        folder(&self.data_dir, result_root)
    }
}

/// Creates the agent's account, because only testboxes get jobs.
async fn testbox_of(client: &Client, host: &str) -> Result<AccountView, ClientError> {
    let testbox = AccountChange {
        role: Some("testbox".to_owned()),
        hosts: Some(vec![host.to_owned()]),
        new_token: true,
        overlap_s: Some(0),
        ..AccountChange::default()
    };
    client.set_account(TESTBOX, &testbox).await
}

fn folder(data_dir: &Path, result_root: &str) -> String {
    let path = data_dir.join(result_root.trim_start_matches('/'));
    if path.is_dir() {
        path.to_string_lossy().into_owned()
    } else {
        String::new()
    }
}
