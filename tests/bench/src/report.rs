//! The report of the benchmark: a table for people, JSON for programs.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::{
    figure::{Figure, Goal, Series},
    plots::Plot,
};

/// A figure without a limit beside it. It may have a bound.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    what: String,
    values: Series,
    goal: Goal,
}

impl Fact {
    pub(super) fn new(what: String, goal: Goal) -> Self {
        Self {
            what,
            values: Series::default(),
            goal,
        }
    }

    pub(super) fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    fn row(&self) -> String {
        let (goal, reached) = self.goal.told(self.values.median());
        format!(
            "| {} | {goal} | {} | {reached} |",
            self.what,
            self.values.text()
        )
    }
}

/// A separate table below the others.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    fn text(&self) -> String {
        let line = |cells: &Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rows: String = self.rows.iter().map(line).collect();
        format!(
            "\n{}|{}\n{rows}",
            line(&self.head),
            "---|".repeat(self.head.len())
        )
    }
}

/// All measurements.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    pub(super) figures: Vec<Figure>,
    pub(super) facts: Vec<Fact>,
    pub(super) tables: Vec<Table>,
}

impl Report {
    pub(super) fn extend(&mut self, more: Self) {
        self.figures.extend(more.figures);
        self.facts.extend(more.facts);
        self.tables.extend(more.tables);
    }

    /// Returns the report as Markdown.
    pub(super) fn text(&self) -> String {
        let rows: Vec<String> = self.figures.iter().map(Figure::row).collect();
        let facts: Vec<String> = self.facts.iter().map(Fact::row).collect();
        let tables: String = self.tables.iter().map(Table::text).collect();
        format!(
            "| figure | goal | fairlead: median (min–max) | limit: median (min–max) | ratio | reached |\n\
             |---|---|---|---|---|---|\n{}\n\n\
             | cost | goal | median (min–max) | reached |\n|---|---|---|---|\n{}\n{tables}",
            rows.join("\n"),
            facts.join("\n")
        )
    }

    /// Returns the document that the project keeps at `path`, with these plots beside it.
    pub(super) fn document(&self, path: &Path, plots: &[Plot], command: &str) -> String {
        let plots = plots.iter();
        let plots = plots.map(|plot| format!("![by {}]({})\n", plot.along(), plot.file(path)));
        let plots = plots.collect::<Vec<_>>().join("\n");
        format!(
            "# How fast it is\n\n{}\n{}\n- command: `{command}`\n- program: {} of commit {}\n- machine: {}\n\n{}\n{plots}",
            include_str!("how-to-read.md"),
            include_str!("what-limits.md"),
            env!("CARGO_PKG_VERSION"),
            commit(),
            machine(),
            self.text(),
        )
    }

    /// Returns the report as JSON for programs.
    pub(super) fn json(&self) -> Value {
        let figures: Vec<Value> = self.figures.iter().map(Figure::json).collect();
        let facts = self.facts.iter();
        let facts: Vec<Value> = facts
            .map(|fact| json!({"what": fact.what, "goal": fact.goal.told(0.0).0, "value": fact.values.json()}))
            .collect();
        let tables = self.tables.iter();
        let tables: Vec<Value> = tables
            .map(|table| json!({"head": table.head, "rows": table.rows}))
            .collect();
        json!({"figures": figures, "costs": facts, "tables": tables})
    }
}

/// Returns the commit of the present folder.
fn commit() -> String {
    let git = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output();
    let said = git.ok().filter(|git| git.status.success());
    let commit = said.and_then(|git| String::from_utf8(git.stdout).ok());
    commit.map_or_else(|| "unknown".to_owned(), |commit| commit.trim().to_owned())
}

/// Returns a description of the machine's processors.
fn machine() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let names = about.lines().filter(|line| line.starts_with("model name"));
    let names: Vec<&str> = names
        .filter_map(|line| Some(line.split_once(':')?.1.trim()))
        .collect();
    format!(
        "{} cores, {}",
        names.len(),
        names.first().unwrap_or(&"unknown")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_follows_the_others() {
        let words = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        let report = Report {
            tables: vec![Table {
                head: words(["asked", "1 replica"]),
                rows: vec![words(["refresh", "0.1"])],
            }],
            ..Report::default()
        };
        let wanted = "\n\n| asked | 1 replica |\n|---|---|\n| refresh | 0.1 |\n";
        assert!(report.text().ends_with(wanted), "{}", report.text());
    }

    #[test]
    fn a_cost_is_held_against_its_bound() {
        let mut fact = Fact::new("idle, %".to_owned(), Goal::AtMost(2.0));
        for value in [1.0, 1.5, 4.0] {
            fact.push(value);
        }
        assert_eq!(fact.row(), "| idle, % | ≤ 2.00 | 1.50 (1.00–4.00) | yes |");
        fact.push(5.0);
        fact.push(6.0);
        assert!(fact.row().ends_with("| no |"));
    }
}
