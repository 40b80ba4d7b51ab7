//! Tests of the faults of several compass-ci schedulers over one store.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_tests::{Http, Lab, Scheduler, Testbox, eventually, jobs, settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::crowd;

fn asked(replicas: &[Scheduler]) -> Vec<Http> {
    replicas.iter().map(Scheduler::http).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn row_01_killed_replicas_lose_no_pending_job() {
    let lab = Lab::new();
    let mut replicas = lab.schedulers(2, &[]).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    let submitted = a.submit(&jobs::times(100, &jobs::dc("alice"))).await;
    let mut testbox = Testbox::dc(&b, "host-1", 5 << 10);
    while testbox.held().len() < 5 {
        assert!(!testbox.take_all().await.is_empty(), "five fit into 5 GB");
    }

    // The replica that took the submits is gone, and returns only after the other has handed out a part.
    replicas[0].kill();
    let mut ran = Vec::new();
    while ran.len() < 30 {
        for grant in testbox.held().to_vec() {
            testbox.finish(&grant).await;
            ran.push(grant.job_id);
        }
        assert!(!testbox.take_all().await.is_empty(), "{} ran", ran.len());
    }
    replicas[0].restart().await;

    // All replicas are killed at once, with jobs on the testbox.
    replicas.iter_mut().for_each(Scheduler::kill);
    for replica in &mut replicas {
        replica.restart().await;
    }
    testbox.turn_to(&a);
    for grant in testbox.held().to_vec() {
        testbox.finish(&grant).await;
        ran.push(grant.job_id);
    }
    ran.extend(testbox.run_all(5).await);
    let distinct: BTreeSet<_> = ran.iter().collect();
    assert_eq!(distinct.len(), ran.len(), "a job was handed out twice");
    assert_eq!(distinct, submitted.iter().collect(), "lost or made up");
    for id in &submitted {
        let job = b.job(id).await;
        assert_eq!(
            (&job["job_health"], &job["attempt"]),
            (&json!("success"), &json!(1)),
            "{job}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_02_what_one_replica_takes_another_hands_out() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &[]).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    let mut submitted = a.submit(&jobs::times(20, &jobs::hw("alice"))).await;
    for account in ["bob", "carol"] {
        submitted.extend(a.submit(&jobs::hw(account)).await);
    }
    let mut machine = Testbox::hw(&b, "host-1");
    let mut ran = machine.run_all(5).await;
    ran.sort_unstable();
    submitted.sort_unstable();
    assert_eq!(ran, submitted);

    // The same works the other way round, for a machine that already waits.
    machine.next_request(30);
    let job = jobs::hw("alice");
    let (answer, ids) = tokio::join!(machine.ask_again(), a.submit(&job));
    assert_eq!(answer.jobs[0].job_id, ids[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_03_a_job_looked_at_elsewhere_is_handed_out_once() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &[]).await;
    let all = asked(&replicas);
    let mut submitted = all[0].submit(&jobs::times(40, &jobs::hw("alice"))).await;
    submitted.extend(all[1].submit(&jobs::times(40, &jobs::hw("bob"))).await);
    let look = async {
        for id in &submitted {
            for http in &all {
                assert_eq!(http.field(id, "job_id").await, *id);
                http.get(&format!("/scheduler/v1/jobs/{id}/explain"))
                    .await
                    .json();
            }
        }
    };
    let ((), handed_out) = tokio::join!(look, crowd::run_all(&all, 6));
    once_each(&handed_out, &submitted);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_04_many_machines_that_ask_all_replicas_share_no_job() {
    let lab = Lab::new();
    let replicas = lab.schedulers(3, &[]).await;
    let all = asked(&replicas);
    // All machines see the same head of the same queue at the same time.
    let mut submitted = Vec::new();
    for http in &all {
        submitted.extend(http.submit(&jobs::times(50, &jobs::hw("alice"))).await);
    }
    let handed_out = crowd::run_all(&all, 24).await;
    once_each(&handed_out, &submitted);
    for id in &submitted {
        let job = all[0].job(id).await;
        assert_eq!(
            (&job["job_health"], &job["attempt"]),
            (&json!("success"), &json!(1)),
            "{job}"
        );
    }
}

fn once_each(handed_out: &BTreeMap<String, usize>, submitted: &[String]) {
    let twice: Vec<_> = handed_out.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "handed out more than once: {twice:?}");
    let never: Vec<_> = submitted
        .iter()
        .filter(|id| !handed_out.contains_key(*id))
        .collect();
    assert!(never.is_empty(), "never handed out: {never:?}");
    assert_eq!(handed_out.len(), submitted.len(), "jobs were made up");
}

/// Number of seconds after the last id in which ids are taken. The next constant is the number of taken ids in each.
const TAKEN_S: u64 = 10;
const TAKEN_IDS: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn row_14_create_never_overwrites() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &[]).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    let elasticsearch = Http::new(&settings::elasticsearch()[0]);
    let first = a.submit(&jobs::dc("first")).await.remove(0);

    // The ids that A is going to create are already taken.
    let (mut taken, mut mine) = (Vec::new(), vec![first.clone()]);
    eventually("an id is made that another job has", async || {
        if mine.last() > taken.last() {
            let ids = ids_to_come(mine.last().expect("some were made"));
            occupy(&elasticsearch, lab.prefix(), &first, &ids).await;
            taken.extend(ids);
        }
        mine.extend(a.submit(&jobs::times(2, &jobs::dc("second"))).await);
        replicas[0]
            .log()
            .contains("an id was made twice")
            .then_some(())
    })
    .await;

    for id in &taken {
        assert!(!mine.contains(id), "{id} was given to two jobs");
        for http in [&a, &b] {
            assert_eq!(http.field(id, "my_account").await, "first", "{id}");
        }
    }
    for id in &mine[1..] {
        assert_eq!(b.field(id, "my_account").await, "second", "{id}");
    }
}

/// Regression: a submit writes two documents, and a node that hangs may store one long before the other. The job was
/// then handed out without its body, and ended.
#[tokio::test(flavor = "multi_thread")]
async fn row_01_a_job_whose_other_half_comes_late_waits_for_it() {
    let lab = Lab::new();
    let mut scheduler = lab.scheduler(&[]).await;
    let http = scheduler.http();
    let elasticsearch = Http::new(&settings::elasticsearch()[0]);
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let documents = documents_of(&elasticsearch, lab.prefix(), &id).await;
    let is_body = |hit: &&Value| hit["_source"]["body"].is_object();
    let found = documents.iter().find(is_body).expect("its body");
    let (index, body) = (found["_index"].as_str().unwrap(), &found["_source"]);
    let path = format!("/{index}/_doc/{id}-body?routing={id}");
    let gone = elasticsearch
        .send(Method::DELETE, &path, "", Vec::new())
        .await;
    assert_eq!(gone.status, 200, "{}", gone.text);
    // The replica that took the submit knows the body, so it is restarted.
    scheduler.kill();
    scheduler.restart().await;
    let mut host = Testbox::dc(&http, "host-1", 2 << 10);
    assert!(host.ask(1).await.is_empty(), "it has no body");
    let job = http.job(&id).await;
    assert_eq!(job["job_stage"], "submit", "{job}");
    let put = elasticsearch.post(&path, body).await;
    assert_eq!(put.status, 201, "{}", put.text);
    assert_eq!(host.ask(30).await[0].job_id, id);
}

/// Returns the two documents of a job: a state and a body.
async fn documents_of(elasticsearch: &Http, prefix: &str, id: &str) -> Vec<Value> {
    elasticsearch
        .send(Method::POST, &format!("/{prefix}-*/_refresh"), "", vec![])
        .await
        .json();
    let search = format!("/{prefix}-*/_search");
    let query = json!({"query": {"ids": {"values": [id, format!("{id}-body")]}}});
    let found = elasticsearch.post(&search, &query).await.json();
    let hits = found["hits"]["hits"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert_eq!(hits.len(), 2, "a state and a body: {found}");
    hits
}

/// Returns ids of the same replica for the next seconds of the same minute.
fn ids_to_come(id: &str) -> Vec<String> {
    let (second, replica) = (&id[..12], &id[12..14]);
    let second: u64 = second.parse().expect("an id begins with its time");
    (1..=TAKEN_S)
        .map(|more| second + more)
        .filter(|second| second % 100 < 60)
        .flat_map(|second| (0..TAKEN_IDS).map(move |n| (second, n)))
        .map(|(second, n)| format!("{second}{replica}{n:05}"))
        .collect()
}

/// Copies all documents of a job under other ids, as another make of scheduler might have done.
async fn occupy(elasticsearch: &Http, prefix: &str, id: &str, ids: &[String]) {
    if ids.is_empty() {
        return;
    }
    let hits = documents_of(elasticsearch, prefix, id).await;
    let mut lines = Vec::new();
    for hit in &hits {
        for other in ids {
            let mut create = json!({"_index": hit["_index"], "_id": other});
            let mut source: Value = hit["_source"].clone();
            if source["job_id"].is_null() {
                create["_id"] = json!(format!("{other}-body"));
                create["routing"] = json!(other);
            } else {
                source["job_id"] = json!(other);
            }
            lines.extend([json!({"create": create}), source]);
        }
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let bulk = lines.join("\n") + "\n";
    let reply = elasticsearch
        .send(Method::POST, "/_bulk", "application/x-ndjson", bulk.into())
        .await
        .json();
    assert_eq!(reply["errors"], false, "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_24_ids_never_collide_between_replicas() {
    let lab = Lab::new();
    // All replicas have the same name, as if it had been copied with the rest of a configuration.
    let mut replicas = lab.schedulers(3, &["--replica", "same"]).await;
    let all = asked(&replicas);
    let mut known = BTreeMap::new();
    for round in 0..6 {
        let batch = |replica: usize| -> Value {
            let job = |n| json!({"marker": format!("{round}/{replica}/{n}")});
            (0..40)
                .map(|n| jobs::with(jobs::dc("alice"), &job(n)))
                .collect()
        };
        let batches = [batch(0), batch(1), batch(2)];
        let (first, second, third) = tokio::join!(
            all[0].submit(&batches[0]),
            all[1].submit(&batches[1]),
            all[2].submit(&batches[2]),
        );
        for (replica, ids) in [first, second, third].into_iter().enumerate() {
            for (n, id) in ids.into_iter().enumerate() {
                let before = known.insert(id.clone(), format!("{round}/{replica}/{n}"));
                assert_eq!(before, None, "{id} was given to two jobs");
            }
        }
        // The replica is back within the same second, before another can know that it was gone.
        let killed = &mut replicas[round % 3];
        killed.kill();
        killed.restart().await;
    }
    for (id, marker) in &known {
        assert_eq!(all[0].field(id, "marker").await, *marker, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_25_jobs_over_the_cache_limit_hide_none_that_fit() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &["--cache-jobs-max", "1000"]).await;
    let all = asked(&replicas);
    let large = jobs::with(jobs::dc("alice"), &json!({"need_memory": "100g"}));
    for http in all.iter().cycle().take(4) {
        http.submit(&jobs::times(3000, &large)).await;
    }
    let mut fit = Vec::new();
    for (http, account) in [(&all[0], "alice"), (&all[1], "bob"), (&all[0], "carol")] {
        fit.push(http.submit(&jobs::dc(account)).await.remove(0));
        // Jobs of the same account and other kinds do not hide it either.
        let elsewhere = jobs::with(jobs::dc(account), &json!({"target_machines": ["nowhere"]}));
        http.submit(&jobs::times(200, &elsewhere)).await;
    }
    let mut ran = Vec::new();
    for (n, http) in all.iter().cycle().take(4).enumerate() {
        let mut testbox = Testbox::dc(http, &format!("host-{n}"), 1 << 10);
        let grants = testbox.take_all().await;
        for grant in &grants {
            testbox.finish(grant).await;
        }
        ran.extend(grants.into_iter().map(|grant| grant.job_id));
        if ran.len() == fit.len() {
            break;
        }
    }
    ran.sort_unstable();
    fit.sort_unstable();
    assert_eq!(ran, fit);
}
