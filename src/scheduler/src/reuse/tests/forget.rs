//! Tests of keys that are forgotten.

use fairlead_api::ReuseForgotten;

use super::*;
use fairlead_base::errors::Refusal;

/// A key whose job failed once, and passed at the second try; the second job.
async fn flaky(flows: &Arc<Flows>, more: &Value) -> JobId {
    let failed = accepted(flows, more).await;
    fail(flows, failed).await;
    let passed = accepted(flows, more).await;
    run(flows, passed).await;
    let answer = taken(flows, more).await;
    assert!(has(&answer, "flaky"), "{answer:?}");
    passed
}

/// What an account of an open lab may forget; no name: the operator.
async fn forget(
    flows: &Arc<Flows>,
    account: Option<&str>,
    id: JobId,
) -> Result<ReuseForgotten, Refusal> {
    let said = Credentials {
        account: account.map(str::to_owned),
        ..Credentials::default()
    };
    let who = flows.people.accounts.identify(&said).unwrap();
    flows.reuse.forget_results(&who, id).await
}

#[tokio::test]
async fn a_flaky_key_is_good_again_once_its_owner_forgot_it() {
    let (_data, flows) = lab().await;
    let other = accepted(&flows, &json!({"n": 1})).await;
    run(&flows, other).await;
    let id = flaky(&flows, &json!({})).await;
    let refused = forget(&flows, Some("bob"), id).await.unwrap_err();
    assert!(refused.to_string().contains("not of 'bob'"), "{refused}");
    assert!(has(&taken(&flows, &json!({})).await, "flaky"));

    let forgotten = forget(&flows, Some("ann"), id).await.unwrap();
    assert_eq!(forgotten.forgotten, ["account"]);
    assert!(forgotten.was.contains("flaky"), "{}", forgotten.was);
    let next = accepted(&flows, &json!({})).await;
    let why = read(&flows, next).await.reuse.unwrap();
    assert_eq!(why.joined, None, "it runs by itself: {why:?}");
    run(&flows, next).await;
    assert_eq!(taken(&flows, &json!({})).await, Ok(next));
    assert_eq!(taken(&flows, &json!({"n": 1})).await, Ok(other));
}

#[tokio::test]
async fn what_is_not_known_is_not_forgotten() {
    let (_data, flows) = lab().await;
    let never = accepted(&flows, &json!({"reuse": "no"})).await;
    let refused = forget(&flows, None, never).await.unwrap_err();
    assert!(refused.to_string().contains("no key"), "{refused}");
    let new = accepted(&flows, &json!({})).await;
    let forgotten = forget(&flows, None, new).await.unwrap();
    assert_eq!(forgotten.forgotten, [""; 0]);
    // It runs on, and others still wait for it.
    let joined = submit(&flows, &json!({})).await;
    assert_eq!(joined.joined, new.to_string());
}

#[tokio::test]
async fn only_an_admin_and_who_shares_results_forget_those_of_the_lab() {
    let (_data, flows) = lab().await;
    share(&flows, "ann", true).await;
    let anns = flaky(&flows, &json!({})).await;
    let bob = json!({"my_account": "bob"});
    let bobs = accepted(&flows, &bob).await;
    let forgotten = forget(&flows, Some("bob"), bobs).await.unwrap();
    assert_eq!(forgotten.forgotten, [""; 0]);
    assert!(forgotten.still.contains("flaky"), "{}", forgotten.still);
    assert!(has(&taken(&flows, &bob).await, "flaky"));
    let forgotten = forget(&flows, None, bobs).await.unwrap();
    assert_eq!(forgotten.forgotten, ["lab"]);
    assert!(has(&taken(&flows, &json!({})).await, "flaky"), "ann's own");
    let forgotten = forget(&flows, Some("ann"), anns).await.unwrap();
    assert_eq!(forgotten.forgotten, ["account"]);

    let anns = flaky(&flows, &json!({"n": 2})).await;
    let forgotten = forget(&flows, Some("ann"), anns).await.unwrap();
    assert_eq!(forgotten.forgotten, ["account", "lab"]);
}
