//! Providers of machines: who lists, makes and ends the machines of pools. The real ones are programs of the site.
//!
//! A program is called as `PROGRAM list`, `PROGRAM increase` or `PROGRAM terminate`. It reads one JSON object from its
//! standard input: `pool`, `machine` (what the machines of the pool are) and `machines`, a list of `{token, name}`. `list`
//! prints a JSON object a line for each machine of the pool that there is: `{token, name}`, and perhaps `state`. It ends
//! with status 0; else the last line on its standard error says why.
//!
//! A call may be made twice, and by two replicas beside each other: the same token must make one machine.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use async_trait::async_trait;
use fairlead_api::PoolMachine;
use serde::{Deserialize, Serialize};
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

/// Timeout of a program that lists machines.
const LIST_TIME: Duration = Duration::from_mins(1);
/// Timeout of a program that makes or ends machines.
const CHANGE_TIME: Duration = Duration::from_mins(5);
/// Maximum number of machines that are read from a list.
const LISTED_MAX: usize = 20_000;
/// Longest kept reason of a failed call, characters.
const PROBLEM_CHARS: usize = 300;
/// States of machines that count as gone.
const ENDED: [&str; 3] = ["terminated", "terminating", "failed"];

/// A machine, as a provider names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProviderMachine {
    /// Unique word under which it was requested. Letters, digits and hyphens, at most 64.
    pub token: String,
    /// Name of its host, under which its agent asks for work.
    pub name: String,
    /// State in the provider's words; empty: not given. `terminated`, `terminating` and `failed` count as gone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
}

impl ProviderMachine {
    /// Returns true if it exists, or will.
    pub fn is_there(&self) -> bool {
        !ENDED.contains(&self.state.as_str())
    }
}

/// Pool for which a provider is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProviderPool {
    /// The name of the provider.
    #[serde(skip)]
    pub provider: String,
    /// The pool.
    pub pool: String,
    /// Properties of its machines.
    pub machine: PoolMachine,
}

/// Lists, makes and ends machines. Errors are text; the call is repeated later.
#[async_trait]
pub trait Providers: Send + Sync + fmt::Debug {
    /// Returns true if this replica reaches any provider. Otherwise it reads no pools.
    fn any(&self) -> bool;

    /// Returns true if this replica can reach the provider of this name.
    fn has(&self, provider: &str) -> bool;

    /// Returns all existing machines of a pool, including those that boot.
    async fn list(&self, pool: &ProviderPool) -> Result<Vec<ProviderMachine>, String>;

    /// Makes these machines. A machine whose token is known is not made again.
    async fn increase(
        &self,
        pool: &ProviderPool,
        machines: &[ProviderMachine],
    ) -> Result<(), String>;

    /// Ends these machines. A machine that is gone counts as ended.
    async fn terminate(
        &self,
        pool: &ProviderPool,
        machines: &[ProviderMachine],
    ) -> Result<(), String>;
}

/// Programs in a folder: the name of the file is that of the provider. Without a folder there is none.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    folder: Option<PathBuf>,
}

/// Input of a program.
#[derive(Serialize)]
struct Asked<'a> {
    #[serde(flatten)]
    pool: &'a ProviderPool,
    machines: &'a [ProviderMachine],
}

impl Programs {
    /// Returns the programs in this folder.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    fn program(&self, provider: &str) -> Option<PathBuf> {
        let is_name = Path::new(provider)
            .file_name()
            .is_some_and(|name| name == provider);
        let folder = self.folder.as_ref().filter(|_| is_name)?;
        Some(folder.join(provider)).filter(|program| program.is_file())
    }

    async fn call(
        &self,
        what: &str,
        pool: &ProviderPool,
        machines: &[ProviderMachine],
        at_most: Duration,
    ) -> Result<Vec<u8>, String> {
        let program = self.program(&pool.provider);
        let program = program.ok_or_else(|| format!("there is no provider '{}'", pool.provider))?;
        let asked = serde_json::to_vec(&Asked { pool, machines });
        let asked = asked.map_err(|error| error.to_string())?;
        let failed = |problem: String| {
            let problem: String = problem.chars().take(PROBLEM_CHARS).collect();
            format!("provider {} {what}: {problem}", pool.provider)
        };
        let mut child = Command::new(&program)
            .arg(what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let mut input = child.stdin.take();
        let work = async move {
            if let Some(input) = &mut input {
                // A program need not read what it does not need.
                let _ = input.write_all(&asked).await;
            }
            drop(input);
            child.wait_with_output().await
        };
        let Ok(ended) = timeout(at_most, work).await else {
            let seconds = at_most.as_secs();
            return Err(failed(format!("it took longer than {seconds} s")));
        };
        let ended = ended.map_err(|error| failed(error.to_string()))?;
        if ended.status.success() {
            return Ok(ended.stdout);
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let status = ended.status.to_string();
        Err(failed(last.map_or(status, str::to_owned)))
    }
}

#[async_trait]
impl Providers for Programs {
    fn any(&self) -> bool {
        self.folder.is_some()
    }

    fn has(&self, provider: &str) -> bool {
        self.program(provider).is_some()
    }

    async fn list(&self, pool: &ProviderPool) -> Result<Vec<ProviderMachine>, String> {
        let said = self.call("list", pool, &[], LIST_TIME).await?;
        let lines = said.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.trim_ascii().is_empty());
        let machines = lines.take(LISTED_MAX).map(|line| {
            serde_json::from_slice(line).map_err(|error| {
                let provider = &pool.provider;
                let line: String = String::from_utf8_lossy(line).chars().take(80).collect();
                format!("provider {provider} list: '{line}' is no machine: {error}")
            })
        });
        machines.collect()
    }

    async fn increase(
        &self,
        pool: &ProviderPool,
        machines: &[ProviderMachine],
    ) -> Result<(), String> {
        let made = self.call("increase", pool, machines, CHANGE_TIME).await;
        made.map(drop)
    }

    async fn terminate(
        &self,
        pool: &ProviderPool,
        machines: &[ProviderMachine],
    ) -> Result<(), String> {
        let ended = self.call("terminate", pool, machines, CHANGE_TIME).await;
        ended.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn site(script: &str) -> (tempfile::TempDir, Programs, ProviderPool) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("site");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let programs = Programs::new(Some(folder.path().to_owned()));
        let pool = ProviderPool {
            provider: "site".to_owned(),
            pool: "vms".to_owned(),
            ..ProviderPool::default()
        };
        (folder, programs, pool)
    }

    #[tokio::test]
    async fn a_program_lists_machines_and_is_told_which_to_make() {
        let (folder, programs, pool) = site(
            r#"cd "$(dirname "$0")"; cat >"$1"; [ "$1" != list ] || echo '{"token":"t","name":"vms--t","state":"booting"}'"#,
        );
        assert!(programs.has("site"));
        let machine = ProviderMachine {
            token: "t".to_owned(),
            name: "vms--t".to_owned(),
            state: String::new(),
        };
        programs
            .increase(&pool, std::slice::from_ref(&machine))
            .await
            .unwrap();
        let told = fs::read_to_string(folder.path().join("increase")).unwrap();
        assert!(
            told.contains(r#""pool":"vms""#) && told.contains(r#"[{"token":"t","name":"vms--t"}]"#),
            "{told}"
        );
        let listed = programs.list(&pool).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert!(listed[0].is_there() && listed[0].name == machine.name);
    }

    #[tokio::test]
    async fn a_program_that_fails_says_why_and_names_lead_nowhere_else() {
        let (_folder, programs, pool) = site("echo first >&2; echo 'no quota' >&2; exit 3");
        let why = programs.terminate(&pool, &[]).await.unwrap_err();
        assert_eq!(why, "provider site terminate: no quota");
        for name in ["", "..", "../site", "other", "a/site"] {
            assert!(!programs.has(name), "{name}");
        }
        let (_folder, programs, pool) = site("echo nonsense");
        let why = programs.list(&pool).await.unwrap_err();
        assert!(why.contains("'nonsense' is no machine"), "{why}");
        assert!(!Programs::default().has("site"));
    }
}
