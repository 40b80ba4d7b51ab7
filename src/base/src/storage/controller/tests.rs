//! Tests of the controller with a stepped clock.

use std::collections::BTreeMap;

use futures_util::FutureExt;

use super::*;
use crate::{Pause, errors::JobError, lab_clock::Witness};

/// 2026-11-21T02:36:00Z.
const START_MS: u64 = 1_795_228_560_000;

const ROW: Row = Row {
    name: "test",
    by: By::Own,
    keys_max: 100,
    width: 2,
    batch: 1,
    again_ms: 2_000,
    others_later_ms: 500,
};
static PLAIN: Row = ROW;
static ONE_BY_ONE: Row = Row { width: 1, ..ROW };
static BATCHES: Row = Row {
    width: 1,
    batch: 3,
    ..ROW
};
static WALL: Row = Row {
    by: By::Wall,
    ..ROW
};

type Key = &'static str;

/// A flow whose looks are noted, and held or refused as a test says.
struct Flow {
    clock: Clock,
    /// Begin of each look, ms from the start, and its keys.
    looks: Mutex<Vec<(u64, Vec<Key>)>>,
    /// Number of times that looks at these keys fail.
    failing: Mutex<BTreeMap<Key, usize>>,
    /// Keys whose looks wait until they are notified.
    held: BTreeMap<Key, Notify>,
}

impl Flow {
    async fn look(self: Arc<Self>, due: Vec<(Key, ())>) -> Result<(), Refusal> {
        let keys: Vec<Key> = due.into_iter().map(|(key, ())| key).collect();
        let at_ms = self.clock.now().0 - START_MS;
        self.looks.lock().push((at_ms, keys.clone()));
        for key in keys {
            if let Some(go_on) = self.held.get(key) {
                go_on.notified().await;
            }
            if let Some(left) = self.failing.lock().get_mut(key).filter(|left| **left > 0) {
                *left -= 1;
                return Err(JobError::NoToken.into());
            }
        }
        Ok(())
    }
}

/// A controller that runs, and its flow.
struct Stage {
    flow: Arc<Flow>,
    controller: Arc<Controller<Key>>,
    tasks: Tasks,
    metrics: Metrics,
    wall: Arc<Pause>,
}

impl Stage {
    fn new(row: &'static Row, held: &[Key]) -> Self {
        let (wall, metrics) = (Arc::new(Pause::default()), Metrics::default());
        let clock = Clock::simulated(START_MS, Arc::clone(&wall));
        let controller = Controller::new(row, &clock, &metrics);
        let flow = Flow {
            clock,
            looks: Mutex::default(),
            failing: Mutex::default(),
            held: held.iter().map(|key| (*key, Notify::new())).collect(),
        };
        Self {
            flow: Arc::new(flow),
            controller,
            tasks: Tasks::default(),
            metrics,
            wall,
        }
    }

    /// Creates a running stage.
    fn running(row: &'static Row, held: &[Key]) -> Self {
        let stage = Self::new(row, held);
        stage
            .controller
            .start(&stage.tasks, &stage.flow, Flow::look);
        stage
    }

    /// Schedules a key this long after the start.
    fn due_after(&self, key: Key, after_ms: u64) {
        self.controller.look_at(key, START_MS + after_ms, ());
    }

    /// Advances the time.
    async fn step(&self, ms: u64) {
        self.flow.clock.sleep(Duration::from_millis(ms)).await;
    }

    fn looks(&self) -> Vec<(u64, Vec<Key>)> {
        self.flow.looks.lock().clone()
    }

    /// Returns the keys of all looks, in their order.
    fn keys(&self) -> Vec<Key> {
        let looks = self.looks().into_iter();
        looks.flat_map(|(_, keys)| keys).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_due_is_looked_at_by_time_and_not_before() {
    let stage = Stage::running(&ONE_BY_ONE, &[]);
    for (key, after_ms) in [("c", 900), ("a", 300), ("b", 600)] {
        stage.due_after(key, after_ms);
    }
    stage.step(250).await;
    assert_eq!(stage.looks(), []);
    stage.step(5_000).await;
    let wanted = [(300, vec!["a"]), (600, vec!["b"]), (900, vec!["c"])];
    assert_eq!(stage.looks(), wanted);
}

#[tokio::test(start_paused = true)]
async fn a_replica_looks_later_by_its_rank() {
    assert_eq!(PLAIN.later_ms(0), 0);
    assert_eq!(PLAIN.later_ms(usize::MAX), u64::MAX);
    let stage = Stage::running(&PLAIN, &[]);
    stage.due_after("third", 200 + PLAIN.later_ms(2));
    stage.due_after("first", 200 + PLAIN.later_ms(0));
    stage.step(3_000).await;
    assert_eq!(
        stage.looks(),
        [(200, vec!["first"]), (1_200, vec!["third"])]
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_looks_go_on_at_one_time_than_the_width() {
    let all = ["a", "b", "c"];
    let stage = Stage::running(&PLAIN, &all);
    for key in all {
        stage.controller.look_now(key, ());
    }
    stage.step(5_000).await;
    assert_eq!(stage.keys(), ["a", "b"]);
    let text = stage.metrics.text(None, true);
    assert!(text.contains("fairlead_looks_due{controller=\"test\"} 1"));
    stage.flow.held["b"].notify_one();
    stage.step(1).await;
    assert_eq!(stage.keys(), all);
}

#[tokio::test(start_paused = true)]
async fn a_batch_takes_what_is_due_together() {
    let stage = Stage::running(&BATCHES, &[]);
    for key in ["a", "b", "c", "d"] {
        stage.controller.look_now(key, ());
    }
    stage.step(1).await;
    assert_eq!(stage.looks(), [(0, vec!["a", "b", "c"]), (0, vec!["d"])]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_look_is_counted_and_repeated_a_little_later() {
    let stage = Stage::running(&PLAIN, &[]);
    stage.flow.failing.lock().insert("a", 2);
    stage.controller.look_now("a", ());
    stage.step(60_000).await;
    let times: Vec<u64> = stage.looks().iter().map(|(at_ms, _)| *at_ms).collect();
    assert_eq!(times, [0, 2_000, 4_000]);
    let text = stage.metrics.text(None, true);
    for line in [
        "fairlead_looks_total{controller=\"test\"} 3",
        "fairlead_looks_failed_total{controller=\"test\"} 2",
        "fairlead_looks_due{controller=\"test\"} 0",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_becomes_due_while_it_is_looked_at_is_looked_at_once_more() {
    let stage = Stage::running(&PLAIN, &["a"]);
    stage.controller.look_now("a", ());
    stage.step(500).await;
    stage.controller.look_now("a", ());
    stage.controller.look_now("b", ());
    stage.step(5_000).await;
    assert_eq!(stage.keys(), ["a", "b"], "one look at a time");
    stage.flow.held["a"].notify_one();
    stage.step(1).await;
    assert_eq!(stage.keys(), ["a", "b", "a"]);
    // Nothing came during the second look.
    stage.flow.held["a"].notify_one();
    stage.step(60_000).await;
    assert_eq!(stage.keys().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_a_look_fails_is_no_second_look() {
    let stage = Stage::running(&PLAIN, &["a"]);
    stage.flow.failing.lock().insert("a", 1);
    stage.controller.look_now("a", ());
    stage.step(500).await;
    stage.due_after("a", 60_000);
    stage.flow.held["a"].notify_one();
    stage.flow.held["a"].notify_one();
    stage.step(30_000).await;
    let times: Vec<u64> = stage.looks().iter().map(|(at_ms, _)| *at_ms).collect();
    assert_eq!(times, [0, 2_500], "the sooner time counts");
}

#[tokio::test(start_paused = true)]
async fn draining_ends_looks_that_began_and_begins_no_other() {
    let stage = Stage::running(&PLAIN, &["a"]);
    stage.controller.look_now("a", ());
    stage.step(1).await;
    stage.tasks.draining.cancel();
    stage.controller.look_now("b", ());
    stage.step(5_000).await;
    assert_eq!(stage.keys(), ["a"]);
    let mut finish = Box::pin(stage.tasks.finish());
    assert!((&mut finish).now_or_never().is_none(), "a look goes on");
    stage.flow.held["a"].notify_one();
    finish.await;
    assert_eq!(stage.keys(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_breaks_off_is_repeated() {
    let stage = Stage::new(&PLAIN, &["a"]);
    let controller = &stage.controller;
    controller.look_now("a", ());
    // The waiting caller hangs up.
    let look = controller.look_at_due(u64::MAX, &stage.flow, Flow::look);
    assert!(look.now_or_never().is_none());
    assert_eq!(controller.due(START_MS + 1_999), []);
    assert_eq!(controller.due(START_MS + 2_000), [("a", ())]);
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_all_looks_hears_of_a_failure() {
    let stage = Stage::new(&PLAIN, &[]);
    stage.flow.failing.lock().insert("b", 1);
    for (key, after_ms) in [("a", 0), ("b", 10_000), ("c", 20_000)] {
        stage.due_after(key, after_ms);
    }
    let all = || {
        stage
            .controller
            .look_at_due(u64::MAX, &stage.flow, Flow::look)
    };
    assert_eq!(all().await, Err(JobError::NoToken.into()));
    assert_eq!(stage.keys(), ["a", "b", "c"]);
    assert_eq!(all().await, Ok(()));
    assert_eq!(stage.keys(), ["a", "b", "c", "b"]);
}

#[tokio::test(start_paused = true)]
async fn times_of_the_wall_clock_follow_its_steps() {
    const HOUR_MS: u64 = 3_600_000;
    let stage = Stage::running(&WALL, &[]);
    stage.due_after("a", HOUR_MS);
    stage.step(5_000).await;
    assert_eq!(stage.looks(), []);
    stage.wall.step_wall(3_600_000);
    stage.step(CLOCK_LOOK_MS).await;
    assert_eq!(stage.keys(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_flow_rests_while_its_wall_clock_is_off() {
    let stage = Stage::running(&WALL, &[]);
    let compare = |others_ms: i64| {
        let other = Witness {
            least_ms: others_ms,
            most_ms: others_ms,
        };
        stage.flow.clock.compare(&[other; 3]);
    };
    compare(60_000);
    stage.controller.look_now("a", ());
    stage.step(30_000).await;
    assert_eq!(stage.looks(), []);
    compare(0);
    stage.step(2_000).await;
    assert_eq!(stage.keys(), ["a"]);
}
