//! Lets no replica start whose clock is off from the others' (see `peers/clocks`).

use std::time::Duration;

use crate::upkeep::UpkeepFlow;
use fairlead_base::{clock::utc_text, start_error::StartError};

/// How often a replica that starts looks at clocks until they agree, ms.
const START_LOOK_MS: u64 = 500;
/// How long it looks at most, ms: others hear of it within two beats and tell so in the next.
const START_MS: u64 = 10_000;

impl UpkeepFlow {
    /// Makes sure that the clock of a replica that has just joined is not off; it leaves otherwise. This takes no time where
    /// the last beats of most others are fresh, and [`START_MS`] at most.
    pub(crate) async fn start_with_good_clock(&self) -> Result<(), StartError> {
        let until = self.ctx.clock.now().0.saturating_add(START_MS);
        loop {
            if let Some(by_ms) = self.ctx.clock.off_ms() {
                self.peers.leave().await;
                let own_ms = self.ctx.clock.wall_ms();
                return Err(StartError::ClockOff {
                    own: utc_text(own_ms),
                    others: utc_text(own_ms.saturating_add_signed(by_ms.saturating_neg())),
                    apart_s: by_ms.unsigned_abs() / 1000,
                });
            }
            if !self.peers.may_be_off().await || self.ctx.clock.now().0 >= until {
                return Ok(());
            }
            self.ctx
                .clock
                .sleep(Duration::from_millis(START_LOOK_MS))
                .await;
            self.peers.be_known().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use fairlead_fault_store::FaultStore;
    use fairlead_job::Stage;
    use fairlead_store::{DocKind, ItemError, JobState, NewJob};
    use http_body_util::Full;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::{
        Clock, Config, Pause,
        flows::Flows,
        http,
        testing::{embedded, flows_over, state, store_job},
    };
    use fairlead_lifecycle::alarm::at_alarm;

    const START_MS: u64 = 1_795_228_560_000;
    const HOUR_MS: i64 = 3_600_000;

    /// Replicas of one store, and what steps the clock of each.
    struct Lab {
        _data: tempfile::TempDir,
        store: Arc<FaultStore>,
        began: tokio::time::Instant,
        replicas: Vec<(Arc<Flows>, Arc<Pause>)>,
    }

    impl Lab {
        /// With replicas whose clocks are so far ahead, which know each other.
        async fn of(ahead_ms: &[i64]) -> Self {
            let data = tempfile::tempdir().unwrap();
            let store = Arc::new(FaultStore::new(embedded(&data), []));
            let mut lab = Self {
                _data: data,
                store,
                began: tokio::time::Instant::now(),
                replicas: Vec::new(),
            };
            for by_ms in ahead_ms {
                lab.joins(*by_ms).await;
            }
            lab.beats(3).await;
            lab
        }

        async fn joins(&mut self, by_ms: i64) -> Arc<Flows> {
            let pause = Arc::new(Pause::default());
            let now_ms = START_MS + u64::try_from(self.began.elapsed().as_millis()).unwrap();
            let clock = Clock::simulated(now_ms.saturating_add_signed(by_ms), Arc::clone(&pause));
            let config = Config {
                replica: format!("r{}", self.replicas.len()),
                ..Config::embedded("nowhere".into())
            };
            let flows = flows_over(Arc::clone(&self.store) as _, config, clock);
            flows.peers.join().await.unwrap();
            self.replicas.push((Arc::clone(&flows), pause));
            flows
        }

        /// All beat so often, two seconds apart.
        async fn beats(&self, times: u32) {
            for _ in 0..times {
                for (flows, _) in &self.replicas {
                    flows.peers.be_known().await.unwrap();
                }
                tokio::time::advance(Duration::from_secs(2)).await;
            }
        }

        /// How far the clock of each is off, in whole hours; 0: it is not.
        fn off_h(&self) -> Vec<i64> {
            let clocks = self.replicas.iter().map(|(flows, _)| &flows.ctx.clock);
            let half_ms = |by_ms: i64| by_ms.signum() * HOUR_MS / 2;
            let hours = |by_ms: i64| (by_ms + half_ms(by_ms)) / HOUR_MS;
            clocks
                .map(|clock| clock.off_ms().map_or(0, hours))
                .collect()
        }
    }

    async fn status(flows: &Arc<Flows>, path: &str) -> u16 {
        let service = TowerToHyperService::new(warp::service(http::filter(Arc::clone(flows))));
        let request = hyper::Request::get(path).body(Full::new(Bytes::new()));
        let answer = service.call(request.unwrap()).await;
        answer.unwrap().status().as_u16()
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_steps_is_off_at_once_and_changes_nothing() {
        let lab = Lab::of(&[0, 400, -300]).await;
        assert_eq!(lab.off_h(), [0, 0, 0]);
        let (bad, pause) = &lab.replicas[2];
        // It may wait for half an hour.
        let waits = JobState {
            queue_timeout_s: 1_800,
            submit_ms: START_MS,
            ..state(1)
        };
        let job = store_job(bad, waits).await;
        pause.step_wall(HOUR_MS);
        assert_eq!(lab.off_h(), [0, 0, 1]);
        let now_ms = bad.ctx.clock.wall_ms();
        let rings = |state: &JobState| Ok(at_alarm(state, now_ms));
        assert!(at_alarm(&job.state, now_ms).is_some());
        assert!(bad.jobs.change(job.state.job_id, rings).await.is_err());
        let new = NewJob {
            state: state(2),
            body: fairlead_job::Spec::new().into(),
        };
        let refused = bad.ctx.store.submit(vec![new]).await;
        assert!(matches!(&refused[..], [Err(ItemError::NotTaken { .. })]));
        assert!(bad.ctx.store.drop_oldest(job.state.job_id).await.is_err());
        let stored = lab.replicas[0]
            .0
            .jobs
            .stored_job(job.state.job_id)
            .await
            .unwrap();
        assert_eq!(stored.state.stage, Stage::Submit);
        for (path, expected) in [
            ("/scheduler/v1/health", 503),
            ("/scheduler/v1/jobs", 503),
            ("/scheduler/v1/version", 200),
        ] {
            assert_eq!(status(bad, path).await, expected, "{path}");
        }
        // It goes on telling the others that it is there, and they do not follow it.
        lab.beats(2).await;
        assert_eq!(lab.off_h()[..2], [0, 0]);
        pause.step_wall(-HOUR_MS);
        assert_eq!(lab.off_h(), [0, 0, 0]);
        assert_eq!(status(bad, "/scheduler/v1/health").await, 200);
        bad.jobs.change(job.state.job_id, rings).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_jumps_back_is_off_too() {
        let lab = Lab::of(&[0, 0, 0]).await;
        lab.replicas[0].1.step_wall(-HOUR_MS);
        assert_eq!(lab.off_h(), [-1, 0, 0]);
        lab.beats(2).await;
        assert_eq!(lab.off_h(), [-1, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_gives_up_after_a_minute_and_not_if_its_clock_was_corrected() {
        let lab = Lab::of(&[0, 0, 0]).await;
        let (bad, pause) = &lab.replicas[2];
        let gave_up = || bad.upkeep.gave_up.is_cancelled();
        for (is_off, looks) in [(true, 59), (false, 1), (true, 60)] {
            if is_off {
                pause.step_wall(HOUR_MS);
            } else {
                pause.step_wall(-HOUR_MS);
            }
            let mut since = None;
            for _ in 0..looks {
                since = bad.upkeep.look_whether_off(since).await;
                tokio::time::advance(Duration::from_secs(1)).await;
            }
            assert_eq!(since.is_some(), is_off);
            assert!(!gave_up());
            if looks == 60 {
                bad.upkeep.look_whether_off(since).await;
            }
        }
        assert!(gave_up());
    }

    /// All others stop, one by one: their word stays.
    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_found_wrong_is_not_right_because_the_others_are_gone() {
        let mut lab = Lab::of(&[0, 0, 0]).await;
        lab.replicas[2].1.step_wall(HOUR_MS);
        lab.replicas.drain(..2);
        lab.beats(40).await;
        assert_eq!(lab.off_h(), [1]);
        // And one whose clock is right may go on alone, whatever happens to its clock then.
        let mut lab = Lab::of(&[0, 0, 0]).await;
        lab.replicas.truncate(1);
        lab.beats(40).await;
        lab.replicas[0].1.step_wall(HOUR_MS);
        assert_eq!(lab.off_h(), [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_replicas_the_store_tells_which_clock_is_right() {
        let lab = Lab::of(&[0, HOUR_MS]).await;
        assert_eq!(lab.off_h(), [0, 0]);
        // Nobody knows who is right, and all see that they differ.
        let differs =
            |at: usize| lab.replicas[at].0.ctx.clock.offset_ms().unwrap().abs() > 3_500_000;
        assert!(differs(0) && differs(1));
        for _ in 0..2 {
            let good = &lab.replicas[0].0.ctx.clock;
            lab.store.tells_time(good.wall_ms());
            for (flows, _) in &lab.replicas {
                flows.peers.be_known().await.unwrap();
            }
        }
        assert_eq!(lab.off_h(), [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_does_not_start_with_a_clock_that_is_off() {
        for by_ms in [HOUR_MS, -HOUR_MS] {
            let mut lab = Lab::of(&[0, 0]).await;
            let new = lab.joins(by_ms).await;
            // The others have not heard of it yet.
            assert!(new.peers.may_be_off().await);
            lab.beats(3).await;
            let refused = new.upkeep.start_with_good_clock().await.unwrap_err();
            let text = refused.to_string();
            assert!(text.contains("apart; expected at most 5 s"), "{text}");
            assert!(text.contains("2026-11-21T"), "{text}");
            // Nothing of it is left.
            lab.replicas.truncate(2);
            lab.beats(1).await;
            let runs = new.ctx.store.list_docs(DocKind::Replica).await;
            assert_eq!(runs.unwrap().len(), 4, "two replicas and their numbers");
        }
    }

    /// It wrote a pause that ended an hour later, before the others had answered its first beat.
    #[tokio::test(start_paused = true)]
    async fn a_clock_that_steps_right_after_the_start_is_off_at_once() {
        for by_ms in [HOUR_MS, -HOUR_MS] {
            let mut lab = Lab::of(&[0, 0]).await;
            let new = lab.joins(0).await;
            new.upkeep.start_with_good_clock().await.unwrap();
            new.peers.be_known().await.unwrap();
            lab.replicas[2].1.step_wall(by_ms);
            let off_h = [0, 0, by_ms / HOUR_MS];
            assert_eq!(lab.off_h(), off_h);
            lab.beats(3).await;
            assert_eq!(lab.off_h(), off_h);
            lab.replicas[2].1.step_wall(-by_ms);
            assert_eq!(lab.off_h(), [0, 0, 0]);
        }
    }

    /// It was killed, and its last beats agree with its clock.
    #[tokio::test(start_paused = true)]
    async fn what_a_replica_said_before_is_no_witness_for_it() {
        let mut lab = Lab::of(&[0, 0]).await;
        lab.joins(HOUR_MS).await;
        lab.replicas.truncate(2);
        let again = lab.joins(HOUR_MS).await;
        assert!(again.peers.may_be_off().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_waits_for_nobody_whose_beat_is_fresh_and_not_for_the_dead() {
        let mut lab = Lab::of(&[0, 0]).await;
        let began = lab.replicas[0].0.ctx.clock.now();
        let new = lab.joins(1_000).await;
        new.upkeep.start_with_good_clock().await.unwrap();
        assert_eq!(lab.replicas[0].0.ctx.clock.now(), began);
        // All are killed, and one comes back ten seconds later.
        lab.replicas.clear();
        tokio::time::advance(Duration::from_secs(10)).await;
        let new = lab.joins(0).await;
        assert!(new.peers.may_be_off().await);
        lab.beats(3).await;
        assert!(!new.peers.may_be_off().await);
        new.upkeep.start_with_good_clock().await.unwrap();
    }
}
