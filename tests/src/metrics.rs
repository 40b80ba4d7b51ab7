//! Metrics of a replica, from `GET /metrics`.

use std::collections::BTreeMap;

use crate::Http;

/// Metrics of one replica, by name with labels: `fairlead_claims_total{outcome="conflict"}`.
#[derive(Debug, Clone, Default)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Reads the metrics of a replica.
    pub async fn of(http: &Http) -> Self {
        let reply = http.get("/metrics").await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let lines = reply.text.lines().filter(|line| !line.starts_with('#'));
        let read = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Self(lines.filter_map(read).collect())
    }

    /// Returns one metric. 0: it was never counted.
    pub fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }
}
