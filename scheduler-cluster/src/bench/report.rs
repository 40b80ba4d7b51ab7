//! What the benchmark says: a table for people, JSON for programs.

use serde_json::{Value, json};

use super::figure::{Figure, number};

/// A figure that has no limit beside it.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) what: String,
    pub(super) value: f64,
}

/// All that was measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    pub(super) figures: Vec<Figure>,
    pub(super) facts: Vec<Fact>,
}

impl Report {
    /// As Markdown.
    pub(super) fn text(&self) -> String {
        let rows: Vec<String> = self.figures.iter().map(Figure::row).collect();
        let facts = self.facts.iter();
        let facts: Vec<String> = facts
            .map(|fact| format!("| {} | {} |", fact.what, number(fact.value)))
            .collect();
        format!(
            "| figure | goal | fairlead: median (min–max) | limit: median (min–max) | ratio | reached |\n\
             |---|---|---|---|---|---|\n{}\n\n| fact | value |\n|---|---|\n{}\n",
            rows.join("\n"),
            facts.join("\n")
        )
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let figures: Vec<Value> = self.figures.iter().map(Figure::json).collect();
        let facts = self.facts.iter();
        let facts: Vec<Value> = facts
            .map(|fact| json!({"what": fact.what, "value": fact.value}))
            .collect();
        json!({"figures": figures, "facts": facts})
    }
}
