//! Tests of a job's stages: forward only, one end, and lost hosts.

use fairlead_tests::{Scheduler, Store, Testbox, eventually, jobs, on_both_stores};
use reqwest::Method;
use serde_json::json;

on_both_stores!(
    row_21_stages_only_move_forward,
    row_21_a_finished_job_stays_finished,
    row_22_a_lost_host_gives_its_job_back,
    row_22_an_answer_nobody_reads_costs_no_job,
    a_rebooted_machine_gets_its_undelivered_job_again,
    a_cancelled_job_never_runs,
    row_28_a_filter_cancels_all_that_wait_of_one_s_own,
    row_10_a_terminated_job_is_stopped,
);

async fn row_21_stages_only_move_forward(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let grant = testbox.take().await;
    for stage in ["boot", "setup", "running"] {
        let reply = testbox.report(&grant, &format!("job_stage={stage}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert_eq!(http.field(&id, "job_stage").await, stage);
    }
    for stage in ["boot", "setup", "dispatch", "submit"] {
        testbox
            .report(&grant, &format!("job_stage={stage}"))
            .await
            .refused(409);
        assert_eq!(http.field(&id, "job_stage").await, "running");
    }
    testbox
        .report(&grant, "job_stage=started")
        .await
        .refused(400);
    scheduler.kill();
    scheduler.restart().await;
    assert_eq!(
        http.field(&id, "job_stage").await,
        "running",
        "stages are in the store"
    );
    testbox.report(&grant, "job_stage=boot").await.refused(409);
}

async fn row_21_a_finished_job_stays_finished(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let grant = testbox.take().await;
    testbox.finish(&grant).await;
    for more in [
        "job_stage=running",
        "job_stage=boot",
        "job_stage=finish&job_health=fail",
    ] {
        testbox.report(&grant, more).await.refused(423);
    }
    let script = format!(
        "/srv/scheduler/pending-jobs/{id}/job.cgz?job_token={}",
        grant.job_token
    );
    http.get(&script).await;
    let job = http.job(&id).await;
    assert_eq!(job["job_stage"], "finish", "{job}");
    assert_eq!(job["job_health"], "success", "{job}");
    for what in ["cancel", "terminate"] {
        let path = format!("/scheduler/v1/jobs/{id}/{what}");
        http.post(&path, &json!({"my_account": "alice"}))
            .await
            .refusal();
    }
    assert!(testbox.ask(0).await.is_empty());
}

async fn row_22_a_lost_host_gives_its_job_back(store: Store) {
    let scheduler = Scheduler::start_with(store, &["--lease", "1500ms"]).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let mut lost = Testbox::dc(&http, "host-1", 2 << 10);
    let first = lost.take().await;
    assert_eq!(lost.report(&first, "job_stage=running").await.status, 200);

    // The first host never returns.
    let mut other = Testbox::dc(&http, "host-2", 2 << 10);
    let second = eventually("the job is handed to another host", async || {
        other.ask(2).await.into_iter().next()
    })
    .await;
    assert_eq!(second.job_id, id);
    assert_eq!(second.attempt, 2);
    assert_ne!(second.claim_token, first.claim_token);

    // A late report of an earlier attempt is refused, whatever it reports.
    let late = "job_stage=finish&job_health=fail";
    lost.report(&first, late).await.refused(409);
    other.finish(&second).await;
    assert_eq!(http.field(&id, "job_health").await, "success");
}

async fn row_22_an_answer_nobody_reads_costs_no_job(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    testbox.next_request(60);
    let gone = testbox.clone();
    let poll = tokio::task::JoinSet::from_iter([async move { gone.send().await }]);
    eventually("the testbox waits", async || {
        let host = http.get("/scheduler/v1/hosts/host-1").await;
        (host.status == 200 && host.json()["state"] == "waiting").then_some(())
    })
    .await;
    drop(poll);
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let grant = eventually("the job reaches the host", async || {
        testbox.ask(5).await.into_iter().next()
    })
    .await;
    assert_eq!(grant.job_id, id);
    testbox.finish(&grant).await;
    assert_eq!(http.field(&id, "job_health").await, "success");
}

async fn a_rebooted_machine_gets_its_undelivered_job_again(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::hw("alice")).await.remove(0);
    let mut machine = Testbox::hw(&http, "host-1");
    assert_eq!(machine.take_all().await[0].job_id, id);
    machine.reboot();
    let again = machine.take().await;
    assert_eq!((again.job_id.as_str(), again.attempt), (id.as_str(), 1));
    machine.finish(&again).await;
}

async fn a_cancelled_job_never_runs(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let ids = http.submit(&jobs::times(3, &jobs::dc("alice"))).await;
    let path = format!("/scheduler/v1/jobs/{}/cancel", ids[1]);
    let reply = http.post(&path, &json!({"my_account": "alice"})).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(http.field(&ids[1], "job_stage").await, "cancel");
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    assert_eq!(testbox.run_all(2).await, [ids[0].clone(), ids[2].clone()]);
    // A second cancel changes nothing, and a job that ended by itself cannot be cancelled.
    http.post(&path, &json!({"my_account": "alice"})).await;
    assert_eq!(http.field(&ids[1], "job_stage").await, "cancel");
    let late = format!("/scheduler/v1/jobs/{}/cancel", ids[0]);
    http.post(&late, &json!({"my_account": "alice"}))
        .await
        .refusal();
    let delete = format!("/scheduler/v1/jobs/{}", ids[0]);
    http.send(Method::DELETE, &delete, "", Vec::new())
        .await
        .refused(405);
}

async fn row_28_a_filter_cancels_all_that_wait_of_one_s_own(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let of = |submit_id: &str| jobs::with(jobs::dc("alice"), &json!({"submit_id": submit_id}));
    let kept = http.submit(&jobs::times(2, &of("one"))).await;
    let gone = http.submit(&jobs::times(300, &of("two"))).await;
    let body = json!({"my_account": "alice", "filter": {"submit_id": "two"}});
    let path = "/scheduler/v1/jobs/cancel";
    let reply = http.post(path, &body).await.json();
    let results = reply["results"].as_array().cloned().unwrap_or_default();
    let ids: Vec<_> = results
        .iter()
        .filter_map(|item| item["job_id"].as_str())
        .collect();
    assert_eq!(ids, gone, "one report each");
    assert!(
        results.iter().all(|item| item["result"] == "success"),
        "{reply}"
    );
    assert_eq!(Testbox::dc(&http, "host-1", 8 << 10).run_all(2).await, kept);
    for bad in [
        json!({"filter": {"colour": "red"}}),
        json!({"filter": {"suite": []}}),
        json!({}),
    ] {
        http.post(path, &bad).await.refused(400);
    }
}

async fn row_10_a_terminated_job_is_stopped(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let path = format!("/scheduler/v1/jobs/{id}/terminate");
    http.post(&path, &json!({"my_account": "alice"}))
        .await
        .refusal();
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let grant = testbox.take().await;
    assert_eq!(
        testbox.report(&grant, "job_stage=running").await.status,
        200
    );
    for bad in [json!(3601), json!(-1), json!("soon")] {
        let asked = json!({"my_account": "alice", "grace_s": bad});
        let refused = http.post(&path, &asked).await.refused(400);
        assert!(refused.message.contains("grace_s"), "{refused:?}");
    }
    let asked = json!({"my_account": "alice", "grace_s": "5m"});
    let reply = http.post(&path, &asked).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let told = testbox.try_heartbeat().await.expect("an answer").json();
    assert_eq!(
        (&told["stop"][0]["job_id"], &told["stop"][0]["grace_s"]),
        (&json!(id), &json!(300)),
        "{told}"
    );
    eventually("the agent is told to stop it", async || {
        testbox.heartbeat().await.contains(&id).then_some(())
    })
    .await;
    let end = "job_stage=finish&job_health=terminate&job_data_readiness=incomplete";
    assert_eq!(testbox.report(&grant, end).await.status, 200);
    assert_eq!(http.field(&id, "job_health").await, "terminate");
}
