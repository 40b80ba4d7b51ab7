//! The current turn of each host, as this replica last saw it.

use dashmap::DashMap;
use fairlead_api::Grant;
use fairlead_job::JobId;
use fairlead_store::{DocKind, Version};
use serde::{Deserialize, Serialize};

use fairlead_base::storage::{
    doc_fields::is_zero,
    small_doc::{SmallDoc, Stored},
};

/// Stored session document of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnDoc {
    pub session: String,
    pub request: u64,
    /// Name of this turn. A repeated request has another name.
    pub turn: String,
    /// Run of the replica that serves the turn.
    pub replica: String,
    /// True if this request was already answered with jobs. A repeated request gets the same jobs.
    #[serde(default)]
    pub answered: bool,
    /// Number of the session's last request that was answered with jobs. 0: none.
    #[serde(default)]
    pub handed: u64,
    /// Jobs that were handed out and that the host may still have.
    #[serde(default)]
    pub jobs: Vec<JobId>,
    /// Earlier sessions, newest last.
    #[serde(default)]
    pub past: Vec<String>,
    /// Time by which a living host is heard of again, UTC epoch ms.
    #[serde(default)]
    pub alive_ms: u64,
    /// Agent instance that has the host. Empty: not reported.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// True if the machine retires for good, so that no request takes its turn any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
    /// Time at which the document is deleted, UTC epoch ms. 0: never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at_ms: u64,
}

impl SmallDoc for TurnDoc {
    const KIND: DocKind = DocKind::Session;
}

/// The right to serve one request of a host.
#[derive(Debug, Clone)]
pub struct HostTurn {
    pub host: String,
    pub known: Stored<TurnDoc>,
    /// True if the host began a new session with this request.
    pub new_session: bool,
}

impl HostTurn {
    /// Returns the version of the host's document with which the turn was taken.
    pub fn version(&self) -> Version {
        self.known.version
    }

    /// Returns the host that has the turn.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the host's session.
    pub fn session(&self) -> &str {
        &self.known.doc.session
    }

    /// Returns true if this request was already answered with jobs.
    pub fn is_repeated(&self) -> bool {
        self.known.doc.answered
    }

    /// Returns the jobs that were handed to the host, as its document lists them.
    pub fn jobs(&self) -> &[JobId] {
        &self.known.doc.jobs
    }

    /// Returns true if jobs were handed out after the host's last read answer, number `seen`.
    pub fn has_unread(&self, seen: u64) -> bool {
        self.known.doc.handed > seen
    }

    /// Logs each grant with host, time and replica, because the store keeps no history.
    pub fn log(&self, grants: &[Grant]) {
        let TurnDoc {
            session, request, ..
        } = &self.known.doc;
        for grant in grants {
            tracing::info!(
                target: "fairlead::grant",
                host = self.host,
                session,
                request,
                job_id = grant.job_id,
                attempt = grant.attempt,
                claim_token = grant.claim_token,
                "granted"
            );
        }
    }
}

/// Session documents that this replica wrote last, by host.
#[derive(Debug, Default)]
pub struct HostTurns(pub DashMap<String, Stored<TurnDoc>>);

impl HostTurns {
    pub fn known(&self, host: &str) -> Option<Stored<TurnDoc>> {
        self.0.get(host).map(|known| known.clone())
    }
}
