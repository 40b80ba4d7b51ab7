//! Counts of the jobs of a list by a field.

use fairlead_api::{ErrorCode, JobGroup, JobList};
use fairlead_dispatch::labels;
use fairlead_store::{Group, GroupBy, Search, StoreError};

use crate::flows::Flows;
use fairlead_base::{
    errors::{Refusal, excerpt},
    query::Query,
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
    flows: &Flows,
    search: Search,
    by: GroupBy,
) -> Result<JobList, StoreError> {
    let groups = flows.ctx.store.groups(&search, by).await?;
    let page = flows
        .ctx
        .store
        .search(&Search { limit: 0, ..search })
        .await?;
    Ok(JobList {
        jobs: Vec::new(),
        groups: shown(groups, by),
        total: page.total,
        unsearched: (page.wordless > 0).then_some(page.wordless),
        next: None,
    })
}

/// Groups as people see them: labels belong to their queue.
fn shown(groups: Vec<Group>, by: GroupBy) -> Vec<JobGroup> {
    let groups = groups.into_iter().map(|group| JobGroup {
        jobs: group.jobs,
        waiting: group.waiting,
        running: group.running,
        succeeded: group.succeeded,
        stopped: group.stopped,
        failed: group.failed(),
        since_ms: group.since_ms,
        value: match by {
            GroupBy::Queue => labels::queue_of(&group.value).to_owned(),
            _ => group.value,
        },
        suite: group.suite,
    });
    JobGroup::gather(groups, by.is_by_time())
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
