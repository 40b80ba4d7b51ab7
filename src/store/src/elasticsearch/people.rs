//! Questions of people: how many jobs are how far, and who did what.

use std::collections::BTreeMap;

use fairlead_job::{Health, Stage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cluster::Cluster,
    query::{all_of, either, found_by, states, waiting},
    reply::Found,
};
use crate::{
    EventFind, EventRecord, Group, GroupBy, Search, StageCounts, StoreError,
    groups::GROUPS_MAX,
    query::{ends, held},
    store::QUEUES_MAX,
};

/// Maximum number of buckets of stages and healths. There are fewer.
const WORDS_MAX: u32 = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counted {
    open: Part,
    not_ready: Part,
    ended: Part,
    waiting: Part,
}

/// Count of a filter, and counts within it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    doc_count: u64,
    by: Buckets,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Buckets {
    buckets: Vec<Bucket>,
}

#[derive(Debug, Deserialize)]
struct Bucket {
    key: String,
    doc_count: u64,
    #[serde(default)]
    oldest: Least,
}

/// Least value, if there is one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Least {
    value: Option<f64>,
}

impl Least {
    /// Returns it as a time, epoch ms; 0: there is none.
    fn ms(&self) -> u64 {
        let value = self.value.map(std::time::Duration::try_from_secs_f64);
        value.and_then(Result::ok).map_or(0, |ms| ms.as_secs())
    }
}

/// An event as it is stored.
#[derive(Debug, Deserialize)]
struct Stored {
    at_ms: u64,
    #[serde(default)]
    who: String,
    #[serde(default)]
    what: String,
    #[serde(default)]
    subject: String,
    #[serde(default)]
    detail: Value,
}

/// Counts open jobs by stage, and ended ones by health: one search.
pub(super) async fn stage_counts(
    cluster: &Cluster,
    since_ms: u64,
) -> Result<StageCounts, StoreError> {
    let found: Found<Counted> = cluster
        .search_one(&cluster.indices.all_jobs(), &counting(since_ms))
        .await?;
    let Counted {
        open,
        not_ready,
        ended,
        waiting,
    } = found.aggregations;
    let oldest = waiting.by.buckets.into_iter().filter_map(|bucket| {
        let ms = bucket.oldest.ms();
        (ms > 0).then_some((bucket.key, ms))
    });
    Ok(StageCounts {
        open: words(open),
        not_ready: not_ready.doc_count,
        ended: words(ended),
        oldest_ready_ms: oldest.collect(),
    })
}

/// Returns counts by words that this version knows.
fn words<W: std::str::FromStr + Ord>(part: Part) -> BTreeMap<W, u64> {
    let buckets = part.by.buckets.into_iter();
    let known = buckets.filter_map(|bucket| Some((bucket.key.parse().ok()?, bucket.doc_count)));
    known.collect()
}

fn counting(since_ms: u64) -> Value {
    let open: Vec<&str> = Stage::ALL
        .iter()
        .filter(|stage| !stage.is_terminal())
        .map(|stage| stage.as_str())
        .collect();
    let is_open = json!({"terms": {"stage": open}});
    let since = json!({"range": {"submit_ms": {"gte": since_ms}}});
    let has_ended = all_of(&[since.clone(), json!({"terms": {"stage": ends()}})]);
    let no_parents = json!({"bool": {"must_not": {"exists": {"field": "shards.count"}}}});
    let looked_at = either(&[is_open.clone(), has_ended.clone()]);
    let is_not_ready = all_of(&[
        json!({"term": {"stage": "submit"}}),
        json!({"term": {"ready": false}}),
    ]);
    let by = |field: &str| json!({"by": {"terms": {"field": field, "size": WORDS_MAX}}});
    json!({
        "size": 0, "stats": ["people"], "track_total_hits": false,
        "query": all_of(&[states(), no_parents, looked_at]),
        "aggs": {
            "open": {"filter": is_open, "aggs": by("stage")},
            "not_ready": {"filter": is_not_ready},
            "ended": {"filter": has_ended, "aggs": by("health")},
            "waiting": {"filter": all_of(&waiting()), "aggs": {"by": {
                "terms": {"field": "queue", "size": QUEUES_MAX},
                "aggs": {"oldest": {"min": {"field": "ready_ms"}}},
            }}},
        },
    })
}

/// Counts of the jobs that a search finds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Grouped {
    by: Values,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Values {
    buckets: Vec<OneValue>,
}

#[derive(Debug, Deserialize)]
struct OneValue {
    key: String,
    doc_count: u64,
    #[serde(default)]
    waiting: Part,
    #[serde(default)]
    running: Part,
    #[serde(default)]
    succeeded: Part,
    #[serde(default)]
    stopped: Part,
    #[serde(default)]
    since: Least,
    #[serde(default)]
    suites: Values,
}

/// Counts by the values of a field: one search.
pub(super) async fn groups(
    cluster: &Cluster,
    search: &Search,
    by: GroupBy,
) -> Result<Vec<Group>, StoreError> {
    let held: Vec<&str> = held().map(Stage::as_str).collect();
    let ended_as = |healths: &[Health]| {
        let healths: Vec<&str> = healths.iter().map(|health| health.as_str()).collect();
        all_of(&[
            json!({"terms": {"health": healths}}),
            json!({"terms": {"stage": ends()}}),
        ])
    };
    let order = if by.is_by_time() {
        json!([{"since": "desc"}, {"_key": "asc"}])
    } else {
        json!([{"_count": "desc"}, {"_key": "asc"}])
    };
    let body = json!({
        "size": 0, "stats": ["people"], "track_total_hits": false,
        "query": all_of(&found_by(search)),
        "aggs": {"by": {
            "terms": {"field": by.as_str(), "size": GROUPS_MAX, "missing": "", "order": order},
            "aggs": {
                "waiting": {"filter": {"term": {"stage": "submit"}}},
                "running": {"filter": {"terms": {"stage": held}}},
                "succeeded": {"filter": ended_as(&[Health::Success])},
                "stopped": {"filter": ended_as(&Health::STOPPED)},
                "since": {"min": {"field": "submit_ms"}},
                "suites": {"terms": {"field": "suite", "size": 2, "missing": ""}},
            },
        }},
    });
    let found: Found<Grouped> = cluster
        .search_one(&cluster.indices.all_jobs(), &body)
        .await?;
    let groups = found.aggregations.by.buckets.into_iter().map(|one| Group {
        value: one.key,
        jobs: one.doc_count,
        waiting: one.waiting.doc_count,
        running: one.running.doc_count,
        succeeded: one.succeeded.doc_count,
        stopped: one.stopped.doc_count,
        since_ms: one.since.ms(),
        suite: match one.suites.buckets.as_slice() {
            [suite] => suite.key.clone(),
            _ => String::new(),
        },
    });
    Ok(groups.collect())
}

/// Returns events, the newest first.
pub(super) async fn events(
    cluster: &Cluster,
    find: &EventFind,
) -> Result<Vec<EventRecord>, StoreError> {
    let mut filters =
        vec![json!({"range": {"at_ms": {"gte": find.since_ms, "lt": find.until_ms}}})];
    for (field, wanted) in [
        ("who", &find.who),
        ("what", &find.what),
        ("subject", &find.subjects),
    ] {
        if wanted.is_empty() {
            continue;
        }
        let way = |name: &String| match name.strip_suffix('*') {
            Some(begin) => json!({"prefix": {field: begin}}),
            None => json!({"term": {field: name}}),
        };
        let ways: Vec<Value> = wanted.iter().map(way).collect();
        filters.push(either(&ways));
    }
    let asc = |field: &str| json!({field: {"order": "asc", "unmapped_type": "keyword"}});
    let body = json!({
        "size": find.limit.clamp(1, 1_000), "from": find.skip, "stats": ["people"], "track_total_hits": false,
        "query": all_of(&filters),
        "sort": [{"at_ms": {"order": "desc", "unmapped_type": "date"}}, asc("what"), asc("subject"), asc("who")],
    });
    let found: Found = cluster
        .search_one(&cluster.indices.all_events(), &body)
        .await?;
    let read = found.hits.hits.iter().filter_map(|hit| {
        let stored: Stored = serde_json::from_str(hit.source.get()).ok()?;
        Some(EventRecord {
            at_ms: stored.at_ms,
            who: stored.who,
            what: stored.what,
            subject: stored.subject,
            detail: stored.detail,
        })
    });
    Ok(read.collect())
}
