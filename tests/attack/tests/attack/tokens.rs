//! Tokens of accounts: replaced without a gap, and cut off at once when one leaked.

use fairlead_tests::{Guarded, Http, Store, Testbox, jobs};
use serde_json::{Value, json};

async fn renewed(lab: &Guarded, more: Value) -> Http {
    lab.account("boxes", &more).await
}

async fn tokens(lab: &Guarded) -> Vec<Value> {
    let accounts = lab.admin.get("/scheduler/v1/accounts").await.json();
    let mut accounts = accounts.as_array().into_iter().flatten();
    let boxes = accounts.find(|account| account["my_account"] == "boxes");
    let tokens = boxes.and_then(|boxes| boxes["tokens"].as_array().cloned());
    tokens.unwrap_or_default()
}

async fn status(client: &Http) -> u16 {
    client.get("/scheduler/v1/whoami").await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_leaves_agents_the_old_one_for_a_while() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let first = lab.testbox("boxes", &["host-*"]).await;
    assert_eq!(tokens(&lab).await[0]["last_used_ms"], 0, "nobody used it");
    let mut testbox = Testbox::dc(&first, "host-1", 2 << 10);
    let alice = lab.user("alice").await;
    alice.submit(&jobs::dc("alice")).await;
    let grant = testbox.take().await;

    let second = renewed(&lab, json!({"new_token": true})).await;
    testbox.finish(&grant).await;
    alice.submit(&jobs::dc("alice")).await;
    assert_eq!(
        testbox.take_all().await.len(),
        1,
        "it works on with the old one"
    );
    assert_eq!((status(&first).await, status(&second).await), (200, 200));
    let known = tokens(&lab).await;
    assert_eq!(known.len(), 2);
    for token in &known {
        assert!(token["last_used_ms"].as_u64() > Some(0), "{token}");
    }
    let day = known[1]["ends_ms"].as_u64().unwrap_or(0) - known[0]["made_ms"].as_u64().unwrap_or(0);
    assert_eq!((day, &known[0]["ends_ms"]), (86_400_000, &json!(0)));

    // At most two tokens are valid: a third one ends the first.
    let third = renewed(&lab, json!({"new_token": true, "expires_s": 3_600})).await;
    assert_eq!((status(&first).await, status(&second).await), (401, 200));
    renewed(&lab, json!({"overlap_s": 0})).await;
    assert_eq!((status(&second).await, status(&third).await), (401, 200));
    let known = tokens(&lab).await;
    assert!(
        known.len() == 1 && known[0]["ends_ms"].as_u64() > Some(0),
        "{known:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_leaked_is_cut_off_at_once() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let leaked = lab.testbox("boxes", &["host-*"]).await;
    let good = renewed(&lab, json!({"new_token": true, "overlap_s": 0})).await;
    leaked.get("/scheduler/v1/whoami").await.refused(401);
    assert_eq!(status(&good).await, 200);
    let path = "/scheduler/v1/accounts/boxes";
    for bad in [
        json!({"overlap_s": 2_592_001}),
        json!({"new_token": true, "expires_s": 59}),
        json!({"new_token": true, "expires_s": 315_360_001}),
        json!({"expires_s": 3_600}),
    ] {
        lab.admin.post(path, &bad).await.refused(400);
    }
}
