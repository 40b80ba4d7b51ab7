//! Counters of the replicas, summed over their restarts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use fairlead_cluster::{clock::pause, http};

/// Interval between reads of a replica's counters. Counts since the last read are lost with a kill.
const EVERY: Duration = Duration::from_secs(1);
/// Timeout of an answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Totals by series, `NAME{LABELS}`.
pub(super) type Totals = BTreeMap<String, u64>;

/// Totals of all replicas.
#[derive(Debug, Default)]
pub(super) struct Meters(Mutex<Totals>);

impl Meters {
    /// Reads the counters of one replica until `over`, and once more then.
    pub(super) async fn watch(self: Arc<Self>, url: String, over: CancellationToken) {
        let Ok(client) = http::client(ANSWER_TIME) else {
            return;
        };
        let mut last = Totals::new();
        loop {
            let ended = over.run_until_cancelled(pause(EVERY)).await.is_none();
            let answer = client.get(format!("{url}/metrics")).send().await;
            if let Ok(answer) = answer
                && let Ok(text) = answer.text().await
            {
                let now = counters(&text);
                self.add(&last, &now);
                last = now;
            }
            if ended {
                return;
            }
        }
    }

    /// Adds the increase of counters. A counter that went back was reset, so its whole value is new.
    fn add(&self, last: &Totals, now: &Totals) {
        let mut totals = self.0.lock();
        for (series, value) in now {
            let before = last.get(series).filter(|before| *before <= value);
            *totals.entry(series.clone()).or_default() += value - before.unwrap_or(&0);
        }
    }

    /// Returns the totals so far.
    pub(super) fn totals(&self) -> Totals {
        self.0.lock().clone()
    }
}

/// Returns the counters on a page of metrics.
fn counters(text: &str) -> Totals {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let counted = lines.filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let name = series.split('{').next()?;
        Some((series.to_owned(), value.parse().ok()?)).filter(|_| name.ends_with("_total"))
    });
    counted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_added_up_over_restarts() {
        let meters = Meters::default();
        let page = |n: u64| {
            counters(&format!(
                "# HELP x\nfairlead_claims_total{{outcome=\"conflict\"}} {n}\nfairlead_peers 2\n"
            ))
        };
        let pages = [page(5), page(8), page(2), page(3)];
        let mut last = Totals::new();
        for now in pages {
            meters.add(&last, &now);
            last = now;
        }
        let totals = meters.totals();
        assert_eq!(totals["fairlead_claims_total{outcome=\"conflict\"}"], 11);
        assert_eq!(totals.len(), 1);
    }
}
