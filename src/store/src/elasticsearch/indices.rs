//! Names of our indices. An operation by id goes to the index that the id names.

use std::collections::BTreeSet;

use fairlead_job::JobId;
use serde_json::{Value, json};

use crate::DocKind;

/// Index of the small documents of most kinds.
const DOCUMENTS: &str = "documents";
/// Suffix of the id of a job's body. The body is in the index and the shard of the job's state, whose id is its
/// routing.
pub(super) const BODY: &str = "-body";

/// Address of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) index: String,
    pub(super) id: String,
    /// Routing; `None`: the id.
    pub(super) routing: Option<String>,
}

/// The indices under one prefix.
#[derive(Debug)]
pub(super) struct Indices {
    pub(super) prefix: String,
}

/// Returns the suffix of the index of a kind. `None`: the kind shares an index with others.
///
/// Sessions and leases are written each second. Settings hold the sealing keys: a site may restrict access to them,
/// and may leave them out of its snapshots.
pub(super) const fn own_index(kind: DocKind) -> Option<&'static str> {
    match kind {
        DocKind::Session | DocKind::Lease | DocKind::Setting => Some(kind.as_str()),
        _ => None,
    }
}

/// Returns the condition by which a search finds the documents of a kind in their index.
pub(super) fn is_of(kind: DocKind) -> Value {
    match own_index(kind) {
        Some(_) => json!({"match_all": {}}),
        None => json!({"term": {"kind": kind.as_str()}}),
    }
}

impl Indices {
    fn named(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// Returns the index of the state and the body of a job. It never changes.
    pub(super) fn jobs(&self, id: JobId) -> String {
        self.jobs_of(&id.month())
    }

    /// Returns the index of the jobs of a month.
    pub(super) fn jobs_of(&self, month: &str) -> String {
        self.named(&format!("jobs-{month}"))
    }

    /// Returns the address of the state of a job.
    pub(super) fn state(&self, id: JobId) -> Address {
        Address {
            index: self.jobs(id),
            id: id.to_string(),
            routing: None,
        }
    }

    /// Returns the address of the body of a job.
    pub(super) fn body(&self, id: JobId) -> Address {
        Address {
            index: self.jobs(id),
            id: format!("{id}{BODY}"),
            routing: Some(id.to_string()),
        }
    }

    /// Returns the index of the events of a month.
    pub(super) fn events(&self, month: &str) -> String {
        self.named(&format!("events-{month}"))
    }

    /// Returns the pattern of the events of every month.
    pub(super) fn all_events(&self) -> String {
        self.named("events-*")
    }

    /// Returns the pattern of the jobs of every month, for searches only.
    pub(super) fn all_jobs(&self) -> String {
        self.named("jobs-*")
    }

    /// Returns the indices of jobs and events of one month.
    pub(super) fn of_month(&self, month: &str) -> [String; 2] {
        [self.jobs_of(month), self.events(month)]
    }

    /// Returns the index of the documents of most kinds.
    pub(super) fn documents(&self) -> String {
        self.named(DOCUMENTS)
    }

    /// Returns the index of the documents of a kind.
    pub(super) fn docs(&self, kind: DocKind) -> String {
        self.named(own_index(kind).unwrap_or(DOCUMENTS))
    }

    /// Returns the address of a small document. In the shared index its id begins with its kind.
    pub(super) fn doc(&self, kind: DocKind, name: &str) -> Address {
        let id = match own_index(kind) {
            Some(_) => name.to_owned(),
            None => format!("{}/{name}", kind.as_str()),
        };
        Address {
            index: self.docs(kind),
            id,
            routing: None,
        }
    }

    /// Returns the indices of all kinds.
    pub(super) fn all_docs(&self) -> BTreeSet<String> {
        DocKind::ALL.iter().map(|kind| self.docs(*kind)).collect()
    }

    /// Returns the indices of an older version for the kinds that share an index now.
    pub(super) fn before(&self) -> impl Iterator<Item = (DocKind, String)> {
        let moved = DocKind::ALL
            .iter()
            .filter(|kind| own_index(**kind).is_none());
        moved.map(|kind| (*kind, self.named(kind.as_str())))
    }

    /// Returns the pattern of the bodies of jobs in much older versions.
    pub(super) fn bodies(&self) -> String {
        self.named("bodies-*")
    }

    /// Returns all indices of the lab, present ones and those of older versions.
    pub(super) fn all(&self) -> Vec<String> {
        let copies = format!("{}*", self.copies());
        let present = [self.all_jobs(), self.all_events(), copies];
        let before = self.before().map(|(_, index)| index);
        let all = present.into_iter().chain(self.all_docs());
        all.chain(before).chain([self.bodies()]).collect()
    }

    /// Returns the prefix of indices into which such documents are copied.
    pub(super) fn copies(&self) -> String {
        self.named(&format!("{DOCUMENTS}-copy-"))
    }

    /// Returns true if dispatching needs an index: one of ours, but not the record of events. Searches of jobs look
    /// into each month. The copies made from documents of another version have a name of their own.
    pub(super) fn is_needed(&self, name: &str) -> bool {
        let beginnings = [self.jobs_of(""), self.copies()];
        let is_ours = |beginning: &String| name.starts_with(beginning);
        beginnings.iter().any(is_ours) || self.all_docs().contains(name)
    }

    /// Returns true if an index is searched. The other one is only read by id, which needs no refresh.
    pub(super) fn is_searched(&self, name: &str) -> bool {
        name != self.docs(DocKind::Session)
    }
}
