//! Searches for people, newest or oldest first.
//!
//! Jobs are stored roughly in the order of their ids. So the oldest are found at once. A search for the newest would
//! read everything, because each job is newer than those before it. It therefore searches the last hour first, and goes
//! further back while it finds too few.

use std::{iter, time::Duration};

use fairlead_job::JobId;
use serde_json::{Value, json};

use super::{
    cluster::Cluster,
    query,
    reads::{first_of, read_hit},
    reply,
};
use crate::{Search, SearchOrder, SearchPage, StoreError, clock};

/// Ages up to which the newest jobs are searched before all are.
const BACK: [Duration; 3] = [
    Duration::from_hours(1),
    Duration::from_hours(24),
    Duration::from_hours(24 * 31),
];
/// Number of jobs up to which all of them are looked at, instead of another search.
const FEW: u64 = 10_000;
/// Maximum number of months that are named. Beyond it all months are searched.
const MONTHS_MAX: usize = 24;

/// Searches jobs for people.
pub(super) async fn search_page(
    cluster: &Cluster,
    search: &Search,
) -> Result<SearchPage, StoreError> {
    let limit = search.limit.min(1_000);
    let mut back = back(search).into_iter();
    let mut searches = vec![(
        json!({"index": cluster.indices.all_jobs()}),
        query::search_count(search),
    )];
    let by_words = !search.keywords.is_empty();
    if by_words {
        let all = json!({"index": cluster.indices.all_jobs()});
        searches.push((all, query::search_wordless(search)));
    }
    if limit > 0 {
        searches.push(step(cluster, search, limit, back.next()));
    }
    let mut found = cluster.search_each(searches).await?.into_iter();
    let mut count = || {
        let total = found.next().and_then(|count| count.hits.total);
        total.map_or(0, |total| total.value)
    };
    let total = count();
    let wordless = if by_words { count() } else { 0 };
    let mut found = found.next().unwrap_or_default();
    let mut is_all = limit == 0 || search.order == SearchOrder::OldestFirst;
    while !is_all && found.hits.hits.len() <= limit as usize {
        let from = back.next().filter(|_| total > FEW);
        is_all = from.is_none();
        let step = step(cluster, search, limit, from);
        found = cluster
            .search_each(vec![step])
            .await?
            .pop()
            .unwrap_or_default();
    }
    reply::aside(move || {
        let (jobs, more) = first_of(&found, limit, read_hit);
        SearchPage {
            jobs,
            total,
            wordless,
            more,
        }
    })
    .await
}

/// Returns a search for jobs not older than the id `from`, if there is one: its indices and its query.
fn step(cluster: &Cluster, search: &Search, limit: u32, from: Option<JobId>) -> (Value, Value) {
    let months = from.map_or_else(Vec::new, |from| months(from, search.after));
    let index = if (1..=MONTHS_MAX).contains(&months.len()) {
        let each = months.into_iter().map(|month| cluster.indices.jobs(month));
        each.collect::<Vec<_>>().join(",")
    } else {
        cluster.indices.all_jobs()
    };
    (
        json!({"index": index}),
        query::search_page(search, limit, from),
    )
}

/// Returns an id of each month from that of `from` to that of `after`, or to the newest month with indices. At most
/// one more than the maximum.
fn months(from: JobId, after: Option<JobId>) -> Vec<JobId> {
    let newest = JobId::first_of(clock::unix_ms() / 1_000).next_month();
    let last = after.map_or(newest, |after| after.min(newest)).month();
    iter::successors(Some(from), |month| Some(month.next_month()))
        .take_while(|month| month.month() <= last)
        .take(MONTHS_MAX + 1)
        .collect()
}

/// Returns the ids down to which a search for the newest looks, step by step.
fn back(search: &Search) -> Vec<JobId> {
    if search.order == SearchOrder::OldestFirst {
        return Vec::new();
    }
    let now_s = clock::unix_ms() / 1_000;
    let after_s = search.after.map_or(now_s, JobId::born_s);
    let until_s = search.until_ms.map_or(now_s, |until_ms| until_ms / 1_000);
    let newest_s = now_s.min(after_s).min(until_s);
    let from = BACK.map(|back| JobId::first_of(newest_s.saturating_sub(back.as_secs())));
    from.to_vec()
}
