//! Names of our indices. An operation by id goes to the index that the id names.

use fairlead_job::JobId;

use crate::DocKind;

/// The indices under one prefix.
#[derive(Debug)]
pub(super) struct Indices {
    pub(super) prefix: String,
}

impl Indices {
    /// Where the state of a job is, for ever.
    pub(super) fn jobs(&self, id: JobId) -> String {
        format!("{}-jobs-{}", self.prefix, id.month())
    }

    /// Where its body is.
    pub(super) fn bodies(&self, id: JobId) -> String {
        format!("{}-bodies-{}", self.prefix, id.month())
    }

    /// Where the events of a month are.
    pub(super) fn events(&self, month: &str) -> String {
        format!("{}-events-{month}", self.prefix)
    }

    /// The events of every month.
    pub(super) fn all_events(&self) -> String {
        format!("{}-events-*", self.prefix)
    }

    /// Where documents of a kind are.
    pub(super) fn docs(&self, kind: DocKind) -> String {
        format!("{}-{}", self.prefix, kind.as_str())
    }

    /// The states of every month: for searches only.
    pub(super) fn all_jobs(&self) -> String {
        format!("{}-jobs-*", self.prefix)
    }

    /// States, bodies and events of one month.
    pub(super) fn of_month(&self, month: &str) -> [String; 3] {
        ["jobs", "bodies", "events"].map(|what| format!("{}-{what}-{month}", self.prefix))
    }

    /// Whether anybody searches in an index: others are only read by id, which needs no refresh.
    pub(super) fn is_searched(&self, name: &str) -> bool {
        let bodies = format!("{}-bodies-", self.prefix);
        !name.starts_with(&bodies) && name != self.docs(DocKind::Session)
    }
}
