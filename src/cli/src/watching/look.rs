//! One look at the jobs that are watched: how many there are of each kind, which run, and which failed last. Owns the
//! cost of a look; shows nothing.

use fairlead_api::{
    JobSummary,
    client::{Client, ClientError, JobQuery},
};
use fairlead_job::{Health, Stage};
use serde::Serialize;
use serde_json::Value;

use crate::{
    context::Context,
    exit::Failure,
    selecting::{MATCHES_MAX, Selector, failures, held_stages},
};

/// Maximum number of running jobs that one update reads. The others are only counted.
const HELD_MAX: u32 = 200;
/// Maximum number of failed jobs that one update reads, newest first.
const FAILED_MAX: u32 = 50;
/// Maximum number of ids on one command line. Each needs a request in every update.
const IDS_MAX: usize = 100;

/// Number of jobs of each kind. The field names are part of the CLI's interface for programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) jobs: u64,
    pub(crate) waiting: u64,
    pub(crate) running: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    /// Jobs in a stage that this version does not know.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) elsewhere: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Counts {
    pub(crate) fn ended(&self) -> u64 {
        self.jobs
            .saturating_sub(self.waiting)
            .saturating_sub(self.running)
            .saturating_sub(self.elsewhere)
    }

    fn add(&mut self, job: &JobSummary) {
        self.jobs += 1;
        let count = match job.job_stage.known() {
            _ if job.is_over() && job.job_health == Health::Success => &mut self.succeeded,
            _ if job.is_over() && has_failed(job) => &mut self.failed,
            _ if job.is_over() => &mut self.cancelled,
            Some(Stage::Submit) => &mut self.waiting,
            Some(_) => &mut self.running,
            None => &mut self.elsewhere,
        };
        *count += 1;
    }
}

fn has_failed(job: &JobSummary) -> bool {
    let health = job.job_health.known();
    health.map_or(job.is_over(), |health| health.cause().is_some())
}

/// Result of one update.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    pub(crate) counts: Counts,
    /// Jobs that testboxes have, the longest first, at most [`HELD_MAX`].
    pub(crate) running: Vec<JobSummary>,
    /// Failed jobs, latest end first.
    pub(crate) failed: Vec<JobSummary>,
    /// Number of requests of the update.
    pub(crate) requests: u32,
}

impl Look {
    fn sorted(mut self) -> Self {
        let began = |job: &JobSummary| job.running_ms.or(job.dispatch_ms).unwrap_or(job.submit_ms);
        self.running
            .sort_by_key(|job| (began(job), job.job_id.clone()));
        self.failed
            .sort_by_key(|job| std::cmp::Reverse((job.end_ms, job.job_id.clone())));
        self
    }

    /// Returns true if there are jobs and all of them have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.counts.jobs > 0 && self.counts.ended() == self.counts.jobs
    }

    fn take(&mut self, job: JobSummary) {
        self.counts.add(&job);
        if job.job_stage.known().is_some_and(Stage::is_held) {
            self.running.push(job);
        } else if has_failed(&job) {
            self.failed.push(job);
        }
    }
}

/// Jobs that are watched.
pub(crate) struct Watched<'a> {
    selector: &'a Selector,
    /// Jobs that are named by id.
    ids: Vec<String>,
    query: Option<JobQuery>,
    /// True if the scheduler can count for these filters.
    is_counted: bool,
}

impl<'a> Watched<'a> {
    /// Parses the command line. Words that are neither numbers nor parameters are submits.
    pub(crate) async fn of(
        selector: &'a Selector,
        context: &Context,
        client: &Client,
    ) -> Result<Self, Failure> {
        if !selector.is_empty() {
            selector.check()?;
        }
        let words = selector.ids();
        let is_job = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
        let (ids, submits): (Vec<_>, Vec<_>) = words.into_iter().partition(is_job);
        if ids.len() > IDS_MAX {
            return Err(Failure::usage(
                format!("{} ids are given; at most {IDS_MAX} are watched", ids.len()),
                "name a submit or use filters such as --submit-id",
            ));
        }
        let mut query = selector.query(context, client).await?;
        if query.account.is_empty() {
            query.account.extend(context.flags.account.clone());
        }
        let has_query = ids.is_empty() || !submits.is_empty();
        query.submit_id.extend(submits);
        query.parts = Some("no_shards".to_owned());
        Ok(Self {
            selector,
            ids,
            is_counted: query.stage.is_empty() && query.health.is_empty() && !query.with_kv,
            query: has_query.then_some(query),
        })
    }

    /// Returns true if no other jobs can appear.
    pub(crate) fn is_closed(&self) -> bool {
        let of_submit =
            |query: &JobQuery| !query.submit_id.is_empty() || !query.group_id.is_empty();
        self.query.as_ref().is_none_or(of_submit)
    }

    /// Updates once. The future may be dropped half-way and called again.
    pub(crate) async fn look(&self, client: &Client) -> Result<Look, Failure> {
        let mut look = Look::default();
        for id in &self.ids {
            let mut job = client.job(id).await?;
            // In a list this field is the progress, here the requested number.
            job.shift_remove("shards");
            look.requests += 1;
            if let Ok(job) = serde_json::from_value(Value::Object(job)) {
                look.take(job);
            }
        }
        match &self.query {
            None => {}
            Some(query) if self.is_counted => self.count(query, client, &mut look).await?,
            Some(query) => {
                let query = JobQuery {
                    order: Some("newest".to_owned()),
                    ..query.clone()
                };
                let found = self.selector.collect(client, query, MATCHES_MAX).await?;
                look.requests += u32::try_from(found.jobs.len() / 500 + 1).unwrap_or(1);
                found.jobs.into_iter().for_each(|job| look.take(job));
            }
        }
        Ok(look.sorted())
    }

    /// Counts on the scheduler. A job that starts between two requests is counted twice rather than not at all.
    async fn count(
        &self,
        query: &JobQuery,
        client: &Client,
        look: &mut Look,
    ) -> Result<(), ClientError> {
        let with = |stage: Vec<String>, health: Vec<String>, limit: u32| JobQuery {
            stage,
            health,
            order: Some("newest".to_owned()),
            limit: Some(limit),
            ..query.clone()
        };
        let counts = &mut look.counts;
        let waiting = vec![Stage::Submit.to_string()];
        counts.waiting += client.jobs(&with(waiting, Vec::new(), 0)).await?.total;
        let held = with(held_stages(), Vec::new(), HELD_MAX);
        let running = client.jobs(&held).await?;
        counts.running += running.total;
        let good = vec![Health::Success.to_string()];
        let good = client.jobs(&with(Vec::new(), good, 0)).await?.total;
        let failed = with(Vec::new(), failures(), FAILED_MAX);
        let failed = client.jobs(&failed).await?;
        let all = client.jobs(&with(Vec::new(), Vec::new(), 0)).await?.total;
        counts.succeeded += good;
        counts.failed += failed.total;
        counts.jobs += all.max(running.total + good + failed.total);
        counts.cancelled = counts
            .ended()
            .saturating_sub(counts.succeeded)
            .saturating_sub(counts.failed);
        look.requests += 5;
        let has_shards = running.jobs.iter().any(|job| job.shards.is_some());
        look.running.extend(running.jobs);
        look.failed.extend(failed.jobs);
        if has_shards {
            // The hosts are those of the shards.
            let shards = JobQuery {
                parts: Some("only_shards".to_owned()),
                ..held
            };
            look.running.extend(client.jobs(&shards).await?.jobs);
            look.requests += 1;
        }
        Ok(())
    }
}

/// Returns a job for tests.
#[cfg(test)]
pub(crate) fn sample(id: u64, stage: &str, health: &str) -> JobSummary {
    let job = serde_json::json!({
        "job_id": id.to_string(), "job_stage": stage, "job_health": health, "job_data_readiness": "complete",
        "my_account": "alice", "queue": "alice", "priority": 2, "suite": "unixbench", "testbox": "dc",
        "tbox_group": "dc", "attempt": 1, "memory_mb": 16, "submit_ms": 1000, "running_ms": 1000 + id,
        "end_ms": (health != "unknown").then_some(5000 + id), "host": "server-1", "params": "nr_threads=4 mode=process",
    });
    serde_json::from_value(job).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_of_one_kind() {
        let mut look = Look::default();
        for (id, stage, health) in [
            (1, "submit", "unknown"),
            (2, "running", "unknown"),
            (3, "boot", "unknown"),
            (4, "finish", "success"),
            (5, "finish", "fail"),
            (6, "finish", "oom"),
            (7, "cancel", "cancel"),
            (8, "frozen", "unknown"),
        ] {
            look.take(sample(id, stage, health));
        }
        let look = look.sorted();
        let meant = Counts {
            jobs: 8,
            waiting: 1,
            running: 2,
            succeeded: 1,
            failed: 2,
            cancelled: 1,
            elsewhere: 1,
        };
        assert_eq!(look.counts, meant);
        assert_eq!(look.counts.ended(), 4);
        let ids = |jobs: &[JobSummary]| {
            jobs.iter()
                .map(|job| job.job_id.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (ids(&look.running), ids(&look.failed)),
            (
                vec!["2".to_owned(), "3".to_owned()],
                vec!["6".to_owned(), "5".to_owned()],
            )
        );
        assert!(!look.is_over() && !Look::default().is_over());
    }
}
