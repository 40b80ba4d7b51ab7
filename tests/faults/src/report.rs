//! The report of a run, as Markdown: figures, faults, rules, and their violations.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    check::{Breach, Evidence, RULES, longest_gap, overtaken, shown},
    history::Micros,
    lanes::Kind,
    meters::Totals,
};

/// Result of a run.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) evidence: &'a Evidence<'a>,
    pub(super) breaches: &'a [Breach],
    pub(super) totals: &'a Totals,
    /// Settings of the run, one line each.
    pub(super) setting: &'a [(&'static str, String)],
    /// Time from the end of the faults until no job was open. `None`: some stayed open.
    pub(super) drained: Option<Micros>,
}

impl Outcome<'_> {
    /// Returns the whole report.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::from("# Faults for real\n\n");
        text.push_str("| run | |\n|---|---|\n");
        for (name, value) in self.setting {
            line(&mut text, name, value);
        }
        text.push_str("\n| figure | value |\n|---|---|\n");
        for (name, value) in self.figures() {
            line(&mut text, &name, &value);
        }
        text.push_str("\n| fault | times |\n|---|---|\n");
        for (kind, times) in self.faults() {
            line(&mut text, kind, &times.to_string());
        }
        text.push_str("\n| what must hold | broken |\n|---|---|\n");
        for (rule, _) in RULES {
            let broken = self.breaches.iter().filter(|one| one.rule == rule).count();
            let broken = if broken == 0 {
                "no".to_owned()
            } else {
                format!("**{broken}**")
            };
            line(&mut text, rule, &broken);
        }
        if !self.breaches.is_empty() {
            text.push_str("\n## What broke\n\n");
            for Breach { rule, detail } in self.breaches {
                // Writing to a text cannot fail.
                let _ = writeln!(text, "- {rule}: {detail}");
            }
        }
        text
    }

    fn figures(&self) -> Vec<(String, String)> {
        let facts = self.evidence.facts;
        let number = |n: usize| n.to_string();
        let (gap, gap_from) = longest_gap(self.evidence);
        let work = [
            ("submits acknowledged", number(facts.acked.len())),
            ("submits refused, nothing done", number(facts.refused.len())),
            (
                "submits without a known outcome",
                number(facts.unknown.len()),
            ),
            ("jobs in the store", number(self.evidence.finals.len())),
            ("dispatches", number(self.evidence.grants.len())),
            ("runs on testboxes", number(facts.intervals.len())),
            (
                "files acknowledged",
                number(facts.uploads.iter().filter(|one| one.acked).count()),
            ),
            (
                "jobs that took more than one attempt",
                number(self.tried_again()),
            ),
        ];
        let times = [
            (
                "longest gap without a dispatch",
                format!("{}, from {} on", shown(gap), shown(gap_from)),
            ),
            ("submit p50, p99", quantiles(&facts.submit_took)),
            (
                "consume p50, p99 (with the wait for work)",
                quantiles(&facts.consume_took),
            ),
            ("acknowledged to begun p50, p99", quantiles(&self.waits())),
            (
                "vip jobs passed over for more than 3 s",
                number(overtaken(self.evidence)),
            ),
            (
                "drained after the faults",
                self.drained.map_or_else(|| "not in time".to_owned(), shown),
            ),
        ];
        let rows = work.into_iter().chain(self.claims()).chain(times);
        let mut rows: Vec<_> = rows.map(|(name, value)| (name.to_owned(), value)).collect();
        rows.extend(self.ends_and_troubles());
        rows
    }

    /// Returns the outcomes of claims and grants, as the replicas counted them.
    fn claims(&self) -> [(&'static str, String); 7] {
        let total = |series: &str| self.totals.get(series).copied().unwrap_or(0);
        let claims =
            |outcome: &str| total(&format!("fairlead_claims_total{{outcome=\"{outcome}\"}}"));
        [
            ("claims committed", claims("committed").to_string()),
            (
                "claims in conflict",
                percent(claims("conflict"), claims("committed")),
            ),
            (
                "claims whose outcome was unknown at first",
                claims("unknown").to_string(),
            ),
            (
                "claims that the store did not take",
                claims("refused").to_string(),
            ),
            (
                "leases lost",
                total("fairlead_jobs_returned_total{why=\"lost\"}").to_string(),
            ),
            (
                "grants that were never delivered",
                total("fairlead_jobs_returned_total{why=\"undelivered\"}").to_string(),
            ),
            (
                "requests that a later one overtook at another replica",
                total("fairlead_turns_lost_total").to_string(),
            ),
        ]
    }

    fn tried_again(&self) -> usize {
        let ends = self.evidence.finals.values();
        ends.filter(|end| end.attempt > 1).count()
    }

    /// Returns the number of jobs by end, and of troubles at testboxes.
    fn ends_and_troubles(&self) -> Vec<(String, String)> {
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for end in self.evidence.finals.values() {
            *ends
                .entry(format!("jobs: {} {}", end.stage, end.health))
                .or_default() += 1;
        }
        let troubles = self.evidence.facts.agent_troubles.iter();
        let troubles = troubles.map(|(what, n)| (format!("testboxes: {what}"), n.to_string()));
        let ends = ends.into_iter().map(|(name, n)| (name, n.to_string()));
        ends.chain(troubles).collect()
    }

    /// Returns the time from the acknowledgement of each job to the start of its first run.
    fn waits(&self) -> Vec<Micros> {
        let mut begun: BTreeMap<&String, Micros> = BTreeMap::new();
        for run in &self.evidence.facts.intervals {
            let at = begun.entry(&run.job).or_insert(run.start);
            *at = run.start.min(*at);
        }
        let acked = self.evidence.facts.acked.iter();
        acked
            .filter_map(|acked| Some(begun.get(&acked.job)?.saturating_sub(acked.at)))
            .collect()
    }

    /// Returns each kind of fault, and its number.
    pub(super) fn faults(&self) -> Vec<(&'static str, usize)> {
        let faults = &self.evidence.facts.faults;
        let of = |kind: Kind| {
            let word = kind.word();
            (
                word,
                faults.iter().filter(|(_, kind, _)| *kind == word).count(),
            )
        };
        Kind::ALL.map(of).into()
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "| {name} | {value} |");
}

fn percent(part: u64, whole: u64) -> String {
    let tenths = part
        .saturating_mul(1000)
        .checked_div(part + whole)
        .unwrap_or(0);
    format!("{part} ({}.{} %)", tenths / 10, tenths % 10)
}

/// Returns the median and the 99th percentile, ms.
fn quantiles(took: &[Micros]) -> String {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let at = |permille: usize| {
        let last = sorted.len().saturating_sub(1);
        let value = sorted.get(last * permille / 1000).copied().unwrap_or(0);
        format!("{}.{} ms", value / 1_000, value / 100 % 10)
    };
    format!("{}, {}", at(500), at(990))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_percentages_are_of_all() {
        let took: Vec<Micros> = (1..=101).map(|n| n * 1_000).rev().collect();
        assert_eq!(quantiles(&took), "51.0 ms, 100.0 ms");
        assert_eq!(quantiles(&[]), "0.0 ms, 0.0 ms");
        assert_eq!(percent(1, 19), "1 (5.0 %)");
        assert_eq!(percent(0, 0), "0 (0.0 %)");
    }
}
