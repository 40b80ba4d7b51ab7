//! One check of `fairlead doctor`: its name, its verdict, its finding, and what to do.

use serde::Serialize;

/// What came of a check. The words are part of the interface for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// All is well.
    Ok,
    /// Something is to be mended.
    Problem,
    /// It could not be made; what was found says why.
    NotMade,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// What was looked at.
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    /// What is so.
    pub(crate) found: String,
    /// What to do about it; empty: nothing.
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

/// Fewer open files than this are too few for a scheduler: each testbox that waits has one, and so has each client.
pub(super) const FILES_MIN: u64 = 16_384;

/// The first few of many, for a line.
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
