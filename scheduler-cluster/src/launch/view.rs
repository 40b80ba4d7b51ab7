//! Asks each replica for its status.

use std::{fmt, time::Duration};

use fairlead_api::{Client, ClientConfig, ClientError, HealthView};
use serde::Serialize;

use super::{Process, Replica};

/// How long a replica may take to say how it is.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// How a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// It answers, and takes work.
    Up,
    /// It answers that it takes no work now: its store is away, or it stops.
    Ill,
    /// Its process runs and does not answer.
    Silent,
    /// Its process is stopped by a signal.
    Paused,
    /// Its process does not run.
    Down,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Up => "up",
            Self::Ill => "ill",
            Self::Silent => "silent",
            Self::Paused => "paused",
            Self::Down => "down",
        })
    }
}

/// One replica as seen now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplicaView {
    /// Its number, from 1.
    pub number: u16,
    /// Where it answers.
    pub url: String,
    /// Its process; `None` when none runs.
    pub pid: Option<i32>,
    /// How it is.
    pub condition: Condition,
    /// What it says of itself, or why it says nothing; one line.
    pub says: String,
}

impl ReplicaView {
    /// Looks at one replica.
    pub(super) async fn of(replica: &Replica) -> Self {
        let process = replica
            .process
            .as_ref()
            .filter(|process| process.is_running());
        let (condition, says) = match process {
            None => (Condition::Down, String::new()),
            Some(process) if process.is_paused() => (Condition::Paused, String::new()),
            Some(_) => ask(&replica.url()).await,
        };
        Self {
            number: replica.number,
            url: replica.url(),
            pid: process.map(|process: &Process| process.pid),
            condition,
            says,
        }
    }
}

async fn ask(url: &str) -> (Condition, String) {
    match health(url).await {
        Ok(health) => said(&health),
        Err(ClientError::Refused { body, .. }) => (Condition::Ill, body.message),
        Err(error) => (Condition::Silent, one_line(&error.to_string())),
    }
}

/// How a replica is, and what is wrong with it.
fn said(health: &HealthView) -> (Condition, String) {
    match health.problem() {
        Some(problem) => (Condition::Ill, problem),
        None => (
            Condition::Up,
            format!("{}, store {}", health.replica, health.store),
        ),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn health(url: &str) -> Result<HealthView, ClientError> {
    let config = ClientConfig {
        connect_timeout: ANSWER_TIME,
        request_timeout: ANSWER_TIME,
        retry_for: Duration::ZERO,
        ..ClientConfig::new([url])
    };
    Client::new(config)?.health().await
}

/// Exit code of `status`: 0 when all are up, 4 when none is, else 3.
pub fn exit_code(views: &[ReplicaView]) -> u8 {
    let up = views
        .iter()
        .filter(|view| view.condition == Condition::Up)
        .count();
    match up {
        0 => 4,
        up if up < views.len() => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_says_all_some_or_none() {
        let view = |condition| ReplicaView {
            number: 1,
            url: String::new(),
            pid: None,
            condition,
            says: String::new(),
        };
        let code = |conditions: &[Condition]| {
            let views: Vec<_> = conditions.iter().copied().map(view).collect();
            exit_code(&views)
        };
        assert_eq!(code(&[Condition::Up, Condition::Up]), 0);
        assert_eq!(code(&[Condition::Up, Condition::Ill]), 3);
        assert_eq!(code(&[Condition::Paused, Condition::Up]), 3);
        assert_eq!(code(&[Condition::Silent, Condition::Down]), 4);
        assert_eq!(code(&[]), 4);
    }
}
