//! Deletes old jobs, one month at a time (`--keep-months`, or what an admin set for the lab).
//!
//! A month takes its results and logs along. Any replica does it, and a repeat does no harm. For a clock that is far ahead, all ended jobs are old. So at most
//! one month per hour is deleted, and the replica logs it.

use std::{sync::Arc, time::Duration};

use fairlead_job::JobId;
use serde_json::json;

use crate::upkeep::UpkeepFlow;
use fairlead_base::storage::small_doc::DocError;

/// How often a month is looked for.
const EVERY: Duration = Duration::from_hours(1);
const MONTHS: u64 = 12;
/// Years have two digits.
const YEARS: u64 = 100;

/// The first id of the month so many before that of `now_s`, UTC Unix time: jobs of those before it are old. `None`:
/// there is none in this century.
fn oldest_kept(now_s: u64, keep_months: u32) -> Option<JobId> {
    let this: u64 = JobId::first_of(now_s).month().parse().ok()?;
    let months = this / YEARS * MONTHS + this % YEARS - 1;
    let oldest = months.checked_sub(u64::from(keep_months))?;
    JobId::first_of_month(&format!("{:02}{:02}", oldest / MONTHS, oldest % MONTHS + 1))
}

impl UpkeepFlow {
    /// Drops old months until the replica stops.
    pub(crate) async fn drop_old_months(self: Arc<Self>) {
        loop {
            if let Err(error) = self.drop_an_old_month().await {
                tracing::error!(%error, "old jobs could not be deleted");
            }
            let pause = self.ctx.tasks.until_draining(self.ctx.clock.rest(EVERY));
            if pause.await.is_none() {
                return;
            }
        }
    }

    async fn drop_an_old_month(&self) -> Result<(), DocError> {
        let keep_months = self.people.keep_months().await?;
        if keep_months == 0 {
            return Ok(());
        }
        let lacks = self.ctx.store.lacks_to_drop().await?;
        self.people.may_drop(lacks.clone());
        if let Some(lacks) = lacks {
            tracing::error!(
                keep_months,
                lacks,
                "old jobs are not deleted: the login of Elasticsearch lacks a right (hint: give it that, or keep jobs for ever: --keep-months 0)"
            );
            return Ok(());
        }
        let Some(oldest) = oldest_kept(self.ctx.clock.wall_s(), keep_months) else {
            return Ok(());
        };
        for old in self.ctx.store.drop_oldest(oldest).await? {
            let (month, unfinished) = (&old.month, old.unfinished);
            if unfinished == 0 {
                let detail = json!({ "keep_months": keep_months });
                self.ctx
                    .audit(&self.ctx.config.replica, "store.drop_month", month, detail);
            } else {
                tracing::warn!(
                    month,
                    unfinished,
                    "an old month is kept because some of its jobs have not ended"
                );
            }
        }
        match self.files.remove_files_of_dropped(oldest).await {
            Ok(0) => {}
            Ok(jobs) => tracing::info!(jobs, "results and logs of dropped jobs were removed"),
            Err(error) => {
                tracing::warn!(%error, "results of dropped jobs could not all be removed; the next hour tries again");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use fairlead_job::{Health, Stage};
    use fairlead_store::JobState;
    use futures_util::stream;

    use super::*;
    use crate::{
        Clock, Config, FilesIn,
        files::read::Wanted,
        testing::{embedded, flows_over, state, store_job},
    };
    use fairlead_base::errors::Refusal;
    use fairlead_lifecycle::{after_report::Speaker, attempt::ended};

    #[test]
    fn whole_months_are_kept() {
        // 2026-11-21T02:36:11Z
        let kept = |months| oldest_kept(1_795_228_571, months).map(JobId::month);
        assert_eq!(kept(0).as_deref(), Some("2611"));
        assert_eq!(kept(1).as_deref(), Some("2610"));
        assert_eq!(kept(11).as_deref(), Some("2512"));
        assert_eq!(kept(26 * 12 + 10).as_deref(), Some("0001"));
        assert_eq!(kept(26 * 12 + 11), None);
    }

    #[tokio::test]
    async fn a_dropped_month_takes_its_results_along_wherever_they_lie() {
        for files_in in [FilesIn::DataFolder, FilesIn::Content] {
            let data = tempfile::tempdir().unwrap();
            let config = Config {
                keep_months: 1,
                files_in,
                ..Config::embedded(data.path().to_owned())
            };
            let flows = flows_over(embedded(&data), config, Clock::system());
            let now = JobId::first_of(flows.ctx.clock.wall_s()).behind(1);
            let mut paths = Vec::new();
            for (id, stage) in [
                (JobId::first_of_month("2402").unwrap(), Stage::Finish),
                (JobId::first_of_month("2403").unwrap(), Stage::Running),
                (now, Stage::Running),
            ] {
                let state = JobState {
                    job_id: id,
                    stage: Stage::Running,
                    result_root: format!("/result/s/2024-02-01/dc/{id}"),
                    ..state(1)
                };
                let stored = store_job(&flows, state.clone()).await;
                let speaker = Speaker::Present;
                let path = flows.files.upload_target(
                    &state,
                    speaker,
                    &format!("s/2024-02-01/dc/{id}/a/x"),
                );
                let body = stream::iter([Ok::<_, Refusal>(Bytes::from_static(b"12345"))]);
                let size = flows
                    .files
                    .store_upload((id, speaker), &path.clone().unwrap(), body)
                    .await;
                assert_eq!(size.unwrap(), 5);
                flows
                    .files
                    .append_log(id, 1, 0, Bytes::from_static(b"log"))
                    .await
                    .unwrap();
                if stage.is_terminal() {
                    let end =
                        |state: &JobState| Ok(Some(ended(state, stage, Health::Success, 5, "")));
                    flows.jobs.change(stored.state.job_id, end).await.unwrap();
                }
                paths.push((id, path.unwrap()));
            }
            flows.upkeep.drop_an_old_month().await.unwrap();
            for (n, (id, path)) in paths.iter().enumerate() {
                let found = flows
                    .files
                    .open_result(path.to_str().unwrap(), Wanted::default())
                    .await;
                assert_eq!(found.is_ok(), n > 0, "{files_in:?} {id}: {found:?}");
                let log = flows.files.read_log(*id, 1, 1, 9).await.unwrap();
                assert_eq!(log, if n > 0 { "og" } else { "" }, "{files_in:?} {id}");
            }
        }
    }

    #[tokio::test]
    async fn one_old_month_goes_at_a_time_and_none_with_a_job_that_has_not_ended() {
        let data = tempfile::tempdir().unwrap();
        let config = Config {
            keep_months: 1,
            ..Config::embedded(data.path().to_owned())
        };
        let flows = flows_over(embedded(&data), config, Clock::system());
        let of = |month: &str, stage| {
            let job_id = JobId::first_of_month(month).unwrap();
            JobState {
                job_id,
                stage,
                ..state(1)
            }
        };
        let mut ids = Vec::new();
        for (month, stage) in [
            ("2401", Stage::Submit),
            ("2402", Stage::Finish),
            ("2403", Stage::Finish),
        ] {
            ids.push(store_job(&flows, of(month, stage)).await.state.job_id);
        }
        let keep = async |keep_months| {
            let change = fairlead_api::RetentionChange { keep_months };
            flows.people.set_retention(&change).await.unwrap().in_force
        };
        // What an admin set wins over the flag of the replica.
        assert_eq!(keep(Some(0)).await, 0);
        flows.upkeep.drop_an_old_month().await.unwrap();
        let found = flows.ctx.store.get(&ids).await.unwrap();
        assert!(found.iter().all(Option::is_some));
        assert_eq!(keep(None).await, 1);
        for left in [vec![0, 2], vec![0], vec![0]] {
            flows.upkeep.drop_an_old_month().await.unwrap();
            let found = flows.ctx.store.get(&ids).await.unwrap();
            let there: Vec<usize> = (0..3).filter(|n| found[*n].is_some()).collect();
            assert_eq!(there, left);
        }
    }
}
