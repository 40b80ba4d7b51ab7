//! Tests of reuse over a real store, by one replica and by two.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::{ReuseSettings, SubmitItem, SuiteReuse};
use fairlead_content::{Chunk, Digest, Entry as File, Kind, Location, Manifest};
use fairlead_job::{
    CONTAINER_TAG, CONTENT_TAG, DataReadiness, Health, JobId, Spec, Stage, TboxType,
};
use fairlead_store::{CaseCounts, JobState};
use serde_json::{Value, json};

use crate::{
    Clock, Config,
    flows::Flows,
    submission::submit::SubmitOptions,
    testing::{embedded, flows, flows_beside, flows_with},
};
use fairlead_known::{
    accounts::Credentials,
    reuse::{Class, Entry, entry_id},
};
use fairlead_lifecycle::attempt::{cancelled, ended};

mod faults;
mod forget;
mod images;
mod joins;
mod parts;

/// A living host of a class that its kernel names.
fn host(flows: &Flows, name: &str, kernel: &str) {
    let facts = [
        ("kernel", kernel),
        ("cpu-model", "intel-xeon"),
        ("firmware", "f1"),
    ];
    let facts = facts.map(|(family, value)| (family.to_owned(), vec![value.to_owned()]));
    let said = flows.hosts.lab.hosts.update(name, |host| {
        host.kinds = vec![TboxType::Dc];
        host.arch = "x86_64".to_owned();
        host.group = "g".to_owned();
        host.memory_mb = 64 * 1024;
        host.facts = facts.into();
        host.tags = [CONTENT_TAG, CONTAINER_TAG].map(str::to_owned).into();
        host.seen_ms = flows.ctx.clock.wall_ms();
    });
    said.unwrap();
}

async fn lab() -> (tempfile::TempDir, Arc<Flows>) {
    let (data, flows) = flows().await;
    prepare(&flows).await;
    (data, flows)
}

/// A host; audits are tested by themselves.
async fn prepare(flows: &Flows) {
    host(flows, "h1", "6.1");
    audit(flows, 0).await;
}

async fn audit(flows: &Flows, percent: u8) {
    let settings = ReuseSettings {
        audit_percent: Some(percent),
        ..ReuseSettings::default()
    };
    flows.reuse.set_reuse_settings(settings).await.unwrap();
}

fn spec(more: &Value) -> Spec {
    let mut spec = Spec::from_iter([
        ("suite".to_owned(), json!("build")),
        ("script".to_owned(), json!("make")),
        ("testbox".to_owned(), json!("dc")),
        ("my_account".to_owned(), json!("ann")),
        ("reuse".to_owned(), json!({"within": "14d"})),
    ]);
    spec.extend(more.as_object().cloned().unwrap_or_default());
    spec
}

async fn submit_all(flows: &Arc<Flows>, specs: Vec<Spec>) -> Vec<SubmitItem> {
    let items = specs.into_iter().map(Ok).collect();
    let said = Credentials::default();
    let submitted = flows
        .submission
        .submit(items, &said, SubmitOptions::default())
        .await;
    submitted.unwrap().items
}

async fn submit(flows: &Arc<Flows>, more: &Value) -> SubmitItem {
    submit_all(flows, vec![spec(more)]).await.remove(0)
}

async fn accepted(flows: &Arc<Flows>, more: &Value) -> JobId {
    id_of(&submit(flows, more).await)
}

fn id_of(item: &SubmitItem) -> JobId {
    assert_eq!(item.message, "");
    item.job_id.parse().unwrap()
}

async fn read(flows: &Flows, id: JobId) -> JobState {
    flows.jobs.stored_job(id).await.unwrap().state
}

/// A testbox gets the job and runs it to this end.
async fn run_with(flows: &Arc<Flows>, id: JobId, end: impl Fn(&mut JobState) + Send + Sync) {
    let class = flows.hosts.lab.hosts.get("h1").as_ref().and_then(Class::of);
    let host_class = class.map(|class| class.text()).unwrap_or_default();
    let begin = |state: &JobState| {
        assert!(state.ready, "{state:?}");
        Ok(Some(JobState {
            stage: Stage::Running,
            host: "h1".to_owned(),
            host_class: host_class.clone(),
            host_group: "g".to_owned(),
            claim_token: "t".to_owned(),
            dispatch_ms: 1,
            running_ms: 1,
            ..state.clone()
        }))
    };
    flows.jobs.change(id, begin).await.unwrap();
    let now_ms = flows.ctx.clock.wall_ms();
    let over = |state: &JobState| {
        let mut next = ended(state, Stage::Finish, Health::Success, now_ms, "");
        next.data_readiness = DataReadiness::Complete;
        end(&mut next);
        Ok(Some(next))
    };
    flows.jobs.change(id, over).await.unwrap();
}

async fn run(flows: &Arc<Flows>, id: JobId) {
    run_with(flows, id, |_| {}).await;
}

/// Runs it as one that fails.
async fn fail(flows: &Arc<Flows>, id: JobId) {
    run_with(flows, id, |state| state.health = Health::Fail).await;
}

/// The job whose result a new one has; the error says why it runs.
async fn taken(flows: &Arc<Flows>, more: &Value) -> Result<JobId, String> {
    let id = accepted(flows, more).await;
    let state = read(flows, id).await;
    if let Some(from) = state.reused_from {
        assert_eq!(
            (state.stage, state.health),
            (Stage::Finish, Health::Success)
        );
        assert_eq!((state.dispatch_ms, state.used_ms), (0, 0));
        return Ok(from);
    }
    // It waits for nobody any more.
    let gone = |state: &JobState| Ok(Some(cancelled(state, 1, "")));
    flows.jobs.change(id, gone).await.unwrap();
    Err(state.reuse.unwrap_or_default().why)
}

fn has(answer: &Result<JobId, String>, word: &str) -> bool {
    matches!(answer, Err(why) if why.contains(word))
}

#[tokio::test]
async fn the_same_thing_is_answered_and_never_counts_as_run() {
    let (_data, flows) = lab().await;
    let first = submit(&flows, &json!({})).await;
    assert_eq!(
        (first.job_state.as_str(), first.reused_from.as_str()),
        ("submit", "")
    );
    let id = id_of(&first);
    run_with(&flows, id, |state| {
        state.cases = Some(Box::new(CaseCounts {
            passed: 7,
            ..CaseCounts::default()
        }));
        state.exit_code = Some(0);
    })
    .await;
    let again = submit(
        &flows,
        &json!({"priority": 9, "labels": ["x"], "max_run": 1}),
    )
    .await;
    assert_eq!(
        (again.job_state.as_str(), again.reused_from),
        ("finish", first.job_id)
    );
    assert_eq!(again.result_root, first.result_root);
    let state = read(&flows, again.job_id.parse().unwrap()).await;
    assert_eq!(state.cases.as_ref().map(|cases| cases.passed), Some(7));
    assert_eq!((state.exit_code, state.fingerprint.as_str()), (Some(0), ""));
    // The limit counts the one that ran, and none that took its result.
    let third = submit(&flows, &json!({"max_run": 1})).await;
    assert_eq!(third.job_state, "finish");
    let refused = submit(&flows, &json!({"max_run": 1, "reuse": "no"})).await;
    assert!(
        refused.message.contains("max_run: 1 job"),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn each_part_of_the_key_changed_in_turn_makes_it_run() {
    let (_data, flows) = lab().await;
    let inputs = [input(&flows, "a").await, input(&flows, "b").await];
    let base = json!({"n": 1, "os_version": "12", "inputs": inputs[0]});
    let id = accepted(&flows, &base).await;
    run(&flows, id).await;
    assert_eq!(taken(&flows, &base).await, Ok(id));
    for (field, value) in [
        ("inputs", json!(inputs[1])),
        ("script", json!("make all")),
        ("n", json!(2)),
        ("os_version", json!("13")),
        ("need_memory", json!("2g")),
    ] {
        let mut changed = base.clone();
        changed[field] = value;
        let answer = taken(&flows, &changed).await;
        assert!(
            has(&answer, "no earlier job succeeded"),
            "{field}: {answer:?}"
        );
    }
    let settings = ReuseSettings {
        salt: "new".to_owned(),
        audit_percent: Some(0),
        ..ReuseSettings::default()
    };
    flows.reuse.set_reuse_settings(settings).await.unwrap();
    assert!(has(&taken(&flows, &base).await, "no earlier job"));
}

#[tokio::test]
async fn a_result_counts_only_where_a_living_host_of_its_class_could_run_the_job() {
    let (_data, flows) = lab().await;
    let id = accepted(&flows, &json!({})).await;
    run(&flows, id).await;
    host(&flows, "h1", "6.2");
    let answer = taken(&flows, &json!({})).await;
    assert!(has(&answer, "kernel '6.1' is now '6.2'"), "{answer:?}");
    host(&flows, "h2", "6.1");
    assert_eq!(taken(&flows, &json!({})).await, Ok(id));
    // It was silent for too long.
    flows
        .hosts
        .lab
        .hosts
        .update("h2", |host| host.seen_ms = 1)
        .unwrap();
    assert!(taken(&flows, &json!({})).await.is_err());
    host(&flows, "h2", "6.1");
    flows
        .hosts
        .lab
        .hosts
        .update("h2", |host| host.kinds = vec![TboxType::Vm])
        .unwrap();
    assert!(taken(&flows, &json!({})).await.is_err());
}

#[tokio::test]
async fn a_host_that_does_not_say_what_it_is_leaves_no_result() {
    let (_data, flows) = lab().await;
    flows
        .hosts
        .lab
        .hosts
        .update("h1", |host| host.facts.clear())
        .unwrap();
    let id = accepted(&flows, &json!({})).await;
    run(&flows, id).await;
    assert!(has(&taken(&flows, &json!({})).await, "no earlier job"));
}

#[tokio::test]
async fn an_old_result_and_one_whose_job_is_gone_do_not_count() {
    let (_data, flows) = lab().await;
    let id = accepted(&flows, &json!({})).await;
    let now_ms = flows.ctx.clock.wall_ms();
    run_with(&flows, id, |state| state.end_ms = now_ms - 3_600_000).await;
    let answer = taken(&flows, &json!({"reuse": "10m"})).await;
    assert!(has(&answer, "too old"), "{answer:?}");
    assert_eq!(taken(&flows, &json!({"reuse": "2h"})).await, Ok(id));
    // The entry names a job that the store does not have.
    let key = read(&flows, id).await.reuse.unwrap().key;
    let rename = async |entry: Option<Entry>| {
        let mut entry = entry.unwrap_or_default();
        entry.results[0].job = JobId::new(77);
        Ok::<_, fairlead_base::errors::Refusal>(entry)
    };
    flows
        .ctx
        .docs
        .change(&entry_id(&key, Some("ann")), rename)
        .await
        .unwrap();
    assert!(has(
        &taken(&flows, &json!({"reuse": "2h"})).await,
        "is gone"
    ));
}

/// Stores a file as content; its id, and that of its chunk.
async fn put(flows: &Flows, text: &str) -> (Digest, Digest) {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let chunk = Digest::of(&bytes);
    flows.ctx.content.put_chunk(chunk, bytes).await.unwrap();
    let chunk_of = Chunk {
        digest: chunk,
        size: u32::try_from(text.len()).unwrap(),
    };
    let file = File {
        path: "out".to_owned(),
        kind: Kind::File {
            executable: false,
            size: u64::from(chunk_of.size),
            digest: chunk,
            chunks: vec![chunk_of],
        },
    };
    let manifest = Manifest::new(vec![file]).unwrap().encode().unwrap();
    let (id, _) = flows
        .ctx
        .content
        .put_manifest(manifest.into())
        .await
        .unwrap();
    (id, chunk)
}

/// The same as an input of ann's; its id.
async fn input(flows: &Flows, text: &str) -> String {
    let (id, _) = put(flows, text).await;
    let owned = fairlead_content::Owned::default();
    flows.ctx.content.own("ann", id, &owned).await.unwrap();
    id.to_string()
}

#[tokio::test]
async fn a_result_without_all_of_its_outputs_does_not_count() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("content");
    let content = Location::Folder(folder.clone()).open().unwrap();
    let config = Config::embedded(data.path().to_owned());
    let flows = flows_with(embedded(&data), config, Clock::system(), content);
    prepare(&flows).await;
    let outputs = json!({"outputs": ["."]});
    let id = accepted(&flows, &outputs).await;
    let (content, chunk) = put(&flows, "linux").await;
    run_with(&flows, id, |state| state.outputs = content.to_string()).await;
    assert_eq!(taken(&flows, &outputs).await, Ok(id));
    let name = chunk.to_string();
    let path = folder.join("chunks").join(&name[..2]).join(&name);
    std::fs::remove_file(path).unwrap();
    assert!(has(&taken(&flows, &outputs).await, "no longer there"));
    put(&flows, "linux").await;
    assert_eq!(taken(&flows, &outputs).await, Ok(id));
    // It was to leave some, and left none.
    let none = json!({"outputs": ["x"]});
    let id = accepted(&flows, &none).await;
    run(&flows, id).await;
    assert!(has(&taken(&flows, &none).await, "no longer there"));
}

#[tokio::test]
async fn a_result_whose_files_were_removed_or_changed_does_not_count() {
    let (_data, flows) = lab().await;
    let leaves = async |n: u32, name: &str| {
        let id = accepted(&flows, &json!({"n": n})).await;
        let root = read(&flows, id).await.result_root;
        let folder = flows.ctx.config.data_dir.join(root.trim_start_matches('/'));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), "passed").unwrap();
        run(&flows, id).await;
        assert_eq!(taken(&flows, &json!({"n": n})).await, Ok(id));
        folder
    };
    let folder = leaves(1, "out").await;
    std::fs::write(folder.join("out"), "pass").unwrap();
    assert!(has(
        &taken(&flows, &json!({"n": 1})).await,
        "removed or changed"
    ));
    let folder = leaves(2, "out").await;
    std::fs::remove_dir_all(folder).unwrap();
    assert!(has(
        &taken(&flows, &json!({"n": 2})).await,
        "removed or changed"
    ));
    // Another result is still good.
    leaves(3, "out").await;
}

#[tokio::test]
async fn a_flaky_key_is_never_reused() {
    let (_data, flows) = lab().await;
    let id = accepted(&flows, &json!({})).await;
    run(&flows, id).await;
    let again = accepted(&flows, &json!({"reuse": "1s", "x": null})).await;
    assert!(read(&flows, again).await.reused_from.is_none());
    // Another job of the same key fails: it was made to run.
    let other = accepted(&flows, &json!({"n": 5})).await;
    fail(&flows, other).await;
    let other = accepted(&flows, &json!({"n": 5})).await;
    run(&flows, other).await;
    let answer = taken(&flows, &json!({"n": 5})).await;
    assert!(has(&answer, "flaky"), "{answer:?}");
    // So is one that passed only at its second try.
    let retried = accepted(&flows, &json!({"n": 6})).await;
    run_with(&flows, retried, |state| {
        let attempt = json!({"attempt": 1, "host": "h1", "stage": "running", "health": "fail",
            "dispatch_ms": 1, "end_ms": 2});
        state
            .attempts
            .push(serde_json::from_value(attempt).unwrap());
    })
    .await;
    assert!(has(&taken(&flows, &json!({"n": 6})).await, "another try"));
    assert_eq!(taken(&flows, &json!({})).await, Ok(id), "this key is good");
}

async fn share(flows: &Flows, account: &str, share_results: bool) {
    let change = fairlead_api::AccountChange {
        share_results: Some(share_results),
        ..fairlead_api::AccountChange::default()
    };
    let (_, stored) =
        crate::people::accounts::set_account(&flows.ctx.docs, account, &change, false, 1)
            .await
            .unwrap();
    flows
        .people
        .accounts
        .wrote(account, stored.version, stored.doc);
}

#[tokio::test]
async fn a_failure_of_ones_own_speaks_against_a_shared_success() {
    let (_data, flows) = lab().await;
    share(&flows, "ann", true).await;
    let bobs = json!({"my_account": "bob"});
    let failed = accepted(&flows, &bobs).await;
    fail(&flows, failed).await;
    let id = accepted(&flows, &json!({})).await;
    run(&flows, id).await;
    assert!(has(&taken(&flows, &bobs).await, "flaky"));
    let cids = json!({"my_account": "cid"});
    assert_eq!(taken(&flows, &cids).await, Ok(id), "bob does not share");
}

#[tokio::test]
async fn a_result_of_another_account_counts_only_while_that_shares() {
    let (_data, flows) = lab().await;
    let bob = json!({"my_account": "bob", "outputs": ["."]});
    let ann = json!({"outputs": ["."]});
    let id = accepted(&flows, &ann).await;
    let (content, _) = put(&flows, "kernel").await;
    run_with(&flows, id, |state| state.outputs = content.to_string()).await;
    assert!(taken(&flows, &bob).await.is_err());
    share(&flows, "ann", true).await;
    assert!(taken(&flows, &bob).await.is_err(), "it ended before");
    let more = json!({"outputs": ["."], "n": 2});
    let shared = accepted(&flows, &more).await;
    run_with(&flows, shared, |state| state.outputs = content.to_string()).await;
    let bobs = json!({"my_account": "bob", "outputs": ["."], "n": 2});
    assert_eq!(taken(&flows, &bobs).await, Ok(shared));
    assert!(
        flows
            .ctx
            .content
            .owned("bob", content)
            .await
            .unwrap()
            .is_some(),
        "bob may read it"
    );
    share(&flows, "ann", false).await;
    assert!(has(&taken(&flows, &bobs).await, "another account"));
}
