//! Names of our indices. An operation by id goes to the index that the id names.

use std::collections::BTreeSet;

use fairlead_job::JobId;
use serde_json::{Value, json};

use crate::DocKind;

/// The small documents of most kinds.
const DOCUMENTS: &str = "documents";
/// Ends the id of a job's body. It is in the index and the shard of the job's state, whose id is its routing.
pub(super) const BODY: &str = "-body";

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) index: String,
    pub(super) id: String,
    /// Where it is no other than the id: none.
    pub(super) routing: Option<String>,
}

/// The indices under one prefix.
#[derive(Debug)]
pub(super) struct Indices {
    pub(super) prefix: String,
}

/// The index of a kind's own, after the prefix. `None`: it shares one with the others.
///
/// Sessions and leases are written each second. Settings hold the sealing keys: a site may let nobody else read them, and
/// may leave them out of its snapshots.
pub(super) const fn own_index(kind: DocKind) -> Option<&'static str> {
    match kind {
        DocKind::Session | DocKind::Lease | DocKind::Setting => Some(kind.as_str()),
        _ => None,
    }
}

/// The condition by which a search finds the documents of a kind in their index.
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

    /// Where the state and the body of a job are, for ever.
    pub(super) fn jobs(&self, id: JobId) -> String {
        self.jobs_of(&id.month())
    }

    /// Where the jobs of a month are.
    pub(super) fn jobs_of(&self, month: &str) -> String {
        self.named(&format!("jobs-{month}"))
    }

    /// The state of a job.
    pub(super) fn state(&self, id: JobId) -> Address {
        Address {
            index: self.jobs(id),
            id: id.to_string(),
            routing: None,
        }
    }

    /// Its body.
    pub(super) fn body(&self, id: JobId) -> Address {
        Address {
            index: self.jobs(id),
            id: format!("{id}{BODY}"),
            routing: Some(id.to_string()),
        }
    }

    /// Where the events of a month are.
    pub(super) fn events(&self, month: &str) -> String {
        self.named(&format!("events-{month}"))
    }

    /// The events of every month.
    pub(super) fn all_events(&self) -> String {
        self.named("events-*")
    }

    /// The jobs of every month: for searches only.
    pub(super) fn all_jobs(&self) -> String {
        self.named("jobs-*")
    }

    /// Jobs and events of one month.
    pub(super) fn of_month(&self, month: &str) -> [String; 2] {
        [self.jobs_of(month), self.events(month)]
    }

    /// Where the documents of most kinds are.
    pub(super) fn documents(&self) -> String {
        self.named(DOCUMENTS)
    }

    /// Where documents of a kind are.
    pub(super) fn docs(&self, kind: DocKind) -> String {
        self.named(own_index(kind).unwrap_or(DOCUMENTS))
    }

    /// A small document. In the index of most kinds its id begins with its kind.
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

    /// The indices of all kinds.
    pub(super) fn all_docs(&self) -> BTreeSet<String> {
        DocKind::ALL.iter().map(|kind| self.docs(*kind)).collect()
    }

    /// Where a version of before had the documents of a kind that share an index now.
    pub(super) fn before(&self) -> impl Iterator<Item = (DocKind, String)> {
        let moved = DocKind::ALL
            .iter()
            .filter(|kind| own_index(**kind).is_none());
        moved.map(|kind| (*kind, self.named(kind.as_str())))
    }

    /// Where versions of long before had the bodies of jobs.
    pub(super) fn bodies(&self) -> String {
        self.named("bodies-*")
    }

    /// All of the lab, and all that a version of before had.
    pub(super) fn all(&self) -> Vec<String> {
        let copies = format!("{}*", self.copies());
        let present = [self.all_jobs(), self.all_events(), copies];
        let before = self.before().map(|(_, index)| index);
        let all = present.into_iter().chain(self.all_docs());
        all.chain(before).chain([self.bodies()]).collect()
    }

    /// Begins the names of indices into which such documents are copied.
    pub(super) fn copies(&self) -> String {
        self.named(&format!("{DOCUMENTS}-copy-"))
    }

    /// Whether dispatching needs an index: one of ours, but not the record of events. Searches of jobs look into each
    /// month. What this version made of the documents of another has a name of its own.
    pub(super) fn is_needed(&self, name: &str) -> bool {
        let beginnings = [self.jobs_of(""), self.copies()];
        let is_ours = |beginning: &String| name.starts_with(beginning);
        beginnings.iter().any(is_ours) || self.all_docs().contains(name)
    }

    /// Whether anybody searches in an index: others are only read by id, which needs no refresh.
    pub(super) fn is_searched(&self, name: &str) -> bool {
        name != self.docs(DocKind::Session)
    }
}
