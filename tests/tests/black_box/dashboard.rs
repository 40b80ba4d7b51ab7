//! Tests of what the dashboard asks: logins, pages, the live stream, the audit log, and actions that are shown first.

use std::{collections::BTreeMap, time::Duration};

use fairlead_tests::{
    Guarded, Http, Scheduler, Store, Testbox, eventually, header, jobs, on_both_stores,
};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

on_both_stores!(
    a_browser_that_logged_in_acts_by_its_own_pages_only,
    pages_say_what_browsers_may_do_with_them,
    a_stream_tells_what_changes_and_goes_on_behind_it,
    the_audit_log_shows_each_what_is_theirs,
    an_action_touches_what_was_shown_and_nothing_else,
    a_paused_lab_gives_nothing_away,
    jobs_run_again_once_and_hosts_close,
);

const LIMIT_S: u64 = 60;

/// Sends a request as a browser does.
async fn browser(
    base: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Response {
    let client = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    let client = client.build().expect("an HTTP client");
    let url = format!("{base}{path}");
    let mut request = match body {
        Some(body) => client.post(url).body(body.to_string()),
        None => client.get(url),
    };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.expect("an answer")
}

/// Logs in, and returns the cookie.
async fn log_in(base: &str, body: &Value) -> Option<String> {
    let answer = browser(base, "/scheduler/v1/login", &[("origin", base)], Some(body)).await;
    if answer.status() != StatusCode::OK {
        return None;
    }
    let cookie = header(&answer, "set-cookie");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    cookie.split(';').next().map(str::to_owned)
}

async fn a_browser_that_logged_in_acts_by_its_own_pages_only(store: Store) {
    let lab = Guarded::start(store, &[]).await;
    let base = lab.scheduler.url();
    let ann = lab.user("ann").await;
    let token = ann.token().expect("a token");
    assert_eq!(log_in(&base, &json!({"token": "nonsense"})).await, None);
    assert_eq!(log_in(&base, &json!({"my_account": "ann"})).await, None);
    let cookie = log_in(&base, &json!({"token": token}))
        .await
        .expect("a cookie");
    assert!(!cookie.contains(token), "the token can be read: {cookie}");
    let whoami = "/scheduler/v1/whoami";
    let me = browser(&base, whoami, &[("cookie", &cookie)], None).await;
    let me = me.bytes().await.expect("a body");
    let me: Value = serde_json::from_slice(&me).expect("JSON");
    assert_eq!(me["my_account"], "ann");
    // A request that changes something must name the origin of the page.
    let submit = "/scheduler/v1/jobs/submit";
    let job = jobs::dc("ann");
    let status = async |headers: &[(&str, &str)]| {
        let answer = browser(&base, submit, headers, Some(&job)).await;
        answer.status().as_u16()
    };
    let cookie_of = ("cookie", cookie.as_str());
    assert_eq!(status(&[cookie_of]).await, 403);
    assert_eq!(
        status(&[cookie_of, ("origin", "http://evil.example")]).await,
        403
    );
    assert_eq!(status(&[cookie_of, ("origin", &base)]).await, 200);
    // A changed cookie is invalid, and a testbox gets no cookie.
    let (kept, last) = cookie.split_at(cookie.len() - 1);
    let tampered = format!("{kept}{}", if last == "0" { "1" } else { "0" });
    let nobody = browser(&base, whoami, &[("cookie", &tampered)], None).await;
    assert_eq!(nobody.status().as_u16(), 401);
    let consume = "/scheduler/v1/testboxes/h/consume";
    let answer = browser(
        &base,
        consume,
        &[cookie_of, ("origin", &base)],
        Some(&json!({})),
    )
    .await;
    assert_eq!(answer.status().as_u16(), 401);
    // Replacing a token ends its logins.
    let renewed = json!({"new_token": true, "overlap_s": 0});
    lab.admin.post("/scheduler/v1/accounts/ann", &renewed).await;
    eventually("the login is over", async || {
        let me = browser(&base, whoami, &[("cookie", &cookie)], None).await;
        (me.status().as_u16() == 401).then_some(())
    })
    .await;
    let out = browser(
        &base,
        "/scheduler/v1/logout",
        &[("origin", &base)],
        Some(&json!({})),
    )
    .await;
    assert!(header(&out, "set-cookie").contains("Max-Age=0"));
}

async fn pages_say_what_browsers_may_do_with_them(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let base = scheduler.url();
    let home = browser(&base, "/", &[("accept", "text/html")], None).await;
    assert_eq!(
        (home.status().as_u16(), header(&home, "location")),
        (303, "/ui/".to_owned())
    );
    for path in ["/ui", "/ui/", "/ui/jobs?stage=running", "/ui/hosts/a-b"] {
        let page = browser(&base, path, &[], None).await;
        assert_eq!(page.status().as_u16(), 200, "{path}");
        let policy = header(&page, "content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(header(&page, "content-type").starts_with("text/html"));
        let tag = header(&page, "etag");
        let again = browser(&base, path, &[("if-none-match", &tag)], None).await;
        assert_eq!(again.status().as_u16(), 304, "{path}");
    }
    // This reads the compressed bytes, because client libraries unpack them silently.
    let host = base.trim_start_matches("http://");
    let asked = format!(
        "GET /ui/app.js HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
    );
    let script = scheduler.http().raw(&asked).await;
    let (head, _) = script.split_once("\r\n\r\n").expect("a head");
    for line in ["content-encoding: gzip", "content-type: text/javascript"] {
        assert!(head.contains(line), "{line} in {head}");
    }
    let missing = browser(&base, "/ui/../Cargo.toml", &[], None).await;
    assert_eq!(missing.status().as_u16(), 404);
    assert_eq!(
        browser(&base, "/ui/none.js", &[], None)
            .await
            .status()
            .as_u16(),
        404
    );
}

/// Events of a stream, by name and data.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    async fn open(base: &str, last: &str) -> Self {
        let headers: &[(&str, &str)] = &[("last-event-id", last)];
        let headers = if last.is_empty() { &[] } else { headers };
        let response = browser(base, "/scheduler/v1/live", headers, None).await;
        assert_eq!(header(&response, "content-type"), "text/event-stream");
        Self {
            response,
            text: String::new(),
        }
    }

    /// Returns the next event: its id, name and data.
    async fn next(&mut self) -> (String, String, Value) {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let lines = event.lines().filter_map(|line| line.split_once(": "));
                let fields: BTreeMap<String, String> = lines
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                let rest = rest.to_owned();
                self.text = rest;
                if let (Some(id), Some(name), Some(data)) =
                    (fields.get("id"), fields.get("event"), fields.get("data"))
                {
                    let data = serde_json::from_str(data).expect("JSON");
                    return (id.clone(), name.clone(), data);
                }
                continue;
            }
            let piece = timeout(Duration::from_secs(LIMIT_S), self.response.chunk()).await;
            let piece = piece.expect("news in time").expect("the stream goes on");
            self.text += &String::from_utf8_lossy(&piece.expect("the stream goes on"));
        }
    }
}

async fn a_stream_tells_what_changes_and_goes_on_behind_it(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let (base, http) = (scheduler.url(), scheduler.http());
    let mut events = Events::open(&base, "").await;
    let (_, name, snapshot) = events.next().await;
    assert_eq!(name, "snapshot");
    assert_eq!(snapshot["tables"]["lab"]["lab"]["store"]["well"], true);
    assert_eq!(snapshot["tables"]["queues"]["vip"]["waiting"], 0);
    let id = http.submit(&jobs::dc("ann")).await.remove(0);
    let (mut row, mut last) = (Value::Null, String::new());
    for _ in 0..LIMIT_S {
        let (at, name, delta) = events.next().await;
        assert_eq!(name, "delta");
        last = at;
        if let Some(news) = delta["tables"]["queues"].get("ann") {
            row = news.clone();
        }
        if row["waiting"] == 1 {
            break;
        }
    }
    assert!(
        row["waiting"] == 1 && row["share_permille"].is_number(),
        "{row}"
    );
    let hold = json!({"job_ids": [id], "hold": true});
    http.post("/scheduler/v1/jobs/change", &hold).await;
    let mut told = false;
    for _ in 0..LIMIT_S {
        let (at, _, delta) = events.next().await;
        last = at;
        let changed = delta["jobs"].as_array().expect("a list");
        told |= changed.contains(&json!(id));
        if told {
            break;
        }
    }
    assert!(told, "nobody was told that the job changed");
    let release = json!({"job_ids": [id], "hold": false});
    http.post("/scheduler/v1/jobs/change", &release).await;
    drop(events);
    // A client that returns goes on; a client of another run begins again.
    let mut events = Events::open(&base, &last).await;
    assert_eq!(events.next().await.1, "delta");
    let mut events = Events::open(&base, "another/7").await;
    let (_, name, _) = events.next().await;
    assert_eq!(name, "snapshot");
    eventually("the queue is in the overview", async || {
        let shown = http.get("/scheduler/v1/overview").await.json();
        (shown["tables"]["queues"]["ann"]["waiting"] == 1).then_some(())
    })
    .await;
    let stages = eventually("stages are counted", async || {
        let shown = http.get("/scheduler/v1/overview").await.json();
        let lab = shown["tables"]["lab"]["lab"].clone();
        (lab["stages"]["submit"] == 1).then_some(shown)
    })
    .await;
    assert!(
        stages["tables"]["queues"]["ann"]["oldest_ready_ms"].is_number(),
        "{stages}"
    );
}

async fn the_audit_log_shows_each_what_is_theirs(store: Store) {
    let lab = Guarded::start(store, &[]).await;
    let (ann, bob) = (lab.user("ann").await, lab.user("bob").await);
    lab.admin
        .post("/scheduler/v1/queues/ci", &json!({"weight": 30}))
        .await;
    let id = ann.submit(&jobs::dc("ann")).await.remove(0);
    let cancelled = ann
        .post(&format!("/scheduler/v1/jobs/{id}/cancel"), &json!({}))
        .await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    let seen = async |http: &Http, query: &str| {
        let path = format!("/scheduler/v1/audit?{query}");
        let list = http.get(&path).await.json();
        let events = list["events"].as_array().expect("a list").clone();
        let what = |event: &Value| event["what"].as_str().unwrap_or_default().to_owned();
        (events.iter().map(what).collect::<Vec<_>>(), list)
    };
    eventually("all is noted", async || {
        let (all, _) = seen(&lab.admin, "").await;
        let has = |what: &str| all.iter().any(|one| one == what);
        let acts = ["replica.start", "account.set", "queue.set", "job.cancel"];
        acts.into_iter().all(has).then_some(())
    })
    .await;
    let (anns, _) = seen(&ann, "").await;
    assert_eq!(anns, ["job.cancel", "queue.set", "replica.start"]);
    let (bobs, _) = seen(&bob, "").await;
    assert_eq!(bobs, ["queue.set", "replica.start"]);
    let (found, list) = seen(&lab.admin, "what=queue.*&subject=ci&who=root").await;
    assert_eq!(found, ["queue.set"]);
    assert_eq!(list["events"][0]["detail"]["weight"], 30);
    // The pages together give the same list.
    let (all, _) = seen(&lab.admin, "").await;
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let (some, list) = seen(&lab.admin, &format!("limit=1&after={after}")).await;
        paged.extend(some);
        let Some(next) = list["next"].as_str() else {
            break;
        };
        next.clone_into(&mut after);
    }
    assert_eq!(paged, all);
    let refused = lab.admin.get("/scheduler/v1/audit?after=x").await;
    assert!(refused.refused(400).message.contains("'x'"));
}

/// Returns the preview of an action.
async fn preview(http: &Http, asked: &Value) -> Value {
    let said = http.post("/scheduler/v1/previews", asked).await;
    assert_eq!(said.status, 200, "{}", said.text);
    said.json()
}

/// Executes a preview to its end.
async fn run(http: &Http, preview: &Value) -> Value {
    let path = format!(
        "/scheduler/v1/previews/{}",
        preview["preview_id"].as_str().expect("an id")
    );
    let begun = http.post(&format!("{path}/run"), &json!({})).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    eventually("the action is done", async || {
        let now = http.get(&path).await.json();
        (now["state"] == "done").then_some(now)
    })
    .await
}

async fn an_action_touches_what_was_shown_and_nothing_else(store: Store) {
    let lab = Guarded::start(store, &[]).await;
    let (ann, bob) = (lab.user("ann").await, lab.user("bob").await);
    let ids = ann.submit(&jobs::times(5, &jobs::dc("ann"))).await;
    let bobs = bob.submit(&jobs::dc("bob")).await.remove(0);
    let filter = json!({"account": "ann"});
    let shown = preview(&ann, &json!({"action": "cancel", "filter": filter})).await;
    assert_eq!(shown["total"], 5);
    assert_eq!(shown["sentence"], "This cancels 5 jobs.");
    assert_eq!(shown["items"].as_array().map(Vec::len), Some(5));
    // The lab changes meanwhile: one job is cancelled, and another one arrives.
    ann.post(&format!("/scheduler/v1/jobs/{}/cancel", ids[0]), &json!({}))
        .await;
    let set = json!({"job_ids": [ids[1]], "hold": true});
    ann.post("/scheduler/v1/jobs/change", &set).await;
    let later = ann.submit(&jobs::dc("ann")).await.remove(0);
    let path = format!(
        "/scheduler/v1/previews/{}",
        shown["preview_id"].as_str().expect("an id")
    );
    assert_eq!(bob.get(&path).await.status, 404, "it is not bob's");
    let done = run(&ann, &shown).await;
    assert_eq!((&done["done"], &done["failed"]), (&json!(5), &json!([])));
    for id in &ids {
        assert_eq!(ann.field(id, "job_stage").await, "cancel");
    }
    for id in [&later, &bobs] {
        assert_eq!(ann.field(id, "job_stage").await, "submit");
    }
    // A repeated run reports the earlier result, and does nothing.
    let again = ann.post(&format!("{path}/run"), &json!({})).await.json();
    assert_eq!(again["state"], "done");
    // Jobs that cannot be changed are named, with the reason.
    let named = json!({"action": "cancel", "jobs": [ids[0], bobs, later, "7", "x"]});
    let shown = preview(&ann, &named).await;
    assert_eq!(
        (&shown["total"], &shown["items"][0]["id"]),
        (&json!(1), &json!(later))
    );
    let left_out = shown["left_out"].as_array().expect("a list");
    assert_eq!(left_out.len(), 4, "{shown}");
    assert!(
        left_out
            .iter()
            .all(|one| one["why"].as_str().is_some_and(|why| !why.is_empty()))
    );
    // Only admins may run actions on the whole lab.
    let pause = json!({"action": "pause_lab"});
    assert_eq!(ann.post("/scheduler/v1/previews", &pause).await.status, 403);
    let wide = json!({"action": "cancel", "filter": {"colour": "red"}});
    let refused = ann.post("/scheduler/v1/previews", &wide).await;
    assert!(refused.refused(400).message.contains("colour"));
    // This is a change of waiting jobs.
    let change = json!({"action": "change", "jobs": [later], "set": {"priority": 7}});
    let shown = preview(&ann, &change).await;
    assert_eq!(shown["sentence"], "This sets priority 7 of 1 job.");
    run(&ann, &shown).await;
    assert_eq!(ann.job(&later).await["priority"], 7);
    // A preview of weights shows the resulting shares.
    let shown = preview(
        &lab.admin,
        &json!({"action": "weights", "weights": {"ann": 30}}),
    )
    .await;
    let shares = shown["shares"].as_array().expect("a list");
    let of = |name: &str| {
        shares
            .iter()
            .find(|one| one["queue"] == name)
            .expect("a share")
            .clone()
    };
    assert_eq!(
        (&of("ann")["now_permille"], &of("ann")["then_permille"]),
        (&json!(500), &json!(750))
    );
    run(&lab.admin, &shown).await;
    let queues = lab.admin.get("/scheduler/v1/queues").await.json();
    let queues = queues.as_array().expect("a list");
    assert!(
        queues
            .iter()
            .any(|queue| queue["name"] == "ann" && queue["weight"] == 30)
    );
}

async fn a_paused_lab_gives_nothing_away(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let shown = preview(
        &http,
        &json!({"action": "pause_lab", "reason": "moving racks"}),
    )
    .await;
    run(&http, &shown).await;
    let id = http.submit(&jobs::dc("ann")).await.remove(0);
    let mut testbox = Testbox::dc(&http, "h", 4_096);
    assert!(
        testbox.ask(2).await.is_empty(),
        "a paused lab gave a job away"
    );
    let why = http.get(&format!("/scheduler/v1/jobs/{id}/explain")).await;
    assert!(why.text.contains("the whole lab is paused"), "{}", why.text);
    let shown = http.get("/scheduler/v1/overview").await.json();
    let paused = &shown["tables"]["lab"]["lab"]["paused"];
    assert_eq!(paused["reason"], "moving racks", "{shown}");
    let again = preview(&http, &json!({"action": "pause_lab"})).await;
    assert_eq!(again["left_out"][0]["why"], "it is paused already");
    let shown = preview(&http, &json!({"action": "resume_lab"})).await;
    run(&http, &shown).await;
    let granted = testbox.ask(30).await;
    assert_eq!(granted.len(), 1);
}

async fn jobs_run_again_once_and_hosts_close(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let ids = http.submit(&jobs::times(3, &jobs::dc("ann"))).await;
    let shown = preview(&http, &json!({"action": "cancel", "jobs": ids})).await;
    run(&http, &shown).await;
    let again = preview(
        &http,
        &json!({"action": "rerun", "filter": {"account": "ann"}}),
    )
    .await;
    assert_eq!(again["total"], 3);
    let done = run(&http, &again).await;
    assert_eq!((&done["done"], &done["failed"]), (&json!(3), &json!([])));
    eventually("each ran again once", async || {
        let list = http
            .get("/scheduler/v1/jobs?account=ann&limit=100")
            .await
            .json();
        (list["total"] == 6).then_some(())
    })
    .await;
    let mut testbox = Testbox::dc(&http, "h", 4_096);
    assert_eq!(testbox.ask(30).await.len(), 3);
    let drain = json!({"action": "drain", "hosts": ["h", "none"], "reason": "a fan is loud"});
    let shown = preview(&http, &drain).await;
    assert_eq!(
        (&shown["total"], &shown["left_out"][0]["id"]),
        (&json!(1), &json!("none"))
    );
    run(&http, &shown).await;
    let host = http.get("/scheduler/v1/hosts/h").await.json();
    assert_eq!(
        (&host["state"], &host["closed"]["reason"]),
        (&json!("draining"), &json!("a fan is loud"))
    );
    let open = preview(&http, &json!({"action": "uncordon", "hosts": ["h"]})).await;
    run(&http, &open).await;
    assert_eq!(
        http.get("/scheduler/v1/hosts/h").await.json()["state"],
        "busy"
    );
}
