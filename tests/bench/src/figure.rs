//! Figures: the measurements of each round, beside the limit of the same round.

use serde_json::{Value, json};

/// Values of all rounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series(Vec<f64>);

impl Series {
    pub(super) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Returns the value at this quantile (0 to 1).
    fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place in a short list"
        )]
        let place = (last as f64 * share).round() as usize;
        sorted.get(place).copied().unwrap_or(0.0)
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.0
    }

    pub(super) fn median(&self) -> f64 {
        self.at(0.5)
    }

    pub(super) fn p99(&self) -> f64 {
        self.at(0.99)
    }

    fn min(&self) -> f64 {
        self.at(0.0)
    }

    fn max(&self) -> f64 {
        self.at(1.0)
    }

    /// Returns each value divided by the value of the same round.
    fn over(&self, limit: &Self) -> Self {
        let pairs = self.0.iter().zip(&limit.0);
        Self(pairs.map(|(ours, limit)| ours / limit).collect())
    }

    /// Returns median, minimum and maximum.
    pub(super) fn text(&self) -> String {
        let [median, min, max] = [self.median(), self.min(), self.max()].map(number);
        format!("{median} ({min}–{max})")
    }

    pub(super) fn json(&self) -> Value {
        json!({"median": self.median(), "min": self.min(), "max": self.max(), "rounds": self.0})
    }
}

/// Goal of a figure's ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    None,
}

impl Goal {
    /// Returns the goal in words, and whether `value` reaches it.
    pub(super) fn told(self, value: f64) -> (String, &'static str) {
        let (goal, reached) = match self {
            Self::AtLeast(least) => (format!("≥ {}", number(least)), value >= least),
            Self::AtMost(most) => (format!("≤ {}", number(most)), value <= most),
            Self::None => return ("—".to_owned(), ""),
        };
        (goal, if reached { "yes" } else { "no" })
    }
}

/// A rate that is plotted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    /// Submits, with several jobs in a request.
    Submits,
    /// Dispatches to this many agents.
    Dispatches(usize),
}

/// Plotted value, and the position of its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) rate: Rate,
    pub(super) waiting: usize,
    pub(super) replicas: u16,
}

/// One line of the report.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    /// Measured quantity, with its unit.
    pub(super) what: String,
    pub(super) ours: Series,
    /// Limit in the same rounds, and its description.
    pub(super) limit: Series,
    pub(super) of: String,
    /// Goal of the ratio of both.
    pub(super) goal: Goal,
    /// Point in a plot. `None`: not plotted.
    pub(super) at: Option<At>,
}

impl Figure {
    pub(super) fn new(what: impl Into<String>, of: impl Into<String>, goal: Goal) -> Self {
        Self {
            what: what.into(),
            ours: Series::default(),
            limit: Series::default(),
            of: of.into(),
            goal,
            at: None,
        }
    }

    pub(super) fn drawn(self, at: At) -> Self {
        Self {
            at: Some(at),
            ..self
        }
    }

    /// Returns the figure beside finished jobs, relative to the figure `without` them. The goal is at most a tenth
    /// worse.
    pub(super) fn beside(self, without: Self, finished: usize) -> Self {
        let is_rate = self.what.contains("/s,");
        let goal = if is_rate {
            Goal::AtLeast(0.9)
        } else {
            Goal::AtMost(1.1)
        };
        let what = format!("{}, {finished} finished", self.what);
        Self {
            ours: self.ours,
            limit: without.ours,
            ..Self::new(what, "none finished", goal)
        }
    }

    pub(super) fn push(&mut self, ours: f64, limit: f64) {
        self.ours.push(ours);
        self.limit.push(limit);
    }

    /// Returns a row of the table.
    pub(super) fn row(&self) -> String {
        let ratio = self.ours.over(&self.limit);
        let (goal, reached) = self.goal.told(ratio.median());
        format!(
            "| {} | {goal} | {} | {}: {} | {} | {reached} |",
            self.what,
            self.ours.text(),
            self.of,
            self.limit.text(),
            ratio.text(),
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "what": self.what, "of": self.of, "fairlead": self.ours.json(), "limit": self.limit.json(),
            "ratio": self.ours.over(&self.limit).json(),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are measured, not exact")]
pub(super) const fn float(count: u64) -> f64 {
    count as f64
}

/// Returns a number with its significant digits. A value that is not finite, such as a ratio to zero, gives a dash.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        "—".to_owned()
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(goal: Goal) -> Figure {
        let mut figure = Figure::new("claims/s", "raw", goal);
        for (ours, limit) in [(80.0, 100.0), (95.0, 100.0), (10.0, 20.0)] {
            figure.push(ours, limit);
        }
        figure
    }

    #[test]
    fn a_ratio_is_of_the_same_round() {
        let row = figure(Goal::AtLeast(0.8)).row();
        assert_eq!(
            row,
            "| claims/s | ≥ 0.80 | 80.00 (10.00–95.00) | raw: 100 (20.00–100) | 0.80 (0.50–0.95) | yes |"
        );
        assert!(figure(Goal::AtMost(0.7)).row().ends_with("| no |"));
        assert!(figure(Goal::None).row().ends_with("|  |"));
        assert_eq!(
            [f64::NAN, f64::INFINITY, 0.5].map(number),
            ["—", "—", "0.50"]
        );
    }

    #[test]
    fn the_slowest_of_a_hundred_is_the_p99() {
        let mut series = Series::default();
        (1..=100).rev().for_each(|n| series.push(f64::from(n)));
        assert_eq!((series.p99(), series.median()), (99.0, 51.0));
    }
}
