//! Builds queries as JSON. Pure.
//!
//! Each query names its kind as a statistics group (`stats`), so that Elasticsearch can report the cost of each kind.

use fairlead_job::{ALTERNATIVES_MAX, JobId};
use serde_json::{Value, json};

use super::documents::CELL;
use crate::{Find, Parts, Pull, PullBy, Search, SearchOrder, Usage, query::ends};

/// Filters jobs that may run now.
pub(super) fn waiting() -> [Value; 2] {
    [
        json!({"term": {"stage": "submit"}}),
        json!({"term": {"ready": true}}),
    ]
}

/// Filters states. Bodies have no searchable field.
pub(super) fn states() -> Value {
    json!({"exists": {"field": "job_id"}})
}

/// Sorts the best jobs first.
fn best_first() -> Value {
    json!([{"class": "desc"}, {"priority": "desc"}, {"job_id.number": "asc"}])
}

pub(super) fn all_of(filters: &[Value]) -> Value {
    json!({"bool": {"filter": filters}})
}

/// Counts up to `size` pairs of queue and account, and host keys: those of `keys`, or else up to `keys_size` of them.
pub(super) fn counts(size: usize, keys_size: usize, keys: Option<&[String]>) -> Value {
    let terms = |field: &str, size: usize| json!({"terms": {"field": field, "size": size}});
    let mut aggs = json!({"cells": terms(CELL, size)});
    if let Some(keys) = keys {
        let mut by_key = terms("host_keys", keys.len().max(1));
        by_key["terms"]["include"] = json!(keys);
        if !keys.is_empty() {
            aggs["host_keys"] = by_key;
        }
    } else {
        aggs["host_keys"] = terms("host_keys", keys_size);
    }
    json!({
        "size": 0, "stats": ["counts"], "track_total_hits": true, "query": all_of(&waiting()), "aggs": aggs,
    })
}

/// Counts the accounts and queues with most jobs.
pub(super) fn counts_of_some(size: usize) -> Value {
    let terms = |field: &str| json!({"terms": {"field": field, "size": size}});
    json!({
        "size": 0, "stats": ["counts"], "track_total_hits": false, "query": all_of(&waiting()),
        "aggs": {"accounts": terms("account"), "queues": terms("queue")},
    })
}

/// One page of counts by `field`, for more terms than one answer holds.
pub(super) fn counts_page(field: &str, size: usize, after: Option<&Value>) -> Value {
    json!({
        "size": 0, "stats": ["counts"], "track_total_hits": false, "query": all_of(&waiting()),
        "aggs": {"page": {"composite": page_of_terms(field, size, after)}},
    })
}

fn page_of_terms(field: &str, size: usize, after: Option<&Value>) -> Value {
    let mut composite = json!({
        "size": size, "sources": [{"name": {"terms": {"field": field}}}],
    });
    if let Some(after) = after {
        composite["after"] = after.clone();
    }
    composite
}

/// Asks only if there is a shard to search.
pub(super) fn nothing() -> Value {
    json!({"size": 0, "track_total_hits": false})
}

/// The last change of one shard. It has no hits, so replicas that ask at the same time share one answer of the cache.
pub(super) fn last_change() -> Value {
    json!({
        "size": 0, "stats": ["changes"], "track_total_hits": false,
        "aggs": {"last": {"max": {"field": "_seq_no"}}},
    })
}

/// Range of changes of one shard.
pub(super) struct Numbers<'a> {
    /// Only changes behind this one.
    pub(super) since: Option<u64>,
    /// Only changes in these ranges.
    pub(super) within: Option<&'a [(u64, u64)]>,
}

/// Finds the changes in one shard, and one more that tells if there are further ones.
pub(super) fn changes(numbers: &Numbers<'_>, waiting_only: bool, limit: u32) -> Value {
    let mut filters = Vec::new();
    if let Some(since) = numbers.since {
        filters.push(json!({"range": {"_seq_no": {"gt": since}}}));
    }
    if let Some(ranges) = numbers.within {
        let range =
            |(first, last): &(u64, u64)| json!({"range": {"_seq_no": {"gte": first, "lte": last}}});
        let ranges: Vec<Value> = ranges.iter().map(range).collect();
        filters.push(json!({"bool": {"should": ranges, "minimum_should_match": 1}}));
    }
    filters.push(states());
    let mut query = json!({"bool": {"filter": filters}});
    let waiting = all_of(&waiting());
    query["bool"][if waiting_only { "must" } else { "must_not" }] = json!([waiting]);
    json!({
        "size": limit + 1, "stats": ["changes"], "track_total_hits": false, "seq_no_primary_term": true,
        // All from columns: nothing of the documents themselves is read.
        "_source": false, "stored_fields": "_none_", "docvalue_fields": ["job_id"],
        "query": query, "sort": [{"_seq_no": "asc"}],
    })
}

/// Finds one page of waiting jobs, and one more that tells if there are further ones.
pub(super) fn pull(pull: &Pull, limit: u32) -> Value {
    let mut filters = waiting().to_vec();
    match &pull.by {
        PullBy::All => {}
        PullBy::Account(name) => filters.push(json!({"term": {"account": name}})),
        PullBy::Queue(name) => filters.push(json!({"term": {"queue": name}})),
        PullBy::HostKey(name) => filters.push(json!({"term": {"host_keys": name}})),
    }
    let mut body = json!({
        "size": limit + 1, "stats": ["pulls"], "track_total_hits": false, "seq_no_primary_term": true,
        "query": all_of(&filters), "sort": best_first(),
    });
    if let Some((class, priority, id)) = &pull.after {
        body["search_after"] = json!([class, priority, id.get()]);
    }
    body
}

/// Finds the best `limit` jobs that an offer could take in each pair of queue and account, up to `size` pairs.
pub(super) fn find(offer: &Find, size: usize, limit: u32) -> Value {
    let by = json!({"terms": {"field": CELL, "size": size}});
    best_by(offer, "cells", by, limit)
}

/// Finds one page of the same, for more pairs than one answer holds.
pub(super) fn find_page(offer: &Find, size: usize, limit: u32, after: Option<&Value>) -> Value {
    let by = json!({"composite": page_of_terms(CELL, size, after)});
    best_by(offer, "page", by, limit)
}

/// Finds the best of all jobs that an offer could take.
pub(super) fn find_best(offer: &Find, limit: u32) -> Value {
    json!({
        "size": limit, "stats": ["finds"], "track_total_hits": false, "seq_no_primary_term": true,
        "query": takeable(offer), "sort": best_first(),
    })
}

/// Builds an aggregation. A collapsed search would look up the pair of every single job.
fn best_by(offer: &Find, name: &str, mut by: Value, limit: u32) -> Value {
    by["aggs"] = json!({"best": {"top_hits": {
        "size": limit, "seq_no_primary_term": true,
        "sort": best_first(),
    }}});
    json!({
        "size": 0, "stats": ["finds"], "track_total_hits": false, "query": takeable(offer), "aggs": {name: by},
    })
}

/// Filters waiting jobs that an offer could take.
fn takeable(offer: &Find) -> Value {
    let mut filters = waiting().to_vec();
    filters.push(json!({"terms": {"host_keys": offer.keys}}));
    filters.push(json!({"range": {"memory_mb": {"lte": offer.free_memory_mb}}}));
    let any_arch = json!({"bool": {"must_not": {"exists": {"field": "arch"}}}});
    filters.push(either(&[json!({"term": {"arch": offer.arch}}), any_arch]));
    filters.push(subset("tags", "tags_n", &offer.tags));
    filters.push(subset("devices", "devices_n", &offer.devices));
    filters.push(alternatives(&offer.tags));
    any_of(
        &mut filters,
        "account",
        offer.accounts.iter().map(String::as_str),
    );
    let mut never = vec![json!({"term": {"not_on": offer.host}})];
    if !offer.tags.is_empty() {
        never.push(json!({"terms": {"not_tags": offer.tags}}));
    }
    // A job without the field needs one CPU.
    if let Some(free) = offer.free_cpus {
        never.push(json!({"range": {"cpus": {"gt": free}}}));
        if free == 0 {
            filters.push(json!({"match_none": {}}));
        }
    }
    json!({"bool": {"filter": filters, "must_not": never}})
}

pub(super) fn either(sides: &[Value]) -> Value {
    json!({"bool": {"should": sides, "minimum_should_match": 1}})
}

/// Finds jobs whose names are all among `offered`. `terms_set` never finds a job without any name.
fn subset(field: &str, count: &str, offered: &[String]) -> Value {
    let nothing = json!({"term": {count: 0}});
    if offered.is_empty() {
        return nothing;
    }
    let all_offered = json!({"terms_set": {field: {
        "terms": offered, "minimum_should_match_field": count,
    }}});
    either(&[nothing, all_offered])
}

/// Finds jobs that have no alternatives, or one that a host of these tags meets.
fn alternatives(offered: &[String]) -> Value {
    let mut met = vec![json!({"bool": {"must_not": {"exists": {"field": "any_of"}}}})];
    for number in 0..ALTERNATIVES_MAX {
        let field = |name: &str| format!("any_of.{number}.{name}");
        let mut one = json!({"filter": subset(&field("tags"), &field("tags_n"), offered)});
        if !offered.is_empty() {
            one["must_not"] = json!({"terms": {field("not_tags"): offered}});
        }
        met.push(json!({"bool": one}));
    }
    json!({"bool": {"should": met, "minimum_should_match": 1}})
}

/// Finds jobs that must be looked at before `before_ms`, and one more that tells if there are further ones.
pub(super) fn alarms(before_ms: u64, limit: u32) -> Value {
    let filters = [
        json!({"term": {"stage": "submit"}}),
        json!({"range": {"alarm_ms": {"gt": 0, "lt": before_ms}}}),
    ];
    json!({
        "size": limit + 1, "stats": ["alarms"], "track_total_hits": false, "seq_no_primary_term": true,
        "query": all_of(&filters), "sort": [{"alarm_ms": "asc"}, {"job_id": "asc"}],
    })
}

/// Sums the used time, in a bucket for each account and then for each queue.
pub(super) fn usage(usage: &Usage) -> Value {
    let filters = [
        each_of("account", &usage.accounts),
        each_of("queue", &usage.queues),
    ]
    .concat();
    let since = json!({"range": {"used_at_ms": {"gte": usage.since_ms}}});
    sums(&since, &filters, "used_ms")
}

/// Sums the bytes that jobs of accounts have uploaded.
pub(super) fn uploads(accounts: &[String]) -> Value {
    let theirs = json!({"terms": {"account": accounts}});
    sums(&theirs, &each_of("account", accounts), "result_bytes")
}

/// Returns a filter for each name.
fn each_of(field: &str, names: &[String]) -> Vec<Value> {
    let each = names.iter();
    each.map(|name| json!({"term": {field: name}})).collect()
}

/// Sums a field by filters over the selected jobs.
fn sums(which: &Value, filters: &[Value], field: &str) -> Value {
    json!({
        "size": 0, "stats": ["usage"], "track_total_hits": false, "query": all_of(std::slice::from_ref(which)),
        "aggs": {"each": {
            "filters": {"filters": filters},
            "aggs": {"used": {"sum": {"field": field}}},
        }},
    })
}

/// Counts the jobs that have not ended.
pub(super) fn unfinished() -> Value {
    let ended = json!({"terms": {"stage": ends()}});
    json!({"size": 0, "track_total_hits": true, "query": {"bool": {"filter": [states()], "must_not": [ended]}}})
}

/// Finds those of these ids that any job names in either field.
pub(super) fn named(content: &[&str]) -> Value {
    let values =
        |field: &str| json!({"terms": {"field": field, "include": content, "size": content.len()}});
    let filters = [
        states(),
        either(&[
            json!({"terms": {"inputs": content}}),
            json!({"terms": {"outputs": content}}),
        ]),
    ];
    json!({
        "size": 0, "track_total_hits": false, "query": all_of(&filters),
        "aggs": {"inputs": values("inputs"), "outputs": values("outputs")},
    })
}

/// Returns the filters of a search for people.
pub(super) fn found_by(search: &Search) -> Vec<Value> {
    let mut filters = vec![states()];
    any_of(
        &mut filters,
        "stage",
        search.stages.iter().map(|s| s.as_str()),
    );
    any_of(
        &mut filters,
        "health",
        search.healths.iter().map(|h| h.as_str()),
    );
    for (field, names) in search.named() {
        any_of(&mut filters, field, names.iter().map(String::as_str));
    }
    if search.queue_labels.is_empty() {
        any_of(
            &mut filters,
            "queue",
            search.queues.iter().map(String::as_str),
        );
    } else {
        filters.push(either(&[
            json!({"terms": {"queue": search.queues}}),
            json!({"terms": {"queue_label": search.queue_labels}}),
        ]));
    }
    for words in &search.keywords {
        filters.push(json!({"terms": {"kv": words}}));
    }
    if let Some(signature) = &search.crash_signature {
        let field = "crash_signature";
        filters.push(match signature.strip_suffix('*') {
            Some("") => json!({"exists": {"field": field}}),
            Some(begin) => json!({"prefix": {field: begin}}),
            None => json!({"term": {field: signature}}),
        });
    }
    if let Some(ready) = search.ready {
        filters.push(json!({"term": {"ready": ready}}));
    }
    filters.extend(parts(search));
    if let Some(since) = search.since_ms {
        filters.push(json!({"range": {"submit_ms": {"gte": since}}}));
    }
    if let Some(until) = search.until_ms {
        filters.push(json!({"range": {"submit_ms": {"lt": until}}}));
    }
    filters.extend(search.before.map(before));
    filters
}

/// Filters jobs that come before a place: class, priority and id.
fn before((class, priority, job): (u8, i16, JobId)) -> Value {
    let is = |field: &str, value: i64| json!({"term": {field: value}});
    let is_more = |field: &str, value: i64| json!({"range": {field: {"gt": value}}});
    let (class, priority) = (i64::from(class), i64::from(priority));
    let older = json!({"range": {"job_id.number": {"lt": job.get()}}});
    either(&[
        is_more("class", class),
        all_of(&[is("class", class), is_more("priority", priority)]),
        all_of(&[is("class", class), is("priority", priority), older]),
    ])
}

/// Filters parents, shards, or both.
fn parts(search: &Search) -> impl Iterator<Item = Value> {
    let without = |field: &str| json!({"bool": {"must_not": {"exists": {"field": field}}}});
    let which = match search.parts {
        Parts::All => None,
        Parts::NoShards => Some(without("shard.of")),
        Parts::NoParents => Some(without("shards.count")),
        Parts::OnlyShards => Some(json!({"exists": {"field": "shard.of"}})),
    };
    let of = search.shards_of.map(|of| json!({"term": {"shard.of": of}}));
    which.into_iter().chain(of)
}

/// Counts the jobs that a search finds. Elasticsearch caches the count while nothing changes.
pub(super) fn search_count(search: &Search) -> Value {
    json!({"size": 0, "stats": ["people"], "track_total_hits": true, "query": all_of(&found_by(search))})
}

/// Counts the jobs that match a search except for its words, and were stored before words existed.
pub(super) fn search_wordless(search: &Search) -> Value {
    let mut filters = found_by(&Search {
        keywords: Vec::new(),
        ..search.clone()
    });
    filters.push(json!({"bool": {"must_not": [{"exists": {"field": "kv"}}]}}));
    json!({"size": 0, "stats": ["people"], "track_total_hits": true, "query": all_of(&filters)})
}

/// Finds a page of a search, from the newest back to the id `from`, if there is one. One more job than the limit
/// tells if there are further ones. The total is not counted, because that would look at all jobs.
pub(super) fn search_page(search: &Search, limit: u32, from: Option<JobId>) -> Value {
    let mut filters = found_by(search);
    if let Some(from) = from {
        let mut ids = json!({"gte": from.get()});
        if let Some(after) = search.after {
            ids["lt"] = json!(after.get());
        }
        // Read from columns, one after the other: among the terms each id is one of its own.
        filters.push(json!({"range": {"job_id.number": ids}}));
    }
    let order = match search.order {
        SearchOrder::NewestFirst => "desc",
        SearchOrder::OldestFirst => "asc",
    };
    let mut body = json!({
        "size": limit + 1, "stats": ["people"], "track_total_hits": false, "seq_no_primary_term": true,
        "query": all_of(&filters), "sort": [{"job_id": order}],
    });
    if let Some(after) = search.after {
        body["search_after"] = json!([after]);
    }
    body
}

/// Filters documents whose `field` is one of `wanted`. An empty name matches documents without the field.
fn any_of<'a>(filters: &mut Vec<Value>, field: &str, wanted: impl Iterator<Item = &'a str>) {
    let wanted: Vec<&str> = wanted.collect();
    if wanted.is_empty() {
        return;
    }
    let named = json!({"terms": {field: wanted}});
    filters.push(if wanted.contains(&"") {
        either(&[
            named,
            json!({"bool": {"must_not": {"exists": {"field": field}}}}),
        ])
    } else {
        named
    });
}
