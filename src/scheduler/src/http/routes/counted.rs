//! Counts of the jobs of a list by a field.

use std::collections::BTreeMap;

use fairlead_api::{ErrorCode, JobGroup, JobList};
use fairlead_dispatch::labels;
use fairlead_store::{Group, GroupBy, Search, StoreError};

use crate::{
    base::{
        errors::{Refusal, excerpt},
        query::Query,
    },
    core::Core,
};

/// By what a list is to be counted; none: it is a list.
pub(super) fn group_by(query: &Query) -> Result<Option<GroupBy>, Refusal> {
    let Some(word) = query.get("group_by").filter(|word| !word.is_empty()) else {
        return Ok(None);
    };
    let known = GroupBy::ALL.iter().find(|(name, _)| *name == word);
    let (_, by) = known.ok_or_else(|| {
        let message = format!("group_by: '{}' is none", excerpt(word));
        let names: Vec<&str> = GroupBy::ALL.iter().map(|(name, _)| *name).collect();
        Refusal::new(ErrorCode::BadQuery, message, names.join(", "))
    })?;
    Ok(Some(*by))
}

/// The jobs that a search finds, counted: a list without jobs.
pub(super) async fn counted(
    core: &Core,
    search: Search,
    by: GroupBy,
) -> Result<JobList, StoreError> {
    let groups = core.store.groups(&search, by).await?;
    let page = core.store.search(&Search { limit: 0, ..search }).await?;
    Ok(JobList {
        jobs: Vec::new(),
        groups: shown(groups, by),
        total: page.total,
        unsearched: (page.wordless > 0).then_some(page.wordless),
        next: None,
    })
}

/// Groups as people see them: labels belong to their queue. Most jobs first; of submits: the newest.
fn shown(groups: Vec<Group>, by: GroupBy) -> Vec<JobGroup> {
    let mut by_value: BTreeMap<String, JobGroup> = BTreeMap::new();
    for group in groups {
        let value = match by {
            GroupBy::Queue => labels::queue_of(&group.value).to_owned(),
            _ => group.value.clone(),
        };
        let shown = by_value.entry(value.clone()).or_insert_with(|| JobGroup {
            since_ms: group.since_ms,
            suite: group.suite.clone(),
            ..JobGroup::default()
        });
        shown.value = value;
        shown.since_ms = shown.since_ms.min(group.since_ms);
        if shown.suite != group.suite {
            shown.suite.clear();
        }
        shown.jobs += group.jobs;
        shown.waiting += group.waiting;
        shown.running += group.running;
        shown.succeeded += group.succeeded;
        shown.stopped += group.stopped;
        shown.failed += group.failed();
    }
    let mut groups: Vec<JobGroup> = by_value.into_values().collect();
    let rank = |group: &JobGroup| {
        if by.is_by_time() {
            group.since_ms
        } else {
            group.jobs
        }
    };
    groups.sort_by_key(|group| std::cmp::Reverse(rank(group)));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_count_with_their_queue() {
        let group = |value: &str, jobs| Group {
            value: value.to_owned(),
            jobs,
            waiting: jobs,
            ..Group::default()
        };
        let groups = vec![group("alice/1", 2), group("bob", 3), group("alice", 2)];
        let counts = |by| {
            let shown = shown(groups.clone(), by).into_iter();
            shown
                .map(|group| (group.value, group.jobs, group.failed))
                .collect::<Vec<_>>()
        };
        let row = |value: &str, jobs| (value.to_owned(), jobs, 0);
        assert_eq!(counts(GroupBy::Queue), [row("alice", 4), row("bob", 3)]);
        assert_eq!(counts(GroupBy::Suite).len(), 3);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let by = |query: &str| group_by(&Query::parse(query).unwrap());
        assert_eq!(by("group_by=suite").unwrap(), Some(GroupBy::Suite));
        assert_eq!(by("").unwrap(), None);
        assert!(by("group_by=weather").is_err());
    }
}
