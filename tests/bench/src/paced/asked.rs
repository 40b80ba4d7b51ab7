//! The table of what replicas ask of Elasticsearch for each claim, by kind.

use std::collections::BTreeSet;

use super::{
    super::{figure::Series, figure::float, figure::number, report::Table},
    Took,
};

/// Minimum requests and time for each claim. Smaller values are left out of the table.
const TIMES_MIN: f64 = 0.001;
const MICROS_MIN: f64 = 0.1;

/// All columns so far.
#[derive(Debug, Default)]
pub(in super::super) struct Asked(Vec<Column>);

/// One way to spread the agents.
#[derive(Debug)]
struct Column {
    what: String,
    replicas: usize,
    rounds: Vec<Took>,
}

/// Share of a claim: number, and duration, µs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Share {
    times: f64,
    micros: f64,
}

impl Share {
    fn is_something(self) -> bool {
        self.times.abs() >= TIMES_MIN || self.micros.abs() >= MICROS_MIN
    }

    fn text(self) -> String {
        let times = format!("{:.3}", self.times);
        if self.micros == 0.0 {
            times
        } else {
            format!("{times}, {} µs", number(self.micros))
        }
    }
}

impl Column {
    /// Returns the medians of all rounds.
    fn share(&self, kind: &str) -> Share {
        let (mut times, mut micros) = (Series::default(), Series::default());
        for round in &self.rounds {
            let (done, count) = (round.asked.of(kind), float(round.count as u64));
            times.push(float(done.times) / count);
            micros.push(float(done.ms) * 1_000.0 / count);
        }
        Share {
            times: times.median(),
            micros: micros.median(),
        }
    }
}

impl Asked {
    /// Adds a round to its column.
    pub(super) fn push(&mut self, what: &str, replicas: usize, round: Took) {
        if let Some(column) = self.0.iter_mut().find(|column| column.what == what) {
            column.rounds.push(round);
            return;
        }
        self.0.push(Column {
            what: what.to_owned(),
            replicas,
            rounds: vec![round],
        });
    }

    /// Returns a table. If one replica alone was measured, it also shows the increase by each further replica.
    pub(in super::super) fn table(&self) -> Table {
        let rounds = self.0.iter().flat_map(|column| &column.rounds);
        let kinds: BTreeSet<&String> = rounds.flat_map(|round| round.asked.kinds()).collect();
        let single = self.0.iter().find(|column| column.replicas == 1);
        let mut head = vec!["asked of Elasticsearch, a claim".to_owned()];
        for column in &self.0 {
            head.push(column.what.clone());
            if single.is_some() && column.replicas > 1 {
                head.push("each further replica adds".to_owned());
            }
        }
        let row = |kind: &String| {
            let mut row = vec![kind.clone()];
            let mut is_something = false;
            for column in &self.0 {
                let share = column.share(kind);
                is_something |= share.is_something();
                row.push(share.text());
                if let Some(single) = single.filter(|_| column.replicas > 1) {
                    let (one, further) = (single.share(kind), float(column.replicas as u64 - 1));
                    let added = Share {
                        times: (share.times - one.times) / further,
                        micros: (share.micros - one.micros) / further,
                    };
                    row.push(added.text());
                }
            }
            is_something.then_some(row)
        };
        Table {
            head,
            rows: kinds.into_iter().filter_map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::stats::Stats, *};

    fn round(count: usize, times: u64) -> Took {
        Took {
            count,
            seconds: 1.0,
            elasticsearch_s: 1.0,
            replicas_s: Vec::new(),
            asked: Stats::of_one("refresh", times, 2 * times),
        }
    }

    #[test]
    fn each_further_replica_is_told_apart() {
        let mut asked = Asked::default();
        asked.push("1 replica", 1, round(1_000, 10));
        for times in [10, 40, 50] {
            asked.push("4 replicas", 4, round(1_000, times));
        }
        let table = asked.table();
        let wanted = [
            "asked of Elasticsearch, a claim",
            "1 replica",
            "4 replicas",
            "each further replica adds",
        ];
        assert_eq!(table.head, wanted);
        assert_eq!(
            table.rows,
            [[
                "refresh",
                "0.010, 20.00 µs",
                "0.040, 80.00 µs",
                "0.010, 20.00 µs"
            ]]
        );
    }

    #[test]
    fn kinds_that_are_next_to_nothing_are_left_out() {
        let mut asked = Asked::default();
        asked.push("1 replica", 1, round(100_000, 1));
        assert!(asked.table().rows.is_empty());
    }
}
