//! Follows submitted jobs to their ends through the scheduler's list. Owns the known state of each job; shows nothing
//! itself.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use fairlead_api::{
    HealthWord, JobSummary, StageWord,
    client::{Client, ClientError, JobQuery},
};
use fairlead_job::{DataReadiness, Health, OnShutdown, Stage};

use crate::{clock, exit::Failure};

/// Number of jobs on one page.
const PAGE_JOBS: u32 = 500;
/// Interval between reads of the list, for each of its pages.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Time for results to arrive after the end, before the job counts as done anyway.
const RESULTS_MAX: Duration = Duration::from_secs(30);
/// Time for which jobs may be missing in the list, because searches lag behind writes.
const MISSING_MAX: Duration = Duration::from_mins(1);

/// One job that is followed.
#[derive(Debug, Clone)]
pub(crate) struct Tracked {
    pub(crate) job_id: String,
    pub(crate) file: String,
    pub(crate) params: Vec<(String, String)>,
    /// Result root from the answer of the submit.
    pub(crate) result_root: String,
    /// Action for the job when its run is stopped.
    pub(crate) on_shutdown: OnShutdown,
    /// True if it joined a group. Lists show it only if they include shards.
    pub(crate) is_shard: bool,
    /// True if it belongs to no submit, as the parent of a group. No list of a submit has it.
    pub(crate) is_loose: bool,
    /// Last known state.
    pub(crate) seen: Option<JobSummary>,
    ended: Option<Instant>,
    done: bool,
}

impl Tracked {
    pub(crate) fn new(
        job_id: &str,
        file: &str,
        params: Vec<(String, String)>,
        result_root: &str,
    ) -> Self {
        Self {
            job_id: job_id.to_owned(),
            file: file.to_owned(),
            params,
            result_root: result_root.to_owned(),
            on_shutdown: OnShutdown::default(),
            is_shard: false,
            is_loose: false,
            seen: None,
            ended: None,
            done: false,
        }
    }

    /// Returns a distinguishing label for people: its parameters, or its file if it has none.
    pub(crate) fn label(&self) -> String {
        if self.params.is_empty() {
            return self.file.clone();
        }
        let pairs: Vec<String> = self
            .params
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        pairs.join(" ")
    }

    /// Returns its last known stage. A job that was never seen waits.
    pub(crate) fn stage(&self) -> StageWord {
        let seen = self.seen.as_ref();
        seen.map_or(Stage::Submit.into(), |seen| seen.job_stage.clone())
    }

    /// Returns true if a testbox had it when last seen.
    pub(crate) fn is_held(&self) -> bool {
        self.stage().known().is_some_and(Stage::is_held)
    }

    /// Returns true if it had ended when last seen.
    pub(crate) fn is_over(&self) -> bool {
        self.seen.as_ref().is_some_and(JobSummary::is_over)
    }

    /// Returns true if it has ended and is complete.
    pub(crate) fn done(&self) -> bool {
        self.done
    }

    /// Returns its health, or `unknown`.
    pub(crate) fn health(&self) -> HealthWord {
        let seen = self.seen.as_ref();
        seen.map_or(Health::Unknown.into(), |seen| seen.job_health.clone())
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.done && self.stage() == Stage::Finish && self.health() == Health::Success
    }

    /// Takes in a new state of the job.
    fn see(&mut self, seen: JobSummary, now: Instant) {
        let results_are_in = matches!(
            seen.job_data_readiness.parse(),
            Ok(DataReadiness::Complete
                | DataReadiness::Uploaded
                | DataReadiness::Incomplete
                | DataReadiness::Norun)
        );
        self.seen = Some(seen);
        if self.is_over() {
            let ended = *self.ended.get_or_insert(now);
            self.done = results_are_in || now.duration_since(ended) >= RESULTS_MAX;
        } else {
            (self.ended, self.done) = (None, false);
        }
    }
}

/// All jobs that are followed.
#[derive(Debug)]
pub(crate) struct Follower {
    jobs: Vec<Tracked>,
    places: BTreeMap<String, usize>,
    submit_ids: Vec<String>,
    /// Position in the list before which every job is done.
    from: Option<String>,
    pages: u32,
    missing_since: Option<Instant>,
}

impl Follower {
    pub(crate) fn new(jobs: Vec<Tracked>, submit_ids: Vec<String>) -> Self {
        let places = jobs
            .iter()
            .enumerate()
            .map(|(n, job)| (job.job_id.clone(), n))
            .collect();
        Self {
            jobs,
            places,
            submit_ids,
            from: None,
            pages: 1,
            missing_since: None,
        }
    }

    pub(crate) fn jobs(&self) -> &[Tracked] {
        &self.jobs
    }

    pub(crate) fn done(&self) -> bool {
        self.jobs.iter().all(Tracked::done)
    }

    /// Returns the delay before the next read. Longer lists are read less often.
    pub(crate) fn pause(&self) -> Duration {
        LOOK_EVERY * self.pages.clamp(1, 20)
    }

    /// Reads new states. The future may be dropped half-way and called again.
    pub(crate) async fn look(&mut self, client: &Client) -> Result<(), ClientError> {
        self.look_at_loose(client).await?;
        if self.submit_ids.is_empty() {
            return Ok(());
        }
        let has_shards = self.jobs.iter().any(|job| job.is_shard);
        let mut query = JobQuery {
            parts: has_shards.then(|| "all".to_owned()),
            submit_id: self.submit_ids.clone(),
            order: Some("oldest".to_owned()),
            limit: Some(PAGE_JOBS),
            after: self.from.clone(),
            ..JobQuery::default()
        };
        let mut all_done_so_far = true;
        let mut pages = 0;
        loop {
            let page = client.jobs(&query).await?;
            pages += 1;
            let now = clock::monotonic();
            for seen in page.jobs {
                let Some(job) = self
                    .places
                    .get(&seen.job_id)
                    .and_then(|n| self.jobs.get_mut(*n))
                else {
                    continue;
                };
                job.see(seen, now);
                all_done_so_far &= job.done;
            }
            let Some(next) = page.next else { break };
            if all_done_so_far {
                self.from = Some(next.clone());
            }
            query.after = Some(next);
        }
        self.pages = pages;
        if all_done_so_far && !self.done() {
            // The list has reached its end, but some jobs were on no page yet: start again.
            self.from = None;
        }
        Ok(())
    }

    /// Reads jobs that no list of a submit has, one by one.
    async fn look_at_loose(&mut self, client: &Client) -> Result<(), ClientError> {
        for job in &mut self.jobs {
            if !job.is_loose || job.done {
                continue;
            }
            let mut seen = client.job(&job.job_id).await?;
            // In a list this field is the progress, here the requested number.
            seen.shift_remove("shards");
            if let Ok(seen) = serde_json::from_value(serde_json::Value::Object(seen)) {
                job.see(seen, clock::monotonic());
            }
        }
        Ok(())
    }

    /// Fails if jobs are missing in the list for a long time, although all listed jobs are done.
    pub(crate) fn check_missing(&mut self) -> Result<(), Failure> {
        let missing = self.jobs.iter().filter(|job| job.seen.is_none()).count();
        let all_seen_done = self.jobs.iter().all(|job| job.seen.is_none() || job.done);
        if missing == 0 || !all_seen_done {
            self.missing_since = None;
            return Ok(());
        }
        let now = clock::monotonic();
        if now.duration_since(*self.missing_since.get_or_insert(now)) < MISSING_MAX {
            return Ok(());
        }
        Err(Failure::new(
            crate::exit::REFUSED,
            format!(
                "the scheduler no longer lists {missing} of {} jobs",
                self.jobs.len()
            ),
            "check that this account may see them: `fairlead job ID`",
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_in_a_stage_of_a_newer_scheduler_is_not_taken_for_one_that_waits() {
        let seen = |stage: &str, end_ms: Option<u64>| -> JobSummary {
            let job = json!({
                "job_id": "1", "job_stage": stage, "job_health": "unknown", "job_data_readiness": "complete",
                "my_account": "a", "queue": "a", "priority": 0, "suite": "s", "testbox": "dc", "tbox_group": "dc",
                "attempt": 1, "memory_mb": 16, "submit_ms": 1, "end_ms": end_ms,
            });
            serde_json::from_value(job).unwrap()
        };
        let mut job = Tracked::new("1", "f.yaml", Vec::new(), "");
        assert!(job.stage() == Stage::Submit && !job.is_over());
        job.see(seen("frozen", None), clock::monotonic());
        assert_eq!(job.stage().as_str(), "frozen");
        assert!(job.stage() != Stage::Submit && !job.is_over() && !job.done());
        job.see(seen("abort_frozen", Some(2)), clock::monotonic());
        assert!(job.is_over() && job.done() && !job.succeeded());
    }
}
