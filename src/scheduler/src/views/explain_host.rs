//! Whether the host of a failed job is at fault: how the same suite fares elsewhere, and other suites there.

use fairlead_api::{Compared, RunCount};
use fairlead_job::{Health, Stage, units::counted};
use fairlead_store::{Group, GroupBy, JobState, Parts, Search, StoreError};

use crate::views::ViewFlow;

/// Jobs that were submitted within so many days are compared.
const DAYS: u32 = 7;
/// A day, ms.
const DAY_MS: u64 = 86_400_000;

/// Compares a job that failed on a host with others: two counts by the store. None: it did not fail, or ran nowhere.
pub(super) async fn compared(
    flow: &ViewFlow,
    state: &JobState,
) -> Result<Option<Compared>, StoreError> {
    let ran = state.stage.is_terminal() && !state.host.is_empty() && state.shards.is_none();
    if !ran || state.health.cause().is_none() {
        return Ok(None);
    }
    let says_something = |health: &&Health| **health == Health::Success || health.cause().is_some();
    let ended = Search {
        stages: Stage::ALL
            .iter()
            .copied()
            .filter(|stage| stage.is_terminal())
            .collect(),
        healths: Health::ALL.iter().filter(says_something).copied().collect(),
        since_ms: Some(
            flow.ctx
                .clock
                .wall_ms()
                .saturating_sub(u64::from(DAYS) * DAY_MS),
        ),
        parts: Parts::NoParents,
        ..Search::default()
    };
    let of_suite = Search {
        suites: vec![state.suite.clone()],
        ..ended.clone()
    };
    let of_host = Search {
        hosts: vec![state.host.clone()],
        ..ended
    };
    let by_host = flow.ctx.store.groups(&of_suite, GroupBy::Host).await?;
    let by_suite = flow.ctx.store.groups(&of_host, GroupBy::Suite).await?;
    let sum = |groups: &[Group], of: &dyn Fn(&str) -> bool| {
        let groups = groups.iter().filter(|group| of(&group.value));
        groups.fold(RunCount::default(), |sum, group| RunCount {
            passed: sum.passed + group.succeeded,
            failed: sum.failed + group.failed(),
        })
    };
    let (host, suite) = (state.host.as_str(), state.suite.as_str());
    let here = sum(&by_host, &|name| name == host);
    let mut compared = Compared {
        days: DAYS,
        suite_elsewhere: sum(&by_host, &|name| name != host && !name.is_empty()),
        // Without the job itself, if the store lists it already.
        suite_here: RunCount {
            failed: here.failed.saturating_sub(1),
            ..here
        },
        others_here: sum(&by_suite, &|name| name != suite),
        words: String::new(),
    };
    compared.words = words(&compared, suite);
    Ok(Some(compared))
}

fn words(compared: &Compared, suite: &str) -> String {
    let Compared {
        days,
        suite_elsewhere: elsewhere,
        suite_here: here,
        others_here: others,
        ..
    } = compared;
    let of = |count: &RunCount| {
        let runs = counted(count.runs(), "run", "runs");
        format!("{} of {runs}", count.passed)
    };
    let facts = format!(
        "in {days} days {} of suite '{suite}' passed on other hosts, {} of it on this host, and {} of other suites on this host",
        of(elsewhere),
        of(here),
        of(others),
    );
    format!("{facts}: {}", conclusion(elsewhere, here, others))
}

/// What the numbers say. Half of the runs decide.
fn conclusion(elsewhere: &RunCount, here: &RunCount, others: &RunCount) -> &'static str {
    let mostly_passed = |count: &RunCount| {
        let runs = count.runs();
        (runs > 0).then(|| count.passed.saturating_mul(2) >= runs)
    };
    match (
        mostly_passed(elsewhere),
        mostly_passed(others),
        mostly_passed(here),
    ) {
        (Some(true), Some(false), _) | (Some(true), None, Some(false)) => "look at the host",
        (Some(false), Some(true), _) => "look at the suite",
        (Some(false), Some(false), _) => "both the host and the suite fail often",
        (Some(true), Some(true), Some(false)) => "only this suite on this host fails often",
        (Some(true), Some(true), _) => "neither the host nor the suite fails often",
        _ => "there are too few other runs to tell",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flows, state, store_job};

    fn ran(id: u64, suite: &str, host: &str, health: Health, at_ms: u64) -> JobState {
        JobState {
            stage: Stage::Finish,
            health,
            ready: false,
            suite: suite.to_owned(),
            host: host.to_owned(),
            submit_ms: at_ms,
            ..state(id)
        }
    }

    #[tokio::test]
    async fn a_host_on_which_everything_fails_is_named() {
        let (_data, flows) = flows().await;
        let now_ms = flows.ctx.clock.wall_ms();
        let job = ran(1, "io", "bad", Health::Fail, now_ms);
        let others = [
            ran(2, "io", "good", Health::Success, now_ms),
            ran(3, "io", "other", Health::Success, now_ms),
            ran(4, "io", "other", Health::Fail, now_ms),
            ran(5, "net", "bad", Health::TimeoutRunning, now_ms),
            ran(6, "net", "bad", Health::Success, now_ms),
            ran(7, "cpu", "bad", Health::Oom, now_ms),
            // Nobody's fault, long ago, or not over.
            ran(8, "cpu", "bad", Health::Terminate, now_ms),
            ran(9, "io", "good", Health::Fail, now_ms - 8 * DAY_MS),
            JobState {
                stage: Stage::Running,
                ..ran(10, "io", "good", Health::Unknown, now_ms)
            },
        ];
        for one in others.into_iter().chain([job.clone()]) {
            store_job(&flows, one).await;
        }
        flows.ctx.store.refresh().await.unwrap();
        let seen = compared(&flows.views, &job)
            .await
            .unwrap()
            .expect("it failed");
        let counts = |count: &RunCount| (count.passed, count.failed);
        assert_eq!(counts(&seen.suite_elsewhere), (2, 1));
        assert_eq!(counts(&seen.suite_here), (0, 0));
        assert_eq!(counts(&seen.others_here), (1, 2));
        assert_eq!(
            seen.words,
            "in 7 days 2 of 3 runs of suite 'io' passed on other hosts, 0 of 0 runs of it on this host, and 1 of 3 runs \
             of other suites on this host: look at the host"
        );
        for health in [Health::Success, Health::Cancel] {
            let job = ran(11, "io", "bad", health, now_ms);
            assert_eq!(compared(&flows.views, &job).await.unwrap(), None);
        }
    }

    #[test]
    fn the_numbers_decide_where_to_look() {
        let count = |(passed, failed)| RunCount { passed, failed };
        for (elsewhere, here, others, says) in [
            ((3, 1), (0, 0), (1, 5), "look at the host"),
            ((3, 1), (0, 4), (0, 0), "look at the host"),
            ((0, 4), (0, 0), (6, 1), "look at the suite"),
            (
                (0, 4),
                (0, 0),
                (0, 3),
                "both the host and the suite fail often",
            ),
            (
                (4, 0),
                (0, 3),
                (5, 0),
                "only this suite on this host fails often",
            ),
            (
                (4, 0),
                (2, 0),
                (5, 0),
                "neither the host nor the suite fails often",
            ),
            (
                (0, 0),
                (0, 3),
                (5, 0),
                "there are too few other runs to tell",
            ),
        ] {
            let said = conclusion(&count(elsewhere), &count(here), &count(others));
            assert_eq!(said, says, "{elsewhere:?} {here:?} {others:?}");
        }
    }
}
