//! Tests of keys that are forgotten.

use fairlead_api::ReuseForgotten;

use super::*;
use fairlead_base::errors::Refusal;

/// A key whose job failed once, and passed at the second try; the second job.
async fn flaky(core: &Arc<Core>, more: &Value) -> JobId {
    let failed = accepted(core, more).await;
    fail(core, failed).await;
    let passed = accepted(core, more).await;
    run(core, passed).await;
    let answer = taken(core, more).await;
    assert!(has(&answer, "flaky"), "{answer:?}");
    passed
}

/// What an account of an open lab may forget; no name: the operator.
async fn forget(
    core: &Arc<Core>,
    account: Option<&str>,
    id: JobId,
) -> Result<ReuseForgotten, Refusal> {
    let said = Credentials {
        account: account.map(str::to_owned),
        ..Credentials::default()
    };
    let who = core.people.accounts.identify(&said).unwrap();
    core.forget_results(&who, id).await
}

#[tokio::test]
async fn a_flaky_key_is_good_again_once_its_owner_forgot_it() {
    let (_data, core) = lab().await;
    let other = accepted(&core, &json!({"n": 1})).await;
    run(&core, other).await;
    let id = flaky(&core, &json!({})).await;
    let refused = forget(&core, Some("bob"), id).await.unwrap_err();
    assert!(refused.to_string().contains("not of 'bob'"), "{refused}");
    assert!(has(&taken(&core, &json!({})).await, "flaky"));

    let forgotten = forget(&core, Some("ann"), id).await.unwrap();
    assert_eq!(forgotten.forgotten, ["account"]);
    assert!(forgotten.was.contains("flaky"), "{}", forgotten.was);
    let next = accepted(&core, &json!({})).await;
    let why = read(&core, next).await.reuse.unwrap();
    assert_eq!(why.joined, None, "it runs by itself: {why:?}");
    run(&core, next).await;
    assert_eq!(taken(&core, &json!({})).await, Ok(next));
    assert_eq!(taken(&core, &json!({"n": 1})).await, Ok(other));
}

#[tokio::test]
async fn what_is_not_known_is_not_forgotten() {
    let (_data, core) = lab().await;
    let never = accepted(&core, &json!({"reuse": "no"})).await;
    let refused = forget(&core, None, never).await.unwrap_err();
    assert!(refused.to_string().contains("no key"), "{refused}");
    let new = accepted(&core, &json!({})).await;
    let forgotten = forget(&core, None, new).await.unwrap();
    assert_eq!(forgotten.forgotten, [""; 0]);
    // It runs on, and others still wait for it.
    let joined = submit(&core, &json!({})).await;
    assert_eq!(joined.joined, new.to_string());
}

#[tokio::test]
async fn only_an_admin_and_who_shares_results_forget_those_of_the_lab() {
    let (_data, core) = lab().await;
    share(&core, "ann", true).await;
    let anns = flaky(&core, &json!({})).await;
    let bob = json!({"my_account": "bob"});
    let bobs = accepted(&core, &bob).await;
    let forgotten = forget(&core, Some("bob"), bobs).await.unwrap();
    assert_eq!(forgotten.forgotten, [""; 0]);
    assert!(forgotten.still.contains("flaky"), "{}", forgotten.still);
    assert!(has(&taken(&core, &bob).await, "flaky"));
    let forgotten = forget(&core, None, bobs).await.unwrap();
    assert_eq!(forgotten.forgotten, ["lab"]);
    assert!(has(&taken(&core, &json!({})).await, "flaky"), "ann's own");
    let forgotten = forget(&core, Some("ann"), anns).await.unwrap();
    assert_eq!(forgotten.forgotten, ["account"]);

    let anns = flaky(&core, &json!({"n": 2})).await;
    let forgotten = forget(&core, Some("ann"), anns).await.unwrap();
    assert_eq!(forgotten.forgotten, ["account", "lab"]);
}
