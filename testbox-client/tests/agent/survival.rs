//! Tests of schedulers that vanish and return, and of agents that restart.

use std::time::Duration;

use fairlead_testbox::{AgentConfig, AgentEvent};

use crate::{
    fake::{Fake, State, poll},
    testbox::{DC, Gate, Testbox, config, folder, gated, job_folders, results},
};

#[tokio::test]
async fn a_job_that_ends_while_no_scheduler_is_there_is_delivered_later() {
    let (mut fake, folder) = (Fake::start(), folder());
    let gate = Gate::new(&folder, "gate");
    fake.grant(gated("7", &gate));
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("7", "running").await;
    fake.down();
    testbox
        .event(|event| matches!(event, AgentEvent::Lost { .. }).then_some(()))
        .await;
    gate.open();
    testbox
        .event(|event| matches!(event, AgentEvent::Ended { .. }).then_some(()))
        .await;
    fake.up();
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "success");
    assert_eq!(fake.with(|state| state.log("7")), "through\n");
    // And it works on.
    fake.grant(crate::testbox::script("8", "exit 0"));
    fake.end("8").await;
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_token_file_is_read_again_when_its_token_is_refused() {
    let (fake, folder) = (Fake::start(), folder());
    let file = folder.path().join("token");
    std::fs::write(&file, "one\n").unwrap();
    fake.with(|state| state.token = Some("one".to_owned()));
    let testbox = Testbox::start(AgentConfig {
        token: Some("one".to_owned()),
        token_file: Some(file.clone()),
        ..config(&fake, &folder, DC)
    });
    let asked = |state: &State| (!state.asked.is_empty()).then_some(());
    fake.until("it asks", asked).await;
    fake.with(|state| state.token = Some("two".to_owned()));
    // The request that is open brings one, and the next is refused until the file has the new token.
    for id in ["7", "8"] {
        fake.grant(crate::testbox::script(id, "exit 0"));
        std::fs::write(&file, "two\n").unwrap();
        assert_eq!(fake.end(id).await["job_health"], "success");
    }
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn an_agent_that_starts_before_its_scheduler_waits_for_it() {
    let (mut fake, folder) = (Fake::start(), folder());
    fake.down();
    fake.grant(crate::testbox::script("7", "exit 0"));
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    testbox
        .event(|event| matches!(event, AgentEvent::Lost { .. }).then_some(()))
        .await;
    fake.up();
    testbox
        .event(|event| matches!(event, AgentEvent::Connected { .. }).then_some(()))
        .await;
    fake.end("7").await;
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn an_end_that_could_not_be_delivered_is_delivered_by_the_next_agent() {
    let (mut fake, folder) = (Fake::start(), folder());
    let gate = Gate::new(&folder, "gate");
    fake.grant(gated("7", &gate));
    let mut first = config(&fake, &folder, DC);
    first.report_on_stop = Duration::from_millis(10);
    let mut testbox = Testbox::start(first);
    fake.stage("7", "running").await;
    fake.down();
    gate.open();
    testbox
        .event(|event| matches!(event, AgentEvent::Ended { .. }).then_some(()))
        .await;
    testbox.stopped().await.unwrap();
    assert!(results(&folder, "7").join("output").exists());
    fake.up();
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "success");
    assert_eq!(end["job_data_readiness"], "uploaded");
    assert_eq!(fake.with(|state| state.log("7")), "through\n");
    // It asks for work under a new session, after the delivery.
    let asked = |state: &State| {
        let first = state.asked.first()?;
        state
            .asked
            .iter()
            .find(|a| a.session != first.session)
            .cloned()
    };
    let asked = fake.until("a new session", asked).await;
    assert_eq!(asked.request, 1);
    assert!(asked.running.is_empty());
    testbox.stopped().await.unwrap();
    assert_eq!(job_folders(&folder), [""; 0]);
}

#[tokio::test]
async fn only_jobs_that_say_so_are_stopped_when_cut_off() {
    let (mut fake, folder) = (Fake::start(), folder());
    fake.with(|state| state.lease_ms = 600);
    let gate = Gate::new(&folder, "gate");
    fake.grant(gated("1", &gate));
    let mut strict = gated("2", &gate);
    strict.stop_when_cut_off = true;
    fake.grant(strict);
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("1", "running").await;
    fake.stage("2", "running").await;
    fake.down();
    let dropped = testbox
        .event(|event| match event {
            AgentEvent::Dropped { job_id, .. } => Some(job_id),
            AgentEvent::Ended { job_id, .. } => panic!("{job_id} ended"),
            _ => None,
        })
        .await;
    assert_eq!(dropped, "2");
    gate.open();
    fake.up();
    assert_eq!(fake.end("1").await["job_health"], "success");
    assert!(fake.with(|state| state.end("2")).is_none());
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_job_is_never_stopped_by_a_silent_scheduler_that_did_not_order_it() {
    let (mut fake, folder) = (Fake::start(), folder());
    fake.with(|state| state.lease_ms = 100);
    let gate = Gate::new(&folder, "gate");
    fake.grant(gated("7", &gate));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("7", "running").await;
    fake.down();
    let rest = tokio::time::Instant::now() + Duration::from_millis(300);
    poll("three leases", || {
        (tokio::time::Instant::now() > rest).then_some(())
    })
    .await;
    gate.open();
    fake.up();
    assert_eq!(fake.end("7").await["job_health"], "success");
    testbox.stopped().await.unwrap();
}
