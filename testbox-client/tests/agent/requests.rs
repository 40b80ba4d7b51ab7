//! Tests of requests for work: numbers, room, repeats.

use fairlead_testbox::{AgentEvent, Kinds};

use crate::{
    fake::{Fake, State},
    testbox::{DC, Gate, Testbox, config, folder, gated, script},
};

#[tokio::test]
async fn a_hw_box_runs_one_job_at_a_time() {
    let (fake, folder) = (Fake::start(), folder());
    let gate = Gate::new(&folder, "gate");
    for id in ["1", "2"] {
        let mut grant = gated(id, &gate);
        grant.memory_mb = 0;
        fake.grant(grant);
    }
    let testbox = Testbox::start(config(&fake, &folder, Kinds::Hw));
    fake.stage("1", "running").await;
    // Two heartbeats later it still has not asked for another.
    let two = |state: &State| (state.beats.len() >= 2).then_some(());
    fake.until("two heartbeats", two).await;
    fake.with(|state| {
        assert_eq!(state.asked.len(), 1);
        assert_eq!(state.asked[0].jobs_max, 1);
        assert_eq!(state.asked[0].kinds, ["hw"]);
    });
    gate.open();
    fake.end("2").await;
    fake.with(|state| {
        let order: Vec<_> = state
            .updates
            .iter()
            .filter(|(_, update)| ["running", "finish"].contains(&update["job_stage"].as_str()))
            .map(|(id, update)| format!("{id} {}", update["job_stage"]))
            .collect();
        assert_eq!(order, ["1 running", "1 finish", "2 running", "2 finish"]);
    });
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_host_offers_what_is_free_and_asks_anew_when_that_changes() {
    let (fake, folder) = (Fake::start(), folder());
    let gates: Vec<_> = ["a", "b", "c"].map(|name| Gate::new(&folder, name)).into();
    for (id, gate) in ["1", "2", "3"].into_iter().zip(&gates) {
        let mut grant = gated(id, gate);
        grant.memory_mb = 400;
        fake.grant(grant);
    }
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("1", "running").await;
    fake.stage("2", "running").await;
    let asks = |free: u32, slots: u32| {
        move |state: &State| {
            let last = state.asked.last()?;
            (last.free_memory_mb == free && last.jobs_max == slots).then(|| last.clone())
        }
    };
    let asked = fake.until("a request for the rest", asks(200, 62)).await;
    assert_eq!(asked.running.len(), 2);
    assert_eq!(asked.memory_mb, 1000);
    // The end of one replaces the request that waits: the third fits now.
    gates[0].open();
    fake.stage("3", "running").await;
    gates[1].open();
    gates[2].open();
    fake.end("3").await;
    fake.until("a request for all", asks(1000, 64)).await;
    let numbers: Vec<_> = fake.with(|state| state.asked.iter().map(|a| a.request).collect());
    assert!(numbers.is_sorted() && numbers[0] == 1, "{numbers:?}");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn what_a_replaced_request_was_granted_is_read_and_run() {
    let (fake, folder) = (Fake::start(), folder());
    let gate = Gate::new(&folder, "a");
    let mut first = gated("1", &gate);
    first.memory_mb = 400;
    fake.grant(first);
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("1", "running").await;
    fake.until("a request for the rest", |state| {
        state
            .asked
            .iter()
            .find(|asked| asked.request == 2)
            .map(|_| ())
    })
    .await;
    fake.with(|state| state.late_grant = Some(script("2", "true")));
    // The end of the first makes room: request 3 replaces request 2, which is answered with a job.
    gate.open();
    fake.end("2").await;
    let third = fake
        .with(|state| state.asked.iter().find(|asked| asked.request == 3).cloned())
        .unwrap();
    assert_eq!(third.seen, Some(1), "request 2 was still open");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_by_its_number_and_run_once() {
    let (fake, folder) = (Fake::start(), folder());
    let marks = folder.path().join("marks");
    let line = format!("echo x >> {}", marks.display());
    fake.with(|state| state.lose_answers = 2);
    fake.grant(script("7", &line));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.end("7").await;
    assert_eq!(std::fs::read_to_string(marks).unwrap(), "x\n");
    fake.with(|state| {
        assert_eq!(state.asked[0], state.asked[1], "the same request again");
    });
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_job_that_is_granted_twice_is_run_once() {
    let (fake, folder) = (Fake::start(), folder());
    let gate = Gate::new(&folder, "gate");
    fake.grant(gated("7", &gate));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("7", "running").await;
    fake.grant(gated("7", &gate));
    fake.until("taken again", |state| {
        state.waiting.is_empty().then_some(())
    })
    .await;
    fake.grant(script("8", "exit 0"));
    fake.end("8").await;
    gate.open();
    fake.end("7").await;
    let starts = fake.with(|state| {
        state
            .stages("7")
            .iter()
            .filter(|s| **s == "running")
            .count()
    });
    assert_eq!(starts, 1);
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn more_than_was_offered_is_not_taken() {
    let (fake, folder) = (Fake::start(), folder());
    let mut large = script("1", "exit 0");
    large.memory_mb = 900;
    let mut lies = config(&fake, &folder, DC);
    lies.jobs_max = 1;
    // The fake counts only what one request says; the second grant of the answer is one too many.
    fake.grant(large);
    fake.grant(script("2", "exit 0"));
    let testbox = Testbox::start(lies);
    fake.end("1").await;
    fake.end("2").await;
    fake.with(|state| {
        let ends: Vec<_> = state
            .updates
            .iter()
            .filter(|(_, update)| ["boot", "post_run"].contains(&update["job_stage"].as_str()))
            .map(|(id, _)| id.as_str())
            .collect();
        assert_eq!(ends, ["1", "1", "2", "2"], "one after the other");
    });
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn once_is_enough() {
    let (fake, folder) = (Fake::start(), folder());
    fake.grant(script("7", "exit 0"));
    let mut config = config(&fake, &folder, DC);
    config.once = true;
    let mut testbox = Testbox::start(config);
    let health = testbox
        .event(|event| match event {
            AgentEvent::Ended { health, .. } => Some(health),
            _ => None,
        })
        .await;
    assert_eq!(health, fairlead_job::Health::Success);
    testbox.ended().await.unwrap();
    assert!(fake.with(|state| state.end("7")).is_some());
}

#[tokio::test]
async fn a_work_folder_serves_one_agent_at_a_time() {
    let (fake, folder) = (Fake::start(), folder());
    let first = Testbox::start(config(&fake, &folder, DC));
    fake.until("the first", |state| state.asked.first().map(|_| ()))
        .await;
    let second = Testbox::start(config(&fake, &folder, DC));
    let error = second.ended().await.unwrap_err();
    assert!(
        format!("{error:#}").contains("another agent uses this folder"),
        "{error:#}"
    );
    first.stopped().await.unwrap();
}
