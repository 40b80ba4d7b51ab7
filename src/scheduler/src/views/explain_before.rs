//! Renders what stands before a waiting job over all queues.

use fairlead_api::Before;
use fairlead_dispatch::Ahead;
use fairlead_job::{Stage, units::counted};
use fairlead_store::{JobState, Search, StoreError};

use crate::views::ViewFlow;

/// What stands before a job. Jobs of its own account are counted in the store if not all of them are in memory: that is
/// the only search.
pub(super) async fn before(flow: &ViewFlow, state: &JobState, ahead: &Ahead) -> Before {
    let is_known = ahead.is_exact && !ahead.in_account.more;
    let in_store = if is_known {
        None
    } else {
        before_in_account(flow, state).await.ok()
    };
    let before = Before {
        higher_queues: ahead.higher_classes,
        higher_jobs: ahead.higher_jobs,
        queues: ahead.queues,
        queues_jobs: ahead.queues_jobs,
        accounts: ahead.accounts + ahead.labels,
        accounts_jobs: ahead.members_jobs,
        own_jobs: in_store.unwrap_or(ahead.in_account.counted),
        exact: is_known || (ahead.is_exact && in_store.is_some()),
        words: String::new(),
    };
    Before {
        words: words(&before),
        ..before
    }
}

/// Waiting jobs of its account in its queue that come first, as the store counts them.
async fn before_in_account(flow: &ViewFlow, state: &JobState) -> Result<u64, StoreError> {
    let search = Search {
        stages: vec![Stage::Submit],
        ready: Some(true),
        accounts: vec![state.account.clone()],
        queues: vec![state.queue.clone()],
        before: Some((state.class, state.priority, state.job_id)),
        limit: 0,
        ..Search::default()
    };
    Ok(flow.ctx.store.search(&search).await?.total)
}

fn words(before: &Before) -> String {
    let jobs = |many: u64| counted(many, "job", "jobs");
    let mut parts = Vec::new();
    if before.higher_queues > 0 {
        let queues = counted(before.higher_queues, "queue", "queues");
        let jobs = jobs(before.higher_jobs);
        parts.push(format!("{jobs} in {queues} of higher priority"));
    }
    if before.queues > 0 {
        let queues = counted(before.queues, "queue", "queues");
        let jobs = jobs(before.queues_jobs);
        parts.push(format!("{jobs} in {queues} of the same priority"));
    }
    if before.accounts > 0 {
        let others = counted(before.accounts, "account or label", "accounts or labels");
        let jobs = jobs(before.accounts_jobs);
        parts.push(format!("{jobs} of {others} in its queue"));
    }
    if before.own_jobs > 0 {
        parts.push(format!("{} of its own account", jobs(before.own_jobs)));
    }
    let Some(last) = parts.pop() else {
        return "no waiting job stands before it in any queue".to_owned();
    };
    let all = if parts.is_empty() {
        last
    } else {
        format!("{} and {last}", parts.join(", "))
    };
    let about = if before.exact { "" } else { "about " };
    let turns = if before.queues + before.accounts > 0 {
        "; queues and accounts take turns"
    } else {
        ""
    };
    format!("before it over all queues: {about}{all}{turns}")
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::Count;

    use super::*;
    use crate::testing::{flows, state, store_job};

    #[tokio::test]
    async fn what_is_before_a_job_is_one_sentence() {
        let (_data, flows) = flows().await;
        let exact = Ahead {
            is_exact: true,
            ..Ahead::default()
        };
        let words = async |ahead: Ahead| before(&flows.views, &state(1), &ahead).await.words;
        assert_eq!(
            words(exact).await,
            "no waiting job stands before it in any queue"
        );
        let own = Count {
            counted: 1,
            more: false,
        };
        let ahead = Ahead {
            in_account: own,
            ..exact
        };
        assert_eq!(
            words(ahead).await,
            "before it over all queues: 1 job of its own account"
        );
        let ahead = Ahead {
            higher_classes: 1,
            higher_jobs: 7,
            queues: 2,
            queues_jobs: 3,
            labels: 1,
            members_jobs: 4,
            ..ahead
        };
        assert_eq!(
            words(ahead).await,
            "before it over all queues: 7 jobs in 1 queue of higher priority, 3 jobs in 2 queues of the same priority, \
             4 jobs of 1 account or label in its queue and 1 job of its own account; queues and accounts take turns"
        );
    }

    #[tokio::test]
    async fn jobs_that_are_not_in_memory_are_counted_in_the_store() {
        let (_data, flows) = flows().await;
        for (id, priority) in [(1, 0), (2, 5), (3, 0), (4, 0), (5, -1)] {
            let job = JobState {
                priority,
                ..state(id)
            };
            store_job(&flows, job).await;
        }
        let others = JobState {
            account: "bob".to_owned(),
            ..state(6)
        };
        store_job(&flows, others).await;
        flows.ctx.store.refresh().await.unwrap();
        let seen = before(&flows.views, &state(4), &Ahead::default()).await;
        assert_eq!((seen.own_jobs, seen.exact), (3, false));
        assert!(seen.words.contains("about 3 jobs of its own"), "{seen:?}");
    }
}
