//! Figures of one way to spread agents and submits over replicas.

use super::super::{
    figure::{Figure, Goal, float},
    raw::rate,
    report::{Fact, Report},
    stats::Stats,
};

/// Minimum share of the requested pace that counts as kept.
const KEPT: f64 = 0.97;

/// Result of one measurement.
#[derive(Debug)]
pub(super) struct Took {
    /// Number of jobs that were submitted, claimed and ended.
    pub(super) count: usize,
    pub(super) seconds: f64,
    /// Processor time of Elasticsearch, and of each replica, seconds.
    pub(super) elasticsearch_s: f64,
    pub(super) replicas_s: Vec<f64>,
    /// Counts by Elasticsearch.
    pub(super) asked: Stats,
}

/// All rounds of one way to spread the agents.
#[derive(Debug)]
pub(super) struct Spread {
    what: String,
    has_idle: bool,
    elasticsearch: Figure,
    /// Figure of the replicas without agents, beside the one that has all.
    idle: Option<Figure>,
    all_replicas: Fact,
    replicas: Vec<Fact>,
    reached: Fact,
    in_bulk: Fact,
}

impl Spread {
    /// Returns the figures for this pace and number of replicas. With `has_idle` one replica has all agents, and the
    /// others are idle.
    pub(super) fn new(jobs_a_second: u32, replicas: usize, has_idle: bool) -> Self {
        let what = match (replicas, has_idle) {
            (1, _) => "1 replica".to_owned(),
            (many, false) => format!("{many} replicas"),
            (many, true) => format!("{many} replicas, one has all agents"),
        };
        let paced = format!("{jobs_a_second} jobs/s, {what}");
        let fact = |what: String, goal: Goal| Fact::new(format!("{what}, {paced}"), goal);
        let idle = has_idle.then(|| {
            let what = format!("processor time of a replica without agents a claim, µs, {paced}");
            Figure::new(what, "of the replica with all agents", Goal::AtMost(0.1))
        });
        let of_replica = |nth: usize| {
            let what = format!("processor time of replica {nth} a claim of any replica, µs");
            fact(what, Goal::None)
        };
        Self {
            elasticsearch: Figure::new(
                format!(
                    "Elasticsearch's processor time a claim with its submit and end, µs, {paced}"
                ),
                "the same writes alone, as many in a bulk",
                Goal::AtMost(1.25),
            ),
            idle,
            all_replicas: fact(
                "processor time of all replicas a claim, µs".to_owned(),
                Goal::None,
            ),
            replicas: (1..=replicas).map(of_replica).collect(),
            reached: fact(
                "claims/s reached".to_owned(),
                Goal::AtLeast(KEPT * f64::from(jobs_a_second)),
            ),
            in_bulk: fact("writes of a bulk request".to_owned(), Goal::None),
            has_idle,
            what,
        }
    }

    pub(super) fn what(&self) -> &str {
        &self.what
    }

    pub(super) fn has_idle(&self) -> bool {
        self.has_idle
    }

    pub(super) fn replicas(&self) -> usize {
        self.replicas.len()
    }

    /// Adds a round, in which Elasticsearch alone used `alone_s` seconds for the same writes.
    pub(super) fn push(&mut self, took: &Took, alone_s: f64) {
        let each_us = |seconds: f64| 1e6 / rate(took.count, seconds);
        self.elasticsearch
            .push(each_us(took.elasticsearch_s), each_us(alone_s));
        self.all_replicas
            .push(each_us(took.replicas_s.iter().sum()));
        for (fact, used_s) in self.replicas.iter_mut().zip(&took.replicas_s) {
            fact.push(each_us(*used_s));
        }
        if let (Some(figure), [owner, others @ ..]) = (&mut self.idle, took.replicas_s.as_slice()) {
            let mean_s = others.iter().sum::<f64>() / float(others.len() as u64);
            figure.push(each_us(mean_s), each_us(*owner));
        }
        self.reached.push(rate(took.count, took.seconds));
        let (writes, bulks) = took.asked.writes_and_bulks();
        self.in_bulk.push(float(writes) / float(bulks.max(1)));
    }

    pub(super) fn report(self) -> Report {
        let mut facts = vec![self.reached, self.in_bulk, self.all_replicas];
        facts.extend(self.replicas);
        Report {
            figures: [Some(self.elasticsearch), self.idle]
                .into_iter()
                .flatten()
                .collect(),
            facts,
            ..Report::default()
        }
    }
}

/// Rounds with dashboards open, beside the same work without them.
#[derive(Debug)]
pub(super) struct Watched {
    figures: Vec<Figure>,
}

impl Watched {
    /// Returns the figures for this pace and number of replicas, with `dashboards` at each.
    pub(super) fn new(jobs_a_second: u32, replicas: usize, dashboards: usize) -> Self {
        let figure = |nth: usize| {
            let what = format!(
                "processor time of replica {nth} of {replicas} a claim, µs, {jobs_a_second} jobs/s, {dashboards} dashboards at each"
            );
            Figure::new(what, "without dashboards", Goal::AtMost(1.03))
        };
        let figures = (1..=replicas).map(figure).collect();
        Self { figures }
    }

    /// Adds a measurement. Each round has two: one with dashboards and one without.
    pub(super) fn push(&mut self, took: &Took, has_dashboards: bool) {
        for (figure, used_s) in self.figures.iter_mut().zip(&took.replicas_s) {
            let each_us = 1e6 / rate(took.count, *used_s);
            if has_dashboards {
                figure.ours.push(each_us);
            } else {
                figure.limit.push(each_us);
            }
        }
    }

    /// Returns the report. It is empty without a measurement.
    pub(super) fn report(self) -> Report {
        let is_measured = |figure: &Figure| !figure.ours.values().is_empty();
        Report {
            figures: self.figures.into_iter().filter(is_measured).collect(),
            ..Report::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_by_claim_and_beside_its_limit() {
        let mut spread = Spread::new(100, 3, true);
        let took = Took {
            count: 1_000,
            seconds: 10.0,
            elasticsearch_s: 0.5,
            replicas_s: vec![0.4, 0.01, 0.03],
            asked: Stats::default(),
        };
        spread.push(&took, 0.4);
        let report = spread.report();
        let rows: Vec<String> = report.figures.iter().map(Figure::row).collect();
        assert!(
            rows[0].contains("| 500 (500–500) |")
                && rows[0].ends_with("| 1.25 (1.25–1.25) | yes |"),
            "{rows:?}"
        );
        assert!(
            rows[1].contains("| 20.00 (20.00–20.00) |")
                && rows[1].ends_with("| 0.05 (0.05–0.05) | yes |"),
            "{rows:?}"
        );
        assert_eq!(report.facts.len(), 6);
    }

    #[test]
    fn dashboards_are_told_beside_the_same_work_without_them() {
        let took = |used_s| Took {
            count: 1_000,
            seconds: 10.0,
            elasticsearch_s: 0.5,
            replicas_s: vec![used_s],
            asked: Stats::default(),
        };
        assert!(Watched::new(100, 1, 0).report().figures.is_empty());
        let mut watched = Watched::new(100, 1, 10);
        watched.push(&took(0.51), true);
        watched.push(&took(0.5), false);
        let row = watched.report().figures[0].row();
        assert!(row.ends_with("| 1.02 (1.02–1.02) | yes |"), "{row}");
    }
}
