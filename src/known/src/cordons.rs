//! Hosts that get no new job: an admin cordoned them, or they are suspect.

use std::collections::{BTreeMap, BTreeSet};

use dashmap::DashMap;
use fairlead_api::ClosedView;
use fairlead_job::JobId;
use fairlead_store::DocKind;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;

use crate::host_evidence::HostEvidence;
use fairlead_base::{
    clock::utc_text,
    names::HEALTH_CHECK,
    storage::{doc_cache::DocCache, small_doc::SmallDoc},
};

/// Longest reason kept, characters.
pub const REASON_MAX: usize = 300;

/// Why a host gets no new job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CordonKind {
    /// An admin closed it.
    Cordon,
    /// An admin empties it: the same, and people are told when it is empty.
    Drain,
    /// It failed jobs of several accounts in a row.
    Suspect,
}

/// A closed host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cordon {
    pub how: CordonKind,
    pub reason: String,
    pub by: String,
    pub at_ms: u64,
    /// Of a suspect host: the health check that was made last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
}

impl SmallDoc for Cordon {
    const KIND: DocKind = DocKind::Closure;

    fn stand_in() -> Option<Self> {
        Some(Self {
            how: CordonKind::Cordon,
            reason: "its document cannot be read".to_owned(),
            by: "this replica".to_owned(),
            at_ms: 0,
            check: None,
        })
    }
}

impl Cordon {
    /// Whether its host gets no job at all.
    pub fn is_shut(&self) -> bool {
        self.how != CordonKind::Suspect
    }

    /// Whether its host gets jobs of this account all the same.
    pub fn serves(&self, account: &str) -> bool {
        !self.is_shut() && account == HEALTH_CHECK
    }

    /// The word for its host's state, with so many jobs left on it.
    pub fn state(&self, jobs: usize) -> &'static str {
        match (self.how, jobs) {
            (CordonKind::Cordon, _) => "cordoned",
            (CordonKind::Drain, 0) => "drained",
            (CordonKind::Drain, _) => "draining",
            (CordonKind::Suspect, _) => "suspect",
        }
    }

    /// Why its host gets no job, in one sentence.
    pub fn words(&self) -> String {
        let why = if self.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", self.reason)
        };
        let what = match self.how {
            CordonKind::Cordon => "it was cordoned",
            CordonKind::Drain => "it is drained",
            CordonKind::Suspect => "it is suspect and closed",
        };
        let since = format!("{what} by {} at {}{why}", self.by, utc_text(self.at_ms));
        if self.is_shut() {
            return since;
        }
        let last = self.check.map_or(String::new(), |check| {
            format!("; number {} is job {}", check.number, check.job_id)
        });
        format!("{since}; a successful health check (account {HEALTH_CHECK}) reopens it{last}")
    }

    pub fn view(&self) -> ClosedView {
        ClosedView {
            how: json!(self.how).as_str().unwrap_or_default().to_owned(),
            reason: self.reason.clone(),
            by: self.by.clone(),
            at_ms: self.at_ms,
            check_job: self.check.map(|check| check.job_id.to_string()),
        }
    }
}

/// Failures of a host in a row that were the machine's.
#[derive(Debug, Default)]
pub struct Streak {
    pub failures: u32,
    pub accounts: BTreeSet<String>,
    /// When the last of them was over: what began before is the same trouble.
    pub over_ms: u64,
}

/// Closed hosts, and what may become one.
#[derive(Debug, Default)]
pub struct Cordons {
    known: Mutex<DocCache<Cordon>>,
    /// Raised when any changes.
    pub changes: Notify,
    pub streaks: DashMap<String, Streak>,
    pub evidence: Mutex<HostEvidence>,
    /// Hosts that this replica found suspect, and why. Their cordons are not written yet.
    pub found_suspect: Mutex<BTreeMap<String, String>>,
}

impl Cordons {
    /// How a host is closed, if it is.
    pub fn of(&self, host: &str) -> Option<Cordon> {
        self.with(|known| known.get(host).cloned())
    }

    /// Whether a host gets no job at all.
    pub fn is_shut(&self, host: &str) -> bool {
        self.with(|known| known.get(host).is_some_and(Cordon::is_shut))
    }

    /// Whether a host gets health checks alone.
    pub fn is_suspect(&self, host: &str) -> bool {
        self.found_suspect.lock().contains_key(host)
            || self.with(|known| known.get(host).is_some_and(|known| !known.is_shut()))
    }

    /// The hosts that get health checks alone.
    pub fn suspects(&self) -> Vec<String> {
        self.with(|known| {
            let suspects = known.iter().filter(|(_, closure)| !closure.is_shut());
            suspects.map(|(host, _)| host.clone()).collect()
        })
    }

    /// Names of the hosts that an admin closed.
    pub fn shut(&self) -> Vec<String> {
        self.with(|known| {
            let shut = known.iter().filter(|(_, cordon)| cordon.is_shut());
            shut.map(|(host, _)| host.clone()).collect()
        })
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut DocCache<Cordon>) -> R) -> R {
        work(&mut self.known.lock())
    }

    pub fn changed(&self) {
        self.changes.notify_waiters();
    }
}

/// The health check that was made last for a suspect host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub job_id: JobId,
    /// Which it is of this host, from 1.
    pub number: u32,
}
