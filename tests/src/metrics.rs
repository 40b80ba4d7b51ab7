//! Metrics of a replica, from `GET /metrics`.

use std::collections::BTreeMap;

use crate::Http;

/// The numbers of one replica, by name with labels: `fairlead_claims_total{outcome="conflict"}`.
#[derive(Debug, Clone, Default)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Asks a replica.
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

    /// One number; 0 when it was never counted.
    pub fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }
}
