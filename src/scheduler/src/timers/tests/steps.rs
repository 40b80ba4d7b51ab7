//! Tests of timers while the wall clock steps.

use super::*;

/// A replica whose wall clock can be set.
fn with_clock() -> (tempfile::TempDir, Arc<Flows>, Arc<Pause>) {
    let data = tempfile::tempdir().unwrap();
    let pause = Arc::new(Pause::default());
    let clock = Clock::simulated(START_MS, Arc::clone(&pause));
    let config = Config::embedded(data.path().to_owned());
    let flows = flows_over(embedded(&data), config, clock);
    (data, flows, pause)
}

/// Looks, and ends the runs that came of it.
async fn look_and_end(flows: &Arc<Flows>) {
    look(flows).await;
    for job in jobs(flows).await {
        if !job.state.stage.is_terminal() {
            end(flows, &job).await;
        }
    }
}

async fn ten_minutes(flows: &Arc<Flows>, times: u32) {
    for _ in 0..times {
        step(10 * MIN_MS).await;
        look_and_end(flows).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_a_day_ahead_for_a_while_leaves_no_timer_behind() {
    let day_ms = 24 * 60 * 60_000;
    let (_data, flows, pause) = with_clock();
    submit(&flows, &json!({"every": "10m"})).await;
    ten_minutes(&flows, 1).await;
    for by_ms in [day_ms, -day_ms] {
        let before_ms = flows.ctx.clock.ahead_ms();
        pause.step_wall(by_ms);
        flows.upkeep.look_at_clock(before_ms).await;
        look_and_end(&flows).await;
        ten_minutes(&flows, 1).await;
    }
    ten_minutes(&flows, 1).await;
    // 02:36 on the next day is the latest time that had passed when the clock jumped, 02:56 the one that came by it.
    assert_eq!(
        runs(&flows).await,
        ["02:46", "02:46", "02:56", "03:06", "03:16"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_time_that_comes_again_is_run_once() {
    let (_data, flows, pause) = with_clock();
    submit(&flows, &json!({"cron": "*/10 * * * *"})).await;
    ten_minutes(&flows, 3).await;
    let before = runs(&flows).await;
    assert_eq!(before, ["02:40", "02:50", "03:00"]);
    let before_ms = flows.ctx.clock.ahead_ms();
    pause.step_wall(-25 * 60_000);
    flows.upkeep.look_at_clock(before_ms).await;
    ten_minutes(&flows, 4).await;
    let all = runs(&flows).await;
    assert_eq!(all, ["02:40", "02:50", "03:00", "03:10", "03:20"]);
}

/// Its times stay what they were, though it was made at a time that is to come once more. Seed 4355.
#[tokio::test(start_paused = true)]
async fn a_timer_that_was_made_before_the_clock_was_set_back_keeps_its_times() {
    let (_data, flows, pause) = with_clock();
    submit(&flows, &json!({"every": "10m"})).await;
    ten_minutes(&flows, 1).await;
    let before_ms = flows.ctx.clock.ahead_ms();
    pause.step_wall(-37 * 60_000);
    flows.upkeep.look_at_clock(before_ms).await;
    // It is 02:09 now.
    step(7 * MIN_MS).await;
    look_and_end(&flows).await;
    ten_minutes(&flows, 4).await;
    let all = runs(&flows).await;
    assert_eq!(all, ["02:46", "02:16", "02:26", "02:36", "02:56"]);
}

/// Begins the run of the one timer, and makes no job of it.
async fn begin_only(flows: &Arc<Flows>) {
    let docs = flows.ctx.store.list_docs(DocKind::Timer).await.unwrap();
    let stored: Vec<Stored> = docs.into_iter().filter_map(Stored::of).collect();
    let now_ms = flows.ctx.clock.wall_ms();
    let next = stored
        .iter()
        .map(|stored| {
            flows
                .timers
                .next_of(&stored.timer, &BTreeMap::new(), now_ms)
        })
        .collect();
    assert_eq!(flows.timers.begin(stored, next).await.len(), 1);
}

/// Its run was begun and not made, and the clock was set back behind its time. Seed 5137.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_begun_is_made_before_its_timer_is_paused() {
    let (_data, flows, pause) = with_clock();
    submit(&flows, &json!({"every": "10m"})).await;
    step(10 * MIN_MS).await;
    begin_only(&flows).await;
    pause.step_wall(-37 * 60_000);
    let who = flows.people.accounts.identify(&ann()).unwrap();
    let this = ("ann", "nightly");
    flows.timers.pause_timer(&who, this, true).await.unwrap();
    assert_eq!(runs(&flows).await, ["02:46"]);
}

/// Whoever had begun it could not go on, and the clock was set back behind its time. Seed 1060.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_begun_does_not_wait_for_its_old_time() {
    let (_data, flows, pause) = with_clock();
    submit(&flows, &json!({"every": "10m"})).await;
    step(10 * MIN_MS).await;
    begin_only(&flows).await;
    assert!(runs(&flows).await.is_empty());
    let before_ms = flows.ctx.clock.ahead_ms();
    pause.step_wall(-37 * 60_000);
    flows.upkeep.look_at_clock(before_ms).await;
    assert_eq!(runs(&flows).await, ["02:46"]);
}

/// A clock that jumps to and fro leaves more gaps than are remembered.
#[test]
fn no_time_that_had_its_run_is_forgotten() {
    let every = json!({"every": "10m"});
    let mut timer = Timer {
        when: every.as_object().unwrap().clone(),
        ..Timer::default()
    };
    let schedule = timer.schedule().unwrap();
    let times: Vec<u64> = (1..40).rev().map(|n| 100 * n * MIN_MS).collect();
    for due_ms in &times {
        timer.see_to(&schedule, *due_ms);
        assert!(timer.done.len() <= STRETCHES_MAX);
        for had in times.iter().filter(|had| *had >= due_ms) {
            assert_ne!(timer.next_from(&schedule, had - 1), *had, "{due_ms}");
        }
    }
}

/// What is only read may vanish: the run before may go on.
#[tokio::test(start_paused = true)]
async fn an_end_that_vanishes_begins_no_run_beside_another() {
    let data = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultStore::new(embedded(&data), []));
    let config = Config::embedded(data.path().to_owned());
    let flows = flows_over(Arc::clone(&store) as _, config, clock(START_MS));
    submit(&flows, &json!({"every": "10m"})).await;
    step(10 * MIN_MS).await;
    look(&flows).await;
    let mut vanishing = jobs(&flows).await.remove(0);
    let now_ms = flows.ctx.clock.wall_ms();
    vanishing.state = ended(&vanishing.state, Stage::Finish, Health::Success, now_ms, "");
    vanishing.version.seq_no += 1;
    store.show(Some(vanishing));
    step(10 * MIN_MS).await;
    look(&flows).await;
    store.show(None);
    assert_eq!(jobs(&flows).await.len(), 1, "the first one still waits");
    end(&flows, &jobs(&flows).await[0]).await;
    step(1_000).await;
    look(&flows).await;
    assert_eq!(jobs(&flows).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn clocks_that_jump_are_followed() {
    // 2026-03-27T12:00:00Z; in Berlin the night to the 29th has no half past two.
    let (_data, flows) = replica(1_774_612_800_000);
    let line = json!({"cron": "30 2 * * *", "timezone": "Europe/Berlin", "overlap": "queue"});
    submit(&flows, &line).await;
    for _ in 0..3 * 24 {
        step(60 * MIN_MS).await;
        look(&flows).await;
    }
    assert_eq!(runs(&flows).await, ["01:30", "01:00", "00:30"]);
    assert_eq!(view(&flows).await.missed_runs, 0);
}
