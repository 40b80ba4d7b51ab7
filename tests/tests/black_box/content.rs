//! Tests of inputs and outputs by content, played by hand: what jobs get, what they leave, and who may name what.

use fairlead_api::Grant;
use fairlead_job::CONTENT_TAG;
use fairlead_tests::{
    Guarded, Http, Scheduler, Store, Testbox, content::Input, eventually, jobs, on_both_stores,
};
use reqwest::Method;
use serde_json::{Value, json};

on_both_stores!(
    outputs_of_one_job_are_inputs_of_the_next,
    a_job_whose_input_was_not_left_does_not_run,
    what_is_no_input_of_the_account_is_refused,
    shards_have_the_inputs_of_their_job,
    the_host_that_holds_an_input_gets_the_job,
    an_account_puts_no_more_than_its_quota,
    a_machine_without_an_agent_gets_no_inputs,
);

/// Address of a machine that boots over the network.
const MAC: &str = "52-54-00-00-00-0b";
const END: &str = "job_stage=finish&job_health=success&exit_code=0&job_data_readiness=complete";

/// Returns a vm/dc host whose agent fetches inputs and puts outputs.
fn with_an_agent(http: &Http, host: &str, memory_mb: u32) -> Testbox {
    let mut testbox = Testbox::dc(http, host, memory_mb);
    testbox.offer.tags = vec![CONTENT_TAG.to_owned()];
    testbox
}

/// Returns the next job.
async fn take(testbox: &mut Testbox) -> Grant {
    for _ in 0..10 {
        if let Some(grant) = testbox.ask(2).await.pop() {
            return grant;
        }
    }
    panic!("no job came");
}

fn as_job(grant: &Grant) -> String {
    format!("&job_id={}&job_token={}", grant.job_id, grant.job_token)
}

async fn ends(http: &Http, id: &str) -> Value {
    eventually("the job ends", async || {
        let job = http.job(id).await;
        let stage = job["job_stage"].as_str().unwrap_or_default();
        (stage == "finish" || stage.starts_with("abort")).then_some(job)
    })
    .await
}

async fn outputs_of_one_job_are_inputs_of_the_next(store: Store) {
    let lab = Guarded::start(store, &[]).await;
    let (alice, boxes) = (lab.user("alice").await, lab.testbox("box", &["*"]).await);
    let source = Input::of("int main;");
    source.put(&alice, "").await;
    let build = json!({"name": "build", "inputs": source.id, "outputs": ["vmlinux", "m/"]});
    let test = json!({"needs": "build", "inputs": [{"from": "build", "folder": "kernel"}]});
    let both = [build, test].map(|fields| jobs::with(jobs::dc("alice"), &fields));
    let ids = alice.submit(&json!(both)).await;
    let waits = alice.job(&ids[1]).await;
    assert_eq!(waits["inputs"], json!([format!("job:{}", ids[0])]));
    assert_eq!(waits["declared_inputs"][0]["from"], "build");

    let mut testbox = with_an_agent(&boxes, "host-1", 8 << 10);
    let grant = take(&mut testbox).await;
    assert_eq!(json!(grant.inputs), json!([{"id": source.id}]));
    assert_eq!(grant.outputs, ["vmlinux", "m"]);
    testbox.report(&grant, "job_stage=running").await;
    let kernel = Input::of("a kernel");
    let end = format!("{END}&outputs={}", kernel.id);
    let early = testbox.report(&grant, &end).await.refused(400);
    assert_eq!(early.code.as_str(), "bad_field", "{early:?}");
    let odd = testbox.report(&grant, "outputs=x").await.refused(400);
    assert_eq!(odd.code.as_str(), "bad_query", "{odd:?}");
    kernel.put(&lab.nobody(), &as_job(&grant)).await;
    for _ in 0..2 {
        // The answer may be lost, so the report is repeated.
        let told = testbox.report(&grant, &end).await;
        assert_eq!(told.status, 200, "{}", told.text);
    }
    testbox.drop_job(&grant.job_id);
    let late = Input::of("late").end(&lab.nobody(), &as_job(&grant)).await;
    late.refused(423);
    assert_eq!(alice.field(&ids[0], "outputs").await, kernel.id);
    let theirs = alice
        .get(&format!("/scheduler/v1/content/{}", kernel.id))
        .await;
    assert_eq!(theirs.json()["job_id"], json!(ids[0]));

    let grant = take(&mut testbox).await;
    assert_eq!(grant.job_id, ids[1]);
    let expected = json!([{"id": kernel.id, "folder": "kernel"}]);
    assert_eq!(json!(grant.inputs), expected);
    let path = format!("/scheduler/v1/content/manifests/{}?", kernel.id);
    let read = lab.nobody().get(&format!("{path}{}", as_job(&grant))).await;
    assert_eq!(
        (read.status, read.text.as_bytes()),
        (200, &*kernel.manifest)
    );
    testbox.finish(&grant).await;

    // The job runs again without the job that it needed.
    let path = format!("/scheduler/v1/jobs/{}/rerun", ids[1]);
    let again = alice.post(&path, &json!({})).await.json();
    assert_ne!(again[0]["job_id"], "0", "{again}");
    let grant = take(&mut testbox).await;
    assert_eq!(json!(grant.inputs), expected);
}

async fn a_job_whose_input_was_not_left_does_not_run(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let test = json!({"needs": "build", "inputs": {"from": "build"}});
    let both =
        [json!({"name": "build"}), test].map(|fields| jobs::with(jobs::dc("alice"), &fields));
    let ids = http.submit(&json!(both)).await;
    let mut testbox = with_an_agent(&http, "host-1", 8 << 10);
    let grant = take(&mut testbox).await;
    testbox.finish(&grant).await;
    let child = ends(&http, &ids[1]).await;
    assert_eq!(child["job_stage"], "abort_wait", "{child}");
    let reason = child["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains(&ids[0]) && reason.contains("no outputs"),
        "{reason}"
    );
}

async fn what_is_no_input_of_the_account_is_refused(store: Store) {
    let lab = Guarded::start(store, &[]).await;
    let (alice, bob) = (lab.user("alice").await, lab.user("bob").await);
    let (own, others, unknown) = (Input::of("own"), Input::of("others"), Input::of("unknown"));
    own.put(&alice, "").await;
    others.put(&bob, "").await;
    let job = |input: &Value| jobs::with(jobs::dc("alice"), &json!({"inputs": input}));
    let both = json!([job(&json!([own.id])), job(&json!([{"id": others.id}]))]);
    let items = alice.submit_items(&both).await;
    assert_ne!(items[0].job_id, "0", "{items:?}");
    assert_eq!(
        (items[1].job_id.as_str(), items[1].code.as_str()),
        ("0", "bad_field")
    );
    assert!(items[1].message.contains(&others.id), "{items:?}");
    let items = alice.submit_items(&job(&json!(unknown.id))).await;
    assert_eq!(items[0].code, "bad_field");
    assert!(items[0].hint.contains("fairlead put"), "{items:?}");
    let dry = |input: &Value| {
        let job = job(input);
        let alice = alice.clone();
        async move {
            let path = "/scheduler/v1/jobs/submit?dry_run=true";
            let reply = alice.post(path, &job).await;
            let items: Value = serde_json::from_str(&reply.text).expect("a list");
            items[0]["code"].as_str().unwrap_or_default().to_owned()
        }
    };
    assert_eq!(dry(&json!(unknown.id)).await, "bad_field");
    assert_eq!(dry(&json!(own.id)).await, "");
    let matrix = json!([
        jobs::with(jobs::dc("alice"), &json!({"name": "build", "nr": 1})),
        jobs::with(jobs::dc("alice"), &json!({"name": "build", "nr": 2})),
        jobs::with(
            jobs::dc("alice"),
            &json!({"needs": "build", "inputs": {"from": "build"}})
        ),
    ]);
    let items = alice.submit_items(&matrix).await;
    assert_eq!(items[2].code, "bad_field", "{items:?}");
    assert!(items[2].message.contains("2 jobs"), "{items:?}");
    // An account that gave up content cannot name it any more, but earlier jobs still have it.
    let path = format!("/scheduler/v1/content/{}", others.id);
    let gone = bob.send(Method::DELETE, &path, "", Vec::new()).await;
    assert_eq!(gone.status, 200, "{}", gone.text);
    assert_eq!(bob.get(&path).await.status, 404);
}

async fn shards_have_the_inputs_of_their_job(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let input = Input::of("tests");
    input.put(&http, "").await;
    let fields = json!({"shards": 2, "inputs": [{"id": input.id, "folder": "t"}], "outputs": "."});
    http.submit(&jobs::with(jobs::dc("alice"), &fields)).await;
    // The host has room for one job at a time.
    let mut testbox = with_an_agent(&http, "host-1", 1 << 10);
    for _ in 0..2 {
        let grant = take(&mut testbox).await;
        assert_eq!(
            json!(grant.inputs),
            json!([{"id": input.id, "folder": "t"}])
        );
        assert_eq!(grant.outputs, ["."]);
        testbox.finish(&grant).await;
    }
}

async fn the_host_that_holds_an_input_gets_the_job(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let input = Input::of("a large one");
    input.put(&http, "").await;
    // The other host has more memory, which decides otherwise.
    let mut holder = with_an_agent(&http, "holder", 4 << 10);
    holder.offer.content = vec![input.chunk[..12].to_owned()];
    let mut larger = with_an_agent(&http, "larger", 64 << 10);
    let both_wait = async || {
        let hosts = http.get("/scheduler/v1/hosts").await.json();
        let hosts = hosts.as_array().cloned().unwrap_or_default();
        let waiting = hosts.iter().filter(|host| host["state"] == "waiting");
        (waiting.count() == 2).then_some(())
    };
    let of_holder = async {
        let grants = holder.ask(30).await;
        // The other host need not wait any longer.
        let plain = http.submit(&jobs::dc("alice")).await;
        (grants, plain)
    };
    let submits = async {
        eventually("both wait", both_wait).await;
        let fields = json!({"inputs": input.id});
        http.submit(&jobs::with(jobs::dc("alice"), &fields)).await
    };
    let ((first, plain), second, ids) = tokio::join!(of_holder, larger.ask(30), submits);
    let got = |grants: &[Grant]| {
        grants
            .iter()
            .map(|it| it.job_id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!((got(&first), got(&second)), (ids, plain));
}

async fn an_account_puts_no_more_than_its_quota(store: Store) {
    let lab = Guarded::start(store, &[]).await;
    let alice = lab.user("alice").await;
    let limits = json!({"limits": {"content_mb": {"hard": 1}}});
    let path = "/scheduler/v1/accounts/alice";
    assert_eq!(lab.admin.post(path, &limits).await.status, 200);
    let (first, second) = (
        Input::of(&"a".repeat(800 << 10)),
        Input::of(&"b".repeat(800 << 10)),
    );
    first.put(&alice, "").await;
    // A chunk counts as soon as it is sent.
    let chunk = format!("/scheduler/v1/content/chunks/{}?put=by-hand", second.chunk);
    let sent = alice.send(Method::PUT, &chunk, "", second.bytes.clone());
    let refused = sent.await.refused(403);
    assert_eq!(refused.code.as_str(), "quota", "{refused:?}");
    let soft = json!({"limits": {"content_mb": {"soft": 1}}});
    lab.admin.post(path, &soft).await.refused(400);
}

async fn a_machine_without_an_agent_gets_no_inputs(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let input = Input::of("for a machine");
    input.put(&http, "").await;
    let fields = json!({"inputs": input.id});
    let ids = http.submit(&jobs::with(jobs::hw("alice"), &fields)).await;
    let host = json!({"mac_addr": [MAC], "arch": std::env::consts::ARCH});
    let registered = http.post("/scheduler/v1/hosts/machine", &host).await;
    assert_eq!(registered.status, 200, "{}", registered.text);
    let path = format!("/boot.ipxe/mac/{MAC}?wait=0");
    let idle = http.get(&path).await;
    assert!(!idle.text.contains(&ids[0]), "{}", idle.text);
    let path = format!("/scheduler/v1/jobs/{}/explain", ids[0]);
    let explained = http.get(&path).await.text;
    assert!(explained.contains(CONTENT_TAG), "{explained}");
    // An admin declares that the booted system has an agent.
    let path = format!("/boot.ipxe/mac/{MAC}?wait=30&tags={CONTENT_TAG}");
    let boots = http.get(&path).await;
    assert!(boots.text.contains(&ids[0]), "{}", boots.text);
}
