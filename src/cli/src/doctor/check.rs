//! One check of `fairlead doctor`: its name, its verdict, its finding, and what to do.

use serde::Serialize;

/// Result of a check. The names are part of the interface for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// No problem was found.
    Ok,
    /// A problem was found.
    Problem,
    /// The check was not possible, for the reason in `found`.
    NotMade,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// Name of the check.
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    /// Finding.
    pub(crate) found: String,
    /// Action for the operator. Empty: none.
    #[serde(rename = "do")]
    pub(crate) todo: String,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, Verdict::Ok, found, "")
    }

    pub(super) fn problem(
        name: &'static str,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) -> Self {
        Self::new(name, Verdict::Problem, found, todo)
    }

    pub(super) fn not_made(
        name: &'static str,
        why: impl Into<String>,
        todo: impl Into<String>,
    ) -> Self {
        Self::new(name, Verdict::NotMade, why, todo)
    }

    fn new(
        name: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) -> Self {
        Self {
            name,
            verdict,
            found: found.into(),
            todo: todo.into(),
        }
    }
}

/// Minimum number of open files of a scheduler: each waiting testbox and each client needs one.
pub(super) const FILES_MIN: u64 = 16_384;

/// Returns the first few of many names, for a line.
pub(super) fn some(names: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    let shown = names.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>();
    let more = names.len().saturating_sub(SHOWN_MAX);
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}
