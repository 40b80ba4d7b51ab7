//! How a job's state changes: carried through, confirmed, and told to whoever must know.

use fairlead_api::ErrorCode;
use fairlead_store::Version;
use futures_util::FutureExt;

use crate::testing::{flows, sight_at, state, store_job, until};
use fairlead_base::mailbox::Message;
use fairlead_known::{live_jobs::LiveJobs, open_requests::KnownClaim};

use fairlead_dispatch::{Event, Millis};
use fairlead_job::{Health, Stage};

use super::*;

fn dispatched() -> JobState {
    JobState {
        stage: Stage::Dispatch,
        host: "box1".to_owned(),
        claim_token: "t".to_owned(),
        ..state(2_611_210_236_110_700_000)
    }
}

/// Two threads that told of one job at the same time each looked before the other one wrote: the older state stayed, or a
/// host was said to hold a job that another one has.
#[test]
fn what_is_told_at_the_same_time_leaves_the_newest_state_with_its_host_alone() {
    const ROUNDS: u64 = 20_000;
    const TELLERS: u64 = 4;
    let live = LiveJobs::default();
    let together = std::sync::Barrier::new(usize::try_from(TELLERS).unwrap());
    let told = |seq_no: u64| StoredJob {
        state: JobState {
            host: format!("box{}", seq_no % TELLERS),
            ..dispatched()
        },
        version: Version {
            primary_term: 1,
            seq_no,
        },
    };
    let id = dispatched().job_id;
    std::thread::scope(|scope| {
        for teller in 0..TELLERS {
            let (live, together) = (&live, &together);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    together.wait();
                    live.put(told(round * TELLERS + teller), sight_at(Millis(0)));
                    together.wait();
                    let newest = round * TELLERS + TELLERS - 1;
                    let known = live.get(id).unwrap().stored.version.seq_no;
                    assert_eq!(known, newest, "round {round}");
                    let holders =
                        (0..TELLERS).filter(|n| !live.of_host(&format!("box{n}")).is_empty());
                    assert_eq!(
                        holders.collect::<Vec<_>>(),
                        [newest % TELLERS],
                        "round {round}"
                    );
                    together.wait();
                    if teller == 0 {
                        live.remove(id);
                    }
                }
            });
        }
    });
}

/// A host that hung up at the wrong moment left its job in memory as held, and in the store as waiting.
#[tokio::test]
async fn a_change_whose_asker_hangs_up_is_carried_through() {
    let (_data, flows) = flows().await;
    let job = store_job(&flows, dispatched()).await;
    flows.jobs.live.put(job.clone(), flows.jobs.sight());
    let hung_up = flows
        .jobs
        .give_back(&KnownClaim::of(&job.state), "nobody took it")
        .now_or_never();
    assert!(hung_up.is_none(), "the store cannot have answered yet");
    until(&flows, "the job is no longer held", || {
        flows.jobs.live.count() == 0
    })
    .await;
}

/// A report may come before this replica has heard of the claim that another one made.
#[tokio::test]
async fn a_job_whose_claim_was_not_heard_of_is_held_from_its_first_report_on() {
    let (_data, flows) = flows().await;
    let job = store_job(&flows, dispatched()).await;
    let boots = |state: &JobState| {
        let stage = Stage::Boot;
        Ok(Some(JobState {
            stage,
            ..state.clone()
        }))
    };
    flows.jobs.change(job.state.job_id, boots).await.unwrap();
    let told: Vec<Message> = flows.ctx.engine.take().into_iter().collect();
    assert!(matches!(&told[..], [Message::Event(event)] if matches!(**event, Event::JobHeld(_))));
}

/// A write that was answered as a conflict with itself, or was read by another replica.
#[tokio::test]
async fn a_job_that_was_put_back_comes_again_whoever_wrote_it() {
    let (_data, flows) = flows().await;
    let job = store_job(&flows, dispatched()).await;
    flows.jobs.observe(&job);
    let mut put_back = StoredJob {
        state: fairlead_lifecycle::attempt::lost(
            &job.state,
            flows.ctx.clock.wall_ms(),
            "not heard of",
        )
        .set_alarm(),
        ..job.clone()
    };
    put_back.version.seq_no += 1;
    assert!(!put_back.state.ready);
    flows.jobs.observe(&put_back);
    assert_eq!(flows.jobs.live.count(), 0);
    let due = flows.jobs.alarms.due(u64::MAX);
    assert_eq!(due, [(put_back.state.job_id, put_back)]);
}

/// The answer to a write may come after what somebody wrote since was seen. Seed 1216.
#[tokio::test]
async fn an_answer_that_comes_late_takes_nothing_back() {
    let (_data, flows) = flows().await;
    let parked = JobState {
        ready: false,
        start_ms: 5,
        ..state(5)
    };
    let at = |seq_no, state: &JobState| StoredJob {
        state: state.clone(),
        version: Version {
            primary_term: 1,
            seq_no,
        },
    };
    flows.jobs.observe(&at(8, &state(5)));
    flows.ctx.engine.take();
    flows.jobs.changed(&Changed {
        before: at(6, &parked),
        after: at(7, &parked),
    });
    assert!(
        flows.ctx.engine.take().is_empty(),
        "it waits, and is not gone"
    );
}

/// A request came twice: the first answer was lost, the second one brings the same job. Seed 789.
#[tokio::test]
async fn a_job_that_is_handed_out_again_is_not_put_back_for_the_lost_answer() {
    let (_data, flows) = flows().await;
    let job = store_job(&flows, dispatched()).await;
    let lost = KnownClaim::of(&job.state);
    let sure = flows.jobs.make_sure(&job.state).await.unwrap();
    assert!(sure.is_some());
    flows.jobs.give_back(&lost, "nobody took it").await;
    let now = flows.jobs.stored_job(job.state.job_id).await.unwrap();
    assert_eq!(now.state.stage, Stage::Dispatch);
    // The other way round: what was put back is not handed out.
    flows
        .jobs
        .give_back(&KnownClaim::of(&now.state), "nobody took it")
        .await;
    assert_eq!(flows.jobs.make_sure(&now.state).await.unwrap(), None);
}

/// What a read shows may vanish with the node that showed it.
#[tokio::test]
async fn an_end_that_was_only_read_is_written_once_more_before_anybody_relies_on_it() {
    let (_data, flows) = flows().await;
    let ended = JobState {
        stage: Stage::Finish,
        health: Health::Success,
        ..dispatched()
    };
    let job = store_job(&flows, ended).await;
    let changed = flows
        .jobs
        .change(job.state.job_id, |_| Ok(None))
        .await
        .unwrap();
    assert!(changed.after.version > job.version);
    assert_eq!(changed.before, changed.after);
}

#[tokio::test]
async fn what_somebody_else_did_to_a_held_job_is_seen_at_the_next_change() {
    let (_data, flows) = flows().await;
    let job = store_job(&flows, dispatched()).await;
    flows.jobs.live.put(job.clone(), flows.jobs.sight());
    let elsewhere = fairlead_lifecycle::attempt::given_back(&job.state, 5, "by another replica");
    let set = StatePatch::between(&job.state, &elsewhere);
    let patch = Patch {
        id: job.state.job_id,
        expect: job.version,
        set,
    };
    flows.jobs.writer.patch(patch).await.unwrap();
    flows.jobs.lose(job.state.job_id, "t", "silent").await;
    assert_eq!(flows.jobs.live.count(), 0);
}

/// "conflict" would say to a testbox that its job is another's now; it would drop the results.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_others_forestall_each_time_is_to_be_repeated() {
    let (_data, flows) = flows().await;
    let job = store_job(&flows, dispatched()).await;
    let id = job.state.job_id;
    let mut newest = job;
    let refused = flows.jobs.change(id, |before| {
        let (state, patch) = touch(&newest);
        let version = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(flows.jobs.writer.patch(patch))
        });
        newest = StoredJob {
            state,
            version: version.unwrap(),
        };
        Ok(Some(JobState {
            stage: Stage::Boot,
            ..before.clone()
        }))
    });
    let refused = refused.await.unwrap_err();
    assert_eq!(refused.body().code, ErrorCode::Unavailable);
    let forestalled = usize::try_from(newest.state.claim_seq);
    assert_eq!(forestalled, Ok(CHANGE_TRIES_MAX));
}
