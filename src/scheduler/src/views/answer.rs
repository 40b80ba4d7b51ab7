//! The answer of a job: what came of it, and of each of its shards.

use fairlead_api::{CaseTotals, JobAnswer, ShardAnswer, ShardCounts};
use fairlead_job::{JobId, Stage};
use fairlead_store::{CaseCounts, JobState, StoredJob};

use crate::views::ViewFlow;
use fairlead_base::errors::Refusal;
use fairlead_lifecycle::{
    fields::happened,
    shards::{has_failed, is_nobodys},
};

/// The answer of a job, from the store in real time.
pub(crate) async fn answer_of(flow: &ViewFlow, id: JobId) -> Result<JobAnswer, Refusal> {
    let state = flow.jobs.shown_job(id).await?.state;
    let mut answer = whole(&state);
    let Some(sharding) = &state.shards else {
        return Ok(answer);
    };
    let shards = if sharding.released_ms == 0 || sharding.is_unplanned() {
        vec![None; usize::from(sharding.count)]
    } else {
        let (parent, shards) = flow.jobs.read_shards(id, sharding.count).await?;
        answer = whole(&parent.state);
        shards
    };
    let mut counts = ShardCounts {
        count: u16::try_from(shards.len()).unwrap_or(u16::MAX),
        ..ShardCounts::default()
    };
    let mut cases = CaseCounts::default();
    for (n, shard) in (1..).zip(shards) {
        let is_empty = shard
            .as_ref()
            .is_some_and(|it| is_nobodys(&state, &it.state));
        if is_empty {
            counts.count = counts.count.saturating_sub(1);
            continue;
        }
        if let Some(shard) = &shard {
            count(&mut counts, &shard.state);
            cases.add(&shard.state.cases.as_deref().cloned().unwrap_or_default());
        }
        answer.parts.push(part(id, n, shard));
    }
    if !answer.over {
        answer.cases = Some(cases).filter(|cases| !cases.is_empty()).map(totals);
        if counts.has_begun() {
            answer.job_stage = Stage::Running.into();
        }
    }
    answer.shards = Some(counts);
    Ok(answer)
}

fn count(counts: &mut ShardCounts, shard: &JobState) {
    counts.running += u16::from(shard.stage.is_held());
    counts.over += u16::from(shard.stage.is_terminal());
    counts.failed += u16::from(has_failed(shard));
    counts.reused += u16::from(shard.reused_from.is_some());
}

fn whole(state: &JobState) -> JobAnswer {
    JobAnswer {
        job_id: state.job_id.to_string(),
        over: state.stage.is_terminal(),
        job_stage: state.stage.into(),
        job_health: state.health.into(),
        reason: state.reason.clone(),
        reused_from: from(state),
        suite: state.suite.clone(),
        my_account: state.account.clone(),
        submit_ms: state.submit_ms,
        end_ms: happened(state.end_ms),
        cases: state.cases.as_deref().cloned().map(totals),
        group: state
            .shards
            .as_ref()
            .map_or_else(String::new, |shards| shards.group.clone()),
        open: !state.stage.is_terminal() && state.shards.as_ref().is_some_and(|it| it.is_open()),
        shards: None,
        parts: Vec::new(),
        result_root: state.result_root.clone(),
    }
}

/// The job whose result it has; empty: it runs or ran itself.
fn from(state: &JobState) -> String {
    let from = state.reused_from;
    from.map_or_else(String::new, |from| from.to_string())
}

fn part(parent: JobId, n: u16, shard: Option<StoredJob>) -> ShardAnswer {
    let blank = ShardAnswer {
        shard: n,
        job_id: parent.behind(n).to_string(),
        attempt: 1,
        ..ShardAnswer::default()
    };
    let Some(StoredJob { state, .. }) = shard else {
        return blank;
    };
    ShardAnswer {
        job_stage: state.stage.into(),
        job_health: state.health.into(),
        reused_from: from(&state),
        attempt: state.attempt,
        host: state.host,
        reason: state.reason,
        cases: state.cases.map(|cases| totals(*cases)),
        result_root: state.result_root,
        ..blank
    }
}

fn totals(cases: CaseCounts) -> CaseTotals {
    CaseTotals {
        passed: cases.passed,
        failed: cases.failed,
        skipped: cases.skipped,
        first_failures: cases.first_failures,
    }
}
