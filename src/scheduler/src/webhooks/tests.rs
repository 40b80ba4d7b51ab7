//! Tests of webhooks over a real store and a real receiver.

use std::sync::Arc;

use fairlead_api::NotifyChange;
use fairlead_job::{Health, JobId, Spec, Stage};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::outbox::TRIES_MAX;
use crate::{
    Clock, Config,
    flows::Flows,
    submission::submit::SubmitOptions,
    testing::{embedded, flows_beside, flows_over},
};
use fairlead_known::{
    accounts::{Credentials, Who},
    webhooks::{Event, Field, Key, Standing, Webhook, id_of},
};
use fairlead_lifecycle::attempt::ended;

/// A job of `user1` with more fields.
async fn submitted(flows: &Arc<Flows>, more: &Value) -> JobId {
    let spec = json!({"suite": "sleep", "testbox": "dc", "my_account": "user1"});
    let mut spec: Spec = spec.as_object().cloned().unwrap();
    spec.extend(more.as_object().cloned().unwrap());
    let said = Credentials::default();
    let submitted = flows
        .submission
        .submit(vec![Ok(spec)], &said, SubmitOptions::default());
    submitted.await.unwrap().items[0].job_id.parse().unwrap()
}

async fn end(flows: &Arc<Flows>, id: JobId, health: Health) {
    let now_ms = flows.ctx.clock.wall_ms();
    let over = |state: &fairlead_store::JobState| {
        Ok(Some(ended(state, Stage::Finish, health, now_ms, "")))
    };
    flows.jobs.change(id, over).await.unwrap();
}

/// A job that has ended, with this receiver.
async fn ended_job(flows: &Arc<Flows>, url: &str) -> JobId {
    let more = json!({
        "callback": url, "secrets": {"callback": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
    });
    let id = submitted(flows, &more).await;
    end(flows, id, Health::Success).await;
    id
}

/// A replica that may send to this machine.
fn lab_in(data: &tempfile::TempDir) -> Arc<Flows> {
    let config = Config {
        webhooks_to: "127.0.0.1:*".parse().unwrap(),
        ..Config::embedded(data.path().to_owned())
    };
    flows_over(embedded(data), config, Clock::system())
}

async fn notice(flows: &Flows, job: JobId) -> Option<Webhook> {
    let key = notice_key(job);
    let known = flows.ctx.docs.read::<Webhook>(&id_of(key)).await.unwrap();
    known.map(|known| known.doc)
}

fn notice_key(job: JobId) -> Key {
    Key {
        job,
        field: Field::Notify,
        event: Event::Ended,
    }
}

/// The next message that a receiver gets, and takes.
async fn received(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = vec![0; 4_096];
    let read = stream.read(&mut head).await.unwrap();
    stream
        .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
        .await
        .unwrap();
    String::from_utf8_lossy(&head[..read]).into_owned()
}

/// The key of the callback at the end of a job.
fn callback(job: JobId) -> Key {
    let (field, event) = (Field::Callback, Event::Ended);
    Key { job, field, event }
}

async fn webhook(flows: &Flows, id: JobId) -> Webhook {
    let id = id_of(callback(id));
    flows
        .ctx
        .docs
        .read::<Webhook>(&id)
        .await
        .unwrap()
        .unwrap()
        .doc
}

/// Lets its next try be due now.
async fn make_due(flows: &Flows, job: JobId) {
    let id = id_of(callback(job));
    let known = flows.ctx.docs.read::<Webhook>(&id).await.unwrap().unwrap();
    let due = Webhook {
        at_ms: 1,
        tried_until_ms: 0,
        ..known.doc.clone()
    };
    flows
        .ctx
        .docs
        .put(&id, Some(&known), Some(&due))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dead_letter_is_delivered_again_under_the_same_id() {
    let data = tempfile::tempdir().unwrap();
    let flows = lab_in(&data);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody listens for now.
    drop(listener);
    let id = ended_job(&flows, &format!("http://{address}/hook")).await;
    let key = callback(id);
    for tries in 1..=TRIES_MAX {
        flows.webhooks.see_to_webhook(key).await.unwrap();
        let tried = webhook(&flows, id).await;
        assert_eq!(tried.tries, tries);
        let is_dead = tries == TRIES_MAX;
        assert_eq!(tried.standing == Standing::Dead, is_dead, "{tried:?}");
        assert!(!tried.problem.is_empty());
        make_due(&flows, id).await;
    }
    // It is given up.
    flows.webhooks.see_to_webhook(key).await.unwrap();
    assert_eq!(webhook(&flows, id).await.tries, TRIES_MAX);
    let listener = TcpListener::bind(address).await.unwrap();
    let said = Credentials {
        account: Some("user1".to_owned()),
        ..Credentials::default()
    };
    let who = flows.people.accounts.identify(&said).unwrap();
    flows
        .webhooks
        .redeliver_webhook(&who, &id_of(key))
        .await
        .unwrap();
    let (head, seen) = tokio::join!(received(&listener), flows.webhooks.see_to_webhook(key));
    seen.unwrap();
    assert!(
        head.contains(&format!("webhook-id: {}", id_of(key))),
        "{head}"
    );
    assert_eq!(webhook(&flows, id).await.standing, Standing::Sent);
}

/// Who is told of the jobs of `user1` by their account.
async fn set_notify(flows: &Arc<Flows>, listener: &TcpListener, on: &[&str]) -> Who {
    let who = flows
        .people
        .accounts
        .identify(&Credentials::default())
        .unwrap();
    let change = NotifyChange {
        url: format!("http://{}/hook", listener.local_addr().unwrap()),
        on: on.iter().map(|word| (*word).to_owned()).collect(),
        ..NotifyChange::default()
    };
    flows
        .people
        .set_notify(&who, "user1", &change)
        .await
        .unwrap();
    who
}

#[tokio::test]
async fn two_replicas_tell_an_end_once() {
    let data = tempfile::tempdir().unwrap();
    let flows = lab_in(&data);
    let beside = flows_beside(&flows);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    set_notify(&flows, &listener, &["failed", "passed_again"]).await;
    let mut told = Vec::new();
    for health in [Health::Fail, Health::Success] {
        let id = submitted(&flows, &json!({})).await;
        end(&flows, id, health).await;
        let key = notice_key(id);
        let (message, one, other) = tokio::join!(
            received(&listener),
            flows.webhooks.see_to_webhook(key),
            beside.webhooks.see_to_webhook(key)
        );
        one.unwrap();
        other.unwrap();
        assert!(message.contains("Job"), "{message}");
        let sent = notice(&flows, id).await.unwrap();
        assert_eq!((sent.standing, sent.tries), (Standing::Sent, 1));
        told.push(sent.tells);
    }
    assert_eq!(told, [Some(Event::Failed), Some(Event::PassedAgain)]);
}

#[tokio::test]
async fn a_try_after_a_crash_tells_what_was_decided_before() {
    let data = tempfile::tempdir().unwrap();
    let flows = lab_in(&data);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    set_notify(&flows, &listener, &["ended", "passed_again"]).await;
    let id = submitted(&flows, &json!({})).await;
    end(&flows, id, Health::Success).await;
    // As a replica left it that had decided, and died.
    let doc = id_of(notice_key(id));
    let known = flows.ctx.docs.read::<Webhook>(&doc).await.unwrap().unwrap();
    let left = Webhook {
        standing: Standing::Trying,
        tells: Some(Event::PassedAgain),
        at_ms: 1,
        tried_until_ms: 1,
        ..known.doc.clone()
    };
    flows
        .ctx
        .docs
        .put(&doc, Some(&known), Some(&left))
        .await
        .unwrap();
    let (message, seen) = tokio::join!(
        received(&listener),
        flows.webhooks.see_to_webhook(notice_key(id))
    );
    seen.unwrap();
    assert!(message.contains("passed again"), "{message}");
}

#[tokio::test]
async fn the_account_is_asked_when_the_job_does_not_say() {
    let data = tempfile::tempdir().unwrap();
    let flows = lab_in(&data);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let before = submitted(&flows, &json!({})).await;
    let who = set_notify(&flows, &listener, &["ended"]).await;
    let silent = submitted(&flows, &json!({"notify": "none"})).await;
    let joined = submitted(&flows, &json!({"group": "g", "script": "true"})).await;
    for id in [before, silent, joined] {
        assert_eq!(notice(&flows, id).await, None, "{id}");
    }
    let told = submitted(&flows, &json!({})).await;
    assert!(notice(&flows, told).await.is_some());
    end(&flows, told, Health::Success).await;
    flows.people.forget_notify(&who, "user1").await.unwrap();
    flows
        .webhooks
        .see_to_webhook(notice_key(told))
        .await
        .unwrap();
    let skipped = notice(&flows, told).await.unwrap();
    assert_eq!(skipped.standing, Standing::Skipped, "{skipped:?}");
    assert!(skipped.problem.contains("account"), "{skipped:?}");
    flows
        .webhooks
        .see_to_webhook(notice_key(told))
        .await
        .unwrap();
    assert_eq!(notice(&flows, told).await, Some(skipped));
}

#[tokio::test]
async fn a_skipped_notice_is_forgotten_sooner_than_one_that_was_sent() {
    let data = tempfile::tempdir().unwrap();
    let flows = lab_in(&data);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    set_notify(&flows, &listener, &["ended"]).await;
    let two_hours_ago = flows.ctx.clock.wall_ms() - 2 * 3_600_000;
    let mut ids = Vec::new();
    for standing in [Standing::Skipped, Standing::Sent, Standing::Waiting] {
        let id = submitted(&flows, &json!({})).await;
        let doc = id_of(notice_key(id));
        let known = flows.ctx.docs.read::<Webhook>(&doc).await.unwrap().unwrap();
        let old = Webhook {
            standing,
            since_ms: two_hours_ago,
            ..known.doc.clone()
        };
        flows
            .ctx
            .docs
            .put(&doc, Some(&known), Some(&old))
            .await
            .unwrap();
        ids.push(id);
    }
    flows.webhooks.sweep_webhooks().await.unwrap();
    let mut kept = Vec::new();
    for id in ids {
        kept.push(notice(&flows, id).await.is_some());
    }
    assert_eq!(kept, [false, true, true]);
    let who = flows
        .people
        .accounts
        .identify(&Credentials::default())
        .unwrap();
    assert_eq!(flows.webhooks.list_webhooks(&who).await.unwrap().len(), 2);
}
