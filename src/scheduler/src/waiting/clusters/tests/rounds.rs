//! Tests that the two outcomes of one round exclude each other.

use super::*;

/// Two that look at the same time: one opens, one gives up. One document decides.
#[tokio::test(start_paused = true)]
async fn a_round_that_is_given_up_is_not_opened_and_the_other_way_round() {
    for open_first in [false, true] {
        let lab = lab(1).await;
        lab.dispatch(1, Stage::WaitPeer).await;
        lab.look().await;
        step(WAIT_MS).await;
        let read = lab.flows.ctx.store.get(&lab.jobs).await.unwrap();
        let now_ms = lab.flows.ctx.clock.wall_ms();
        let view = |read: &[Option<StoredJob>]| {
            let view = fairlead_lifecycle::cluster::View::of(&lab.jobs, read, now_ms);
            lab.flows
                .waiting
                .known
                .clusters
                .partial
                .complete(view, lab.flows.ctx.clock.now())
        };
        let gives_up = view(&read);
        lab.dispatch(2, Stage::WaitPeer).await;
        let read = lab.flows.ctx.store.get(&lab.jobs).await.unwrap();
        let opens = view(&read);
        let both = if open_first {
            [&opens, &gives_up]
        } else {
            [&gives_up, &opens]
        };
        for view in both {
            let next =
                |state: &JobState| Ok(fairlead_lifecycle::cluster::next_of(state, view, now_ms));
            lab.flows.jobs.change(JobId::new(1), next).await.unwrap();
        }
        let head = lab.job(1).await;
        let place = head.cluster.unwrap();
        assert_eq!(
            (place.round, place.is_through()),
            if open_first { (1, true) } else { (2, false) }
        );
        lab.look().await;
        let second = lab.job(2).await;
        assert_eq!(second.cluster.unwrap().is_through(), open_first);
        assert_eq!(second.stage == Stage::WaitPeer, open_first);
    }
}
