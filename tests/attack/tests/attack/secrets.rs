//! Secrets of jobs: who reads them, and where they rest.

use std::path::PathBuf;

use fairlead_tests::{Guarded, Store, Testbox, eventually, jobs};
use serde_json::{Value, json};

const SECRET: &str = "Zq7-not-for-you-Zq7";
const NEW: &str = "Zq8-not-for-you-Zq8";

fn with_secret(job: Value) -> Value {
    jobs::with(job, &json!({"secrets": {"key": SECRET}}))
}

/// Regression: a preview kept the secret in clear in the database until the rerun.
#[tokio::test(flavor = "multi_thread")]
async fn a_preview_keeps_no_secret_and_the_job_that_runs_again_has_it() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let (alice, boxes) = (lab.user("alice").await, lab.testbox("boxes", &["*"]).await);
    let id = alice
        .submit(&with_secret(jobs::dc("alice")))
        .await
        .remove(0);
    let mut testbox = Testbox::dc(&boxes, "host-1", 2 << 10);
    let grant = testbox.take().await;
    testbox.finish(&grant).await;

    for (set, field) in [
        (json!({"secrets": {"key": NEW}}), "whole"),
        (json!({"secrets.key": NEW}), "dotted"),
    ] {
        let asked = json!({"action": "rerun", "jobs": [id], "set": set});
        let shown = alice.post("/scheduler/v1/previews", &asked).await;
        assert!(!shown.text.contains(NEW), "{field}: {}", shown.text);
        let preview = shown.json()["preview_id"].clone();
        let preview = preview.as_str().unwrap_or_else(|| panic!("{}", shown.text));
        assert_eq!(
            lab.scheduler.files_with(NEW),
            Vec::<PathBuf>::new(),
            "{field}"
        );
        let run = format!("/scheduler/v1/previews/{preview}/run");
        assert_eq!(alice.post(&run, &json!({})).await.status, 200);
        let again = testbox.take().await;
        assert_eq!(again.job["secrets"]["key"], NEW, "{field}");
        testbox.finish(&again).await;
    }
    for secret in [SECRET, NEW] {
        assert_eq!(lab.scheduler.files_with(secret), Vec::<PathBuf>::new());
        assert!(!lab.scheduler.log().contains(secret));
    }
}

/// Regression: one request for work returned all secrets of its jobs.
#[tokio::test(flavor = "multi_thread")]
async fn an_admin_gets_no_work_and_so_no_secrets() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let alice = lab.user("alice").await;
    alice.submit(&with_secret(jobs::dc("alice"))).await;
    alice.submit(&with_secret(jobs::hw("alice"))).await;
    let mut own = Testbox::dc(&lab.admin, "host-1", 2 << 10);
    own.next_request(0);
    let refused = own.send().await.refused(403);
    assert!(refused.hint.contains("--role testbox"), "{}", refused.hint);
    for path in [
        "/scheduler/v1/jobs/dispatch?hostname=a66&boot_type=native&wait=0",
        "/boot.native/hostname/a66?wait=0",
        "/boot.ipxe/mac/52-54-00-00-00-07?wait=0",
    ] {
        lab.admin.get(path).await.refused(403);
    }
    // Other actions of an admin on hosts still work.
    let host = "/scheduler/v1/hosts/a66";
    let tagged = json!({"tags": ["new"], "my_token": "token-of-the-admin"});
    let registered = lab.admin.post(host, &tagged).await;
    assert_eq!(registered.status, 200, "{}", registered.text);
    eventually("the audit log has it, without the token", async || {
        let log = lab.admin.get("/scheduler/v1/audit").await.text;
        assert!(!log.contains("token-of-the-admin"), "{log}");
        log.contains("host.register").then_some(())
    })
    .await;
}

/// Regression: its answer always had the secrets, whatever the site had configured.
#[tokio::test(flavor = "multi_thread")]
async fn a_native_boot_gets_secrets_only_if_the_site_says_so() {
    for (arguments, is_given) in [(&[][..], false), (&["--boot-secrets"][..], true)] {
        let lab = Guarded::start(Store::Embedded, arguments).await;
        let boxes = lab.testbox("boxes", &["a66"]).await;
        let alice = lab.user("alice").await;
        alice.submit(&with_secret(jobs::hw("alice"))).await;
        let path = "/scheduler/v1/jobs/dispatch?hostname=a66&boot_type=native&wait=10";
        let boot = boxes.get(path).await;
        let job = &boot.json()["job"];
        assert_eq!(job["suite"], jobs::hw("alice")["suite"], "{}", boot.text);
        assert_eq!(boot.text.contains(SECRET), is_given, "{}", boot.text);
        assert_eq!(job["secrets_withheld"] == true, !is_given, "{}", boot.text);
    }
}
