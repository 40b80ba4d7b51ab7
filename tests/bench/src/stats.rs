//! Elasticsearch's own counts of its work, by kind: requests, reads by id, searches by group, writes, merges.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

use super::{figure::float, raw::Raw};

/// Request that carries writes.
const BULK: &str = "request /_bulk";
/// Prefix of the kinds of writes. The kind of the index follows.
const WRITES: &str = "write ";

/// Work of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) times: u64,
    /// Wall-clock time over all shards, ms. 0 if it is not measured.
    pub(super) ms: u64,
}

/// All work so far, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stats(BTreeMap<String, Done>);

impl Stats {
    #[cfg(test)]
    pub(super) fn of_one(kind: &str, times: u64, ms: u64) -> Self {
        Self([(kind.to_owned(), Done { times, ms })].into())
    }

    /// Returns the work by the counts of the indices whose names begin with `prefix`, and of the requests to each node.
    fn new(prefix: &str, indices: &Value, http: &Value) -> anyhow::Result<Self> {
        let mut stats = Self::default();
        let indices = indices["indices"].as_object().context("no indices")?;
        for (name, of) in indices {
            stats.add_index(kind_of(prefix, name), &of["total"], &of["primaries"]);
        }
        let nodes = http["nodes"].as_object().context("no nodes")?;
        for node in nodes.values() {
            // Older versions have no counts by route.
            let routes = node["http"]["routes"].as_object();
            for (route, of) in routes.into_iter().flatten() {
                stats.add(
                    format!("request {route}"),
                    &of["requests"]["count"],
                    &Value::Null,
                );
            }
        }
        Ok(stats)
    }

    fn add_index(&mut self, kind: &str, total: &Value, primaries: &Value) {
        let get = &total["get"];
        self.add(
            format!("read by id {kind}"),
            &get["total"],
            &get["time_in_millis"],
        );
        let groups = total["search"]["groups"].as_object();
        for (group, of) in groups.into_iter().flatten() {
            for phase in ["query", "fetch"] {
                let [times, ms] =
                    ["total", "time_in_millis"].map(|what| &of[format!("{phase}_{what}")]);
                self.add(format!("search {group}, {phase}"), times, ms);
            }
        }
        // Copies of a shard repeat the work, but a write is counted once.
        let writes = &primaries["indexing"];
        let (times, ms) = (&writes["index_total"], &writes["index_time_in_millis"]);
        self.add(format!("{WRITES}{kind}"), times, ms);
        let none = &Value::Null;
        self.add(
            format!("no-op update {kind}"),
            &writes["noop_update_total"],
            none,
        );
        let refused = &writes["index_failed_due_to_version_conflict"];
        self.add(format!("refused write {kind}"), refused, none);
        let bulk = &primaries["bulk"];
        let (times, ms) = (&bulk["total_operations"], &bulk["total_time_in_millis"]);
        self.add(format!("bulk of a shard {kind}"), times, ms);
        for what in ["refresh", "merges", "flush"] {
            self.add(
                what.to_owned(),
                &total[what]["total"],
                &total[what]["total_time_in_millis"],
            );
        }
    }

    fn add(&mut self, kind: String, times: &Value, ms: &Value) {
        let done = self.0.entry(kind).or_default();
        done.times += times.as_u64().unwrap_or_default();
        done.ms += ms.as_u64().unwrap_or_default();
    }

    /// Returns the work since `before`, without kinds that had none.
    pub(super) fn since(&self, before: &Self) -> Self {
        let grown = self.0.iter().map(|(kind, after)| {
            let before = before.of(kind);
            let times = after.times.saturating_sub(before.times);
            let ms = after.ms.saturating_sub(before.ms);
            (kind.clone(), Done { times, ms })
        });
        Self(grown.filter(|(_, done)| *done != Done::default()).collect())
    }

    pub(super) fn of(&self, kind: &str) -> Done {
        self.0.get(kind).copied().unwrap_or_default()
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Returns the numbers of all writes, and of the requests that carried them.
    pub(super) fn writes_and_bulks(&self) -> (u64, u64) {
        let writes = self.0.iter().filter(|(kind, _)| kind.starts_with(WRITES));
        let writes = writes.map(|(_, done)| done.times).sum();
        (writes, self.of(BULK).times)
    }
}

/// Returns the kind of an index: its name without the prefix and the month.
fn kind_of<'a>(prefix: &str, index: &'a str) -> &'a str {
    let rest = index.strip_prefix(prefix).unwrap_or(index);
    rest.trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_matches('-')
}

impl Raw {
    /// Returns all work so far for the indices whose names begin with `prefix`. Requests are those of all clients.
    pub(super) async fn stats(&self, prefix: &str) -> anyhow::Result<Stats> {
        let metrics = "get,search,indexing,bulk,refresh,merge,flush";
        let indices = format!("{prefix}-*/_stats/{metrics}?groups=*&level=indices");
        let indices = self.get(&indices).await?;
        Stats::new(prefix, &indices, &self.get("_nodes/stats/http").await?)
    }

    /// Returns the merge time of these indices so far, ms, and their bytes on disk.
    pub(super) async fn merged_and_stored(&self, indices: &str) -> anyhow::Result<(f64, f64)> {
        let stats = self.get(&format!("{indices}/_stats/merge,store")).await?;
        let total = &stats["_all"]["total"];
        let (ms, bytes) = (
            &total["merges"]["total_time_in_millis"],
            &total["store"]["size_in_bytes"],
        );
        let both = ms.as_u64().zip(bytes.as_u64());
        let (ms, bytes) = both.context("no merges are told")?;
        Ok((float(ms), float(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stats(times: u64) -> Stats {
        let of = |times: u64| {
            json!({
                "get": {"total": times, "time_in_millis": 2 * times},
                "search": {"query_total": 99, "groups": {
                    "changes": {"query_total": 3 * times, "query_time_in_millis": 5, "fetch_total": 1, "fetch_time_in_millis": 7},
                }},
                "indexing": {"index_total": 10 * times, "index_time_in_millis": 4, "noop_update_total": 1},
                "refresh": {"total": 2, "total_time_in_millis": 3},
            })
        };
        let index = |times| json!({"total": of(times), "primaries": of(times)});
        let indices = json!({"indices": {"p-jobs-2611": index(times), "p-jobs-2610": index(1), "p-hosts": index(2)}});
        let routes =
            json!({"/_bulk": {"requests": {"count": 5}}, "/_mget": {"requests": {"count": times}}});
        let http = json!({"nodes": {"a": {"http": {"routes": routes}}, "b": {"http": {}}}});
        Stats::new("p", &indices, &http).unwrap()
    }

    #[test]
    fn work_is_counted_by_kind_over_all_months() {
        let stats = stats(4);
        let done = |times, ms| Done { times, ms };
        assert_eq!(stats.of("read by id jobs"), done(5, 10));
        assert_eq!(stats.of("read by id hosts"), done(2, 4));
        assert_eq!(stats.of("search changes, query"), done(21, 15));
        assert_eq!(stats.of("search changes, fetch"), done(3, 21));
        assert_eq!(stats.of("no-op update jobs"), done(2, 0));
        assert_eq!(stats.of("refresh"), done(6, 9));
        assert_eq!(stats.of("request /_mget"), done(4, 0));
        assert_eq!(stats.of("unknown"), Done::default());
        assert_eq!(stats.writes_and_bulks(), (70, 5));
    }

    #[test]
    fn only_what_grew_is_left() {
        let grown = stats(6).since(&stats(4));
        assert_eq!(grown.of("read by id jobs"), Done { times: 2, ms: 4 });
        assert_eq!(grown.of("write jobs").times, 20);
        let kinds: Vec<&str> = grown.kinds().map(String::as_str).collect();
        let wanted = [
            "read by id jobs",
            "request /_mget",
            "search changes, query",
            "write jobs",
        ];
        assert_eq!(kinds, wanted);
    }

    #[test]
    fn answers_without_counts_are_refused() {
        let (none, nodes) = (json!({}), json!({"nodes": {}}));
        assert!(Stats::new("p", &none, &nodes).is_err());
        assert!(Stats::new("p", &json!({"indices": {}}), &none).is_err());
    }
}
