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

/// The document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnDoc {
    pub session: String,
    pub request: u64,
    /// Names this very turn: a request that is repeated has another one.
    pub turn: String,
    /// The run of the replica that serves it.
    pub replica: String,
    /// Whether jobs were handed out for this very request: then it is repeated, and gets no others.
    #[serde(default)]
    pub answered: bool,
    /// The last request of this session for which jobs were handed out; 0: none.
    #[serde(default)]
    pub handed: u64,
    /// Jobs that were handed out and may still be the host's.
    #[serde(default)]
    pub jobs: Vec<JobId>,
    /// Earlier sessions, newest last.
    #[serde(default)]
    pub past: Vec<String>,
    /// Until when the host is heard of again if it lives, UTC epoch ms.
    #[serde(default)]
    pub alive_ms: u64,
    /// Which agent has the host; empty: it did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// Whether the machine goes for good: no request takes its turn any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
    /// When that is forgotten, UTC epoch ms; 0: never.
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
    /// Whether the host began a new session with it.
    pub new_session: bool,
}

impl HostTurn {
    /// The version of the host's document with which it was taken.
    pub fn version(&self) -> Version {
        self.known.version
    }

    /// Whose turn it is.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// In which session of the host.
    pub fn session(&self) -> &str {
        &self.known.doc.session
    }

    /// Whether jobs were handed out for this very request before.
    pub fn is_repeated(&self) -> bool {
        self.known.doc.answered
    }

    /// Jobs that were handed to the host, as far as its document says.
    pub fn jobs(&self) -> &[JobId] {
        &self.known.doc.jobs
    }

    /// Whether jobs were handed out in an answer that the host had not read when it asked: its last one was the
    /// `seen`th.
    pub fn has_unread(&self, seen: u64) -> bool {
        self.known.doc.handed > seen
    }

    /// The store keeps no history: these lines do, of who got what, when and from which replica.
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

/// What this replica wrote last, by host.
#[derive(Debug, Default)]
pub struct HostTurns(pub DashMap<String, Stored<TurnDoc>>);

impl HostTurns {
    pub fn known(&self, host: &str) -> Option<Stored<TurnDoc>> {
        self.0.get(host).map(|known| known.clone())
    }
}
