//! Which jobs and hosts an action touches, and why others are left out.

use std::sync::Arc;

use fairlead_api::{BulkAction, ErrorCode, PreviewFailure, PreviewItem};
use fairlead_job::{JobId, Stage};
use fairlead_store::{JobState, Parts, Search, SearchOrder};

use crate::bulk::BulkFlow;
use fairlead_base::errors::{JobError, Refusal, excerpt};
use fairlead_known::accounts::Who;
use fairlead_lifecycle::{hold::check_changeable, shards::check_whole};

/// Most jobs or hosts of one action.
pub(crate) const TARGETS_MAX: usize = 10_000;
/// Jobs of one page of a search.
const PAGE: u32 = 1_000;

/// What an action touches.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) items: Vec<PreviewItem>,
    pub(super) left_out: Vec<PreviewFailure>,
}

impl Targets {
    pub(super) fn take(&mut self, id: &str, what: Result<String, String>) {
        let id = id.to_owned();
        match what {
            Ok(what) => self.items.push(PreviewItem { id, what }),
            Err(why) => self.left_out.push(PreviewFailure { id, why }),
        }
    }
}

fn too_many(many: u64) -> Refusal {
    Refusal::new(
        ErrorCode::BadField,
        format!("the action would touch {many}; the limit is {TARGETS_MAX}"),
        "narrow the filter, for example by submit_id",
    )
}

impl BulkFlow {
    /// The jobs that were named or that a filter finds.
    pub(super) async fn job_targets(
        self: &Arc<Self>,
        who: &Who,
        action: BulkAction,
        named: &[String],
        filter: Option<Search>,
    ) -> Result<Targets, Refusal> {
        let mut targets = Targets::default();
        let Some(search) = filter else {
            if named.is_empty() {
                let hint = r#"{"action": "cancel", "jobs": ["…"]}, or a filter"#;
                return Err(Refusal::new(
                    ErrorCode::BadField,
                    "jobs: none is named",
                    hint,
                ));
            }
            if named.len() > TARGETS_MAX {
                return Err(too_many(u64::try_from(named.len()).unwrap_or(u64::MAX)));
            }
            self.named_jobs(who, action, named, &mut targets).await?;
            return Ok(targets);
        };
        let mut search = narrowed(action, search);
        // What was just submitted is to be found, too.
        self.ctx.store.refresh().await?;
        loop {
            let page = self.ctx.store.search(&search).await?;
            if page.total > u64::try_from(TARGETS_MAX).unwrap_or(u64::MAX) {
                return Err(too_many(page.total));
            }
            search.after = page.jobs.last().map(|job| job.state.job_id);
            for job in &page.jobs {
                let id = job.state.job_id.to_string();
                targets.take(&id, fits(who, action, &job.state));
            }
            if !page.more {
                return Ok(targets);
            }
        }
    }

    async fn named_jobs(
        &self,
        who: &Who,
        action: BulkAction,
        named: &[String],
        targets: &mut Targets,
    ) -> Result<(), Refusal> {
        for named in named.chunks(1_000) {
            let ids: Vec<JobId> = named.iter().filter_map(|text| text.parse().ok()).collect();
            let mut found = self.ctx.store.get(&ids).await?.into_iter();
            for text in named {
                let fit = match text.parse::<JobId>() {
                    Err(error) => Err(format!("'{}' is no job id: {error}", excerpt(text))),
                    Ok(id) => match found.next().flatten() {
                        Some(job) => fits(who, action, &job.state),
                        None => Err(JobError::Unknown(id).to_string()),
                    },
                };
                targets.take(text, fit);
            }
        }
        Ok(())
    }

    /// The hosts that were named.
    pub(super) async fn host_targets(
        &self,
        action: BulkAction,
        named: &[String],
    ) -> Result<Targets, Refusal> {
        if !(1..=TARGETS_MAX).contains(&named.len()) {
            let message = format!(
                "hosts: {} are named; 1 to {TARGETS_MAX} can be",
                named.len()
            );
            return Err(Refusal::new(
                ErrorCode::BadField,
                message,
                r#""hosts": ["…"]"#,
            ));
        }
        let mut targets = Targets::default();
        for name in named {
            let fit = match self.hosts.know_host(name).await {
                Err(refusal) => Err(refusal.to_string()),
                Ok(()) => self.host_fits(action, name),
            };
            targets.take(name, fit);
        }
        Ok(targets)
    }

    fn host_fits(&self, action: BulkAction, name: &str) -> Result<String, String> {
        let jobs = self.jobs.live.ids_of_host(name).len();
        let closed = self.lab.cordons.of(name);
        let reserved = self.placement.reserved(name);
        match action {
            BulkAction::Uncordon if closed.is_none() => Err("it is not closed".to_owned()),
            BulkAction::Unreserve if reserved.is_none() => Err("it is not reserved".to_owned()),
            _ => Ok(match (jobs, closed) {
                (0, None) => "open, without a job".to_owned(),
                (jobs, None) => format!("open, with {jobs} jobs"),
                (jobs, Some(closed)) => format!("{}, with {jobs} jobs", closed.state(jobs)),
            }),
        }
    }
}

/// A search for those that the action is for, oldest first; whoever asks for certain stages gets those.
fn narrowed(action: BulkAction, search: Search) -> Search {
    let stages = match action {
        BulkAction::Terminate => Stage::ALL
            .iter()
            .copied()
            .filter(|it| it.is_held())
            .collect(),
        BulkAction::Rerun => Stage::ALL
            .iter()
            .copied()
            .filter(|it| it.is_terminal())
            .collect(),
        _ => vec![Stage::Submit],
    };
    Search {
        stages: if search.stages.is_empty() {
            stages
        } else {
            search.stages
        },
        // A shard goes with its parent.
        parts: Parts::NoShards,
        order: SearchOrder::OldestFirst,
        after: None,
        limit: PAGE,
        ..search
    }
}

/// What a job is, or why nothing can be done to it.
fn fits(who: &Who, action: BulkAction, state: &JobState) -> Result<String, String> {
    let words = |refusal: JobError| refusal.to_string();
    who.check_owns(state).map_err(words)?;
    let (id, stage) = (state.job_id, state.stage);
    match action {
        BulkAction::Terminate => {
            check_whole(state).map_err(words)?;
            if !stage.is_held() {
                return Err(words(JobError::NotRunning { id, stage }));
            }
        }
        BulkAction::Rerun => {
            if !stage.is_terminal() {
                return Err(format!(
                    "it is in stage {stage}; only jobs that have ended run again"
                ));
            }
        }
        BulkAction::Cancel => {
            check_whole(state).map_err(words)?;
            if stage != Stage::Submit {
                return Err(words(JobError::NotWaiting { id, stage }));
            }
        }
        BulkAction::Release if state.held_by.is_empty() => {
            return Err("it is not held".to_owned());
        }
        _ => check_changeable(state).map_err(words)?,
    }
    let suite = &state.suite;
    Ok(match stage {
        Stage::Submit => format!(
            "{suite}, waits in queue {} at priority {}",
            state.queue, state.priority
        ),
        _ if stage.is_terminal() => format!("{suite}, ended: {}", state.health),
        _ => format!("{suite}, {stage} on {}", state.host),
    })
}
