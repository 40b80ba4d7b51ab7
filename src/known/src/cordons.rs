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

/// Maximum length of a stored reason, characters.
pub const REASON_MAX: usize = 300;

/// Reason why a host gets no new jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CordonKind {
    /// An admin closed the host.
    Cordon,
    /// An admin empties the host. It is closed like a cordoned one, and reported when it is empty.
    Drain,
    /// The host failed jobs of several accounts in a row.
    Suspect,
}

/// A closed host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cordon {
    pub how: CordonKind,
    pub reason: String,
    pub by: String,
    pub at_ms: u64,
    /// Latest health check of a suspect host.
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
    /// Returns true if the host gets no jobs, not even health checks.
    pub fn is_shut(&self) -> bool {
        self.how != CordonKind::Suspect
    }

    /// Returns true if the host still gets jobs of this account.
    pub fn serves(&self, account: &str) -> bool {
        !self.is_shut() && account == HEALTH_CHECK
    }

    /// Returns the word for the host's state, with this number of jobs left on it.
    pub fn state(&self, jobs: usize) -> &'static str {
        match (self.how, jobs) {
            (CordonKind::Cordon, _) => "cordoned",
            (CordonKind::Drain, 0) => "drained",
            (CordonKind::Drain, _) => "draining",
            (CordonKind::Suspect, _) => "suspect",
        }
    }

    /// Returns the reason why the host gets no jobs, as a sentence.
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

/// Consecutive failures of a host that were the machine's fault.
#[derive(Debug, Default)]
pub struct Streak {
    pub failures: u32,
    pub accounts: BTreeSet<String>,
    /// End time of the last failure, UTC epoch ms. Attempts that began before it do not count again.
    pub over_ms: u64,
}

/// Closed hosts, and hosts with failures in a row.
#[derive(Debug, Default)]
pub struct Cordons {
    known: Mutex<DocCache<Cordon>>,
    /// Notified when any cordon changes.
    pub changes: Notify,
    pub streaks: DashMap<String, Streak>,
    pub evidence: Mutex<HostEvidence>,
    /// Hosts that this replica found suspect, with the reason, until their cordons are written.
    pub found_suspect: Mutex<BTreeMap<String, String>>,
}

impl Cordons {
    /// Returns the cordon of a host, if it is closed.
    pub fn of(&self, host: &str) -> Option<Cordon> {
        self.with(|known| known.get(host).cloned())
    }

    /// Returns true if a host gets no jobs, not even health checks.
    pub fn is_shut(&self, host: &str) -> bool {
        self.with(|known| known.get(host).is_some_and(Cordon::is_shut))
    }

    /// Returns true if a host gets only health checks.
    pub fn is_suspect(&self, host: &str) -> bool {
        self.found_suspect.lock().contains_key(host)
            || self.with(|known| known.get(host).is_some_and(|known| !known.is_shut()))
    }

    /// Returns the hosts that get only health checks.
    pub fn suspects(&self) -> Vec<String> {
        self.with(|known| {
            let suspects = known.iter().filter(|(_, closure)| !closure.is_shut());
            suspects.map(|(host, _)| host.clone()).collect()
        })
    }

    /// Returns the names of hosts that an admin closed.
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

/// Latest health check of a suspect host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub job_id: JobId,
    /// Number of this check of the host, from 1.
    pub number: u32,
}
