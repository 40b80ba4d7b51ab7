//! The outlook of jobs that are not submitted: hosts, what would stand before them, and how long others waited of late.

use std::collections::{BTreeMap, HashSet};

use fairlead_api::{Outlook, RecentWaits};
use fairlead_dispatch::labels;
use fairlead_store::{JobState, StoredJob, Version};

use crate::{
    submission::submit::Submitted,
    views::{
        ViewFlow,
        explain::{Asked, Costs, ask_engine, summary},
        explain_before::before,
    },
};
use fairlead_base::errors::Refusal;
use fairlead_known::{feasibility::Wants, samples::Row};

/// Most kinds of jobs of one dry run that have an outlook.
const KINDS_MAX: usize = 16;

/// Gives the first job of each kind its outlook: what it wants of a host, whose it is, its queue and its priority make
/// the kind.
pub(crate) async fn add_outlooks(
    flow: &ViewFlow,
    submitted: &mut Submitted,
) -> Result<(), Refusal> {
    let waits = flow.samples.waits_by_queue().await.unwrap_or_default();
    let mut kinds = HashSet::new();
    for (item, state) in submitted.items.iter_mut().zip(&submitted.checked) {
        let Some(state) = state.as_deref().filter(|_| kinds.len() < KINDS_MAX) else {
            continue;
        };
        let whose = (state.account.clone(), state.queue.clone(), state.priority);
        if kinds.insert((Wants::of(state), whose)) {
            item.outlook = Some(Box::new(outlook(flow, state, &waits).await?));
        }
    }
    Ok(())
}

async fn outlook(
    flow: &ViewFlow,
    state: &JobState,
    waits: &BTreeMap<String, Row>,
) -> Result<Outlook, Refusal> {
    let job = StoredJob {
        version: Version::default(),
        state: state.clone(),
    };
    let Asked { explained, costs } = ask_engine(flow, &job, Costs::Wanted).await?;
    let queue = labels::queue_of(&state.queue);
    let class = explained.standing.class;
    let mut of_class = Row::default();
    for (name, row) in waits {
        if flow.people.queues.class(name) == class {
            of_class.add(row);
        }
    }
    Ok(Outlook {
        queue: queue.to_owned(),
        class,
        summary: summary(flow, state, &explained),
        hosts_known: explained.hosts_known,
        hosts_able: explained.hosts_able,
        hosts_ready: explained.hosts_ready,
        before: before(flow, state, &explained.ahead).await,
        costs,
        queue_waits: waits.get(queue).map(recent).unwrap_or_default(),
        class_waits: recent(&of_class),
    })
}

fn recent(row: &Row) -> RecentWaits {
    RecentWaits {
        jobs: row.dispatched,
        p50_s: row.wait_s(500),
        p95_s: row.wait_s(950),
    }
}
