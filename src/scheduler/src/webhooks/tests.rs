//! Tests of webhooks over a real store and a real receiver.

use std::sync::Arc;

use fairlead_job::{Health, JobId, Spec, Stage};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::outbox::TRIES_MAX;
use crate::{
    Clock, Config,
    core::Core,
    known::{
        accounts::Credentials,
        webhooks::{Event, Standing, Webhook, id_of},
    },
    lifecycle::attempt::ended,
    submission::submit::SubmitOptions,
    testing::{core_over, embedded},
};

/// A job that has ended, with this receiver.
async fn ended_job(core: &Arc<Core>, url: &str) -> JobId {
    let spec = json!({
        "suite": "sleep", "testbox": "dc", "my_account": "user1", "callback": url,
        "secrets": {"callback": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
    });
    let spec: Spec = spec.as_object().cloned().unwrap();
    let said = Credentials::default();
    let submitted = core.submit(vec![Ok(spec)], &said, SubmitOptions::default());
    let id = submitted.await.unwrap().items[0].job_id.parse().unwrap();
    let over = |state: &fairlead_store::JobState| {
        Ok(Some(ended(
            state,
            Stage::Finish,
            Health::Success,
            core.clock.wall_ms(),
            "",
        )))
    };
    core.change(id, over).await.unwrap();
    id
}

async fn webhook(core: &Core, id: JobId) -> Webhook {
    let id = id_of((id, Event::Ended));
    core.docs.read::<Webhook>(&id).await.unwrap().unwrap().doc
}

/// Lets its next try be due now.
async fn make_due(core: &Core, job: JobId) {
    let id = id_of((job, Event::Ended));
    let known = core.docs.read::<Webhook>(&id).await.unwrap().unwrap();
    let due = Webhook {
        at_ms: 1,
        tried_until_ms: 0,
        ..known.doc.clone()
    };
    core.docs.put(&id, Some(&known), Some(&due)).await.unwrap();
}

#[tokio::test]
async fn a_dead_letter_is_delivered_again_under_the_same_id() {
    let data = tempfile::tempdir().unwrap();
    let config = Config {
        webhooks_to: "127.0.0.1".parse().unwrap(),
        ..Config::embedded(data.path().to_owned())
    };
    let core = core_over(embedded(&data), config, Clock::system());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody listens for now.
    drop(listener);
    let id = ended_job(&core, &format!("http://{address}/hook")).await;
    let key = (id, Event::Ended);
    for tries in 1..=TRIES_MAX {
        core.see_to_webhook(key).await.unwrap();
        let tried = webhook(&core, id).await;
        assert_eq!(tried.tries, tries);
        let is_dead = tries == TRIES_MAX;
        assert_eq!(tried.standing == Standing::Dead, is_dead, "{tried:?}");
        assert!(!tried.problem.is_empty());
        make_due(&core, id).await;
    }
    // It is given up.
    core.see_to_webhook(key).await.unwrap();
    assert_eq!(webhook(&core, id).await.tries, TRIES_MAX);
    let listener = TcpListener::bind(address).await.unwrap();
    let said = Credentials {
        account: Some("user1".to_owned()),
        ..Credentials::default()
    };
    let who = core.people.accounts.identify(&said).unwrap();
    core.redeliver_webhook(&who, &id_of(key)).await.unwrap();
    let received = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4_096];
        let read = stream.read(&mut head).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .await
            .unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    };
    let (head, seen) = tokio::join!(received, core.see_to_webhook(key));
    seen.unwrap();
    assert!(
        head.contains(&format!("webhook-id: {}", id_of(key))),
        "{head}"
    );
    assert_eq!(webhook(&core, id).await.standing, Standing::Sent);
}
