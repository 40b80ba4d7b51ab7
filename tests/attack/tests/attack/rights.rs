//! Rights, walked: each endpoint of the table, asked by each role about its own, another's and a missing thing.

mod meant;

use fairlead_api::{Caller, ConsumeRequest, ENDPOINTS, Endpoint, Grant, JOB_TOKEN_HEADER};
use fairlead_tests::{Guarded, Http, Store, Testbox, content::Input, header, jobs};
use reqwest::Method;
use serde_json::{Value, json};

use meant::{ACTORS, Actor, Told, meant, takes_jobs, told};

/// Id of a job that does not exist.
const MISSING: &str = "2611210236110799999";
/// Machine of the testbox account `boxes` that has the jobs.
const MACHINE: &str = "host-1";
/// Another machine of that account, for actions of testboxes and admins.
const SPARE: &str = "host-2";
/// A key of Standard Webhooks.
const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Memory of the machine, MB. It is enough for a job for each request.
const MACHINE_MB: u32 = 1 << 20;

/// One request about one thing.
struct Asked {
    path: String,
    body: Value,
    /// Token of the job that it is about.
    token: String,
    /// Part of the path by which a job asks for itself. Empty: none.
    as_job: String,
}

struct Walk {
    lab: Guarded,
    owner: Http,
    other: Http,
    boxes: Http,
    other_boxes: Http,
    machine: Testbox,
    other_job: Grant,
    made: u32,
}

impl Walk {
    async fn start() -> Self {
        let lab = Guarded::start(Store::Embedded, &["--webhooks-to", "127.0.0.1:*"]).await;
        let owner = lab.user("alice").await;
        let other = lab.user("bob").await;
        let boxes = lab.testbox("boxes", &["host-*"]).await;
        let other_boxes = lab.testbox("other-boxes", &["elsewhere-*"]).await;
        let mut machine = Testbox::dc(&boxes, MACHINE, MACHINE_MB);
        let spare = format!("/scheduler/v1/hosts/{SPARE}");
        assert_eq!(boxes.post(&spare, &json!({})).await.status, 200);
        other.submit(&jobs::dc("bob")).await;
        let other_job = machine.take().await;
        Self {
            lab,
            owner,
            other,
            boxes,
            other_boxes,
            machine,
            other_job,
            made: 0,
        }
    }

    fn client(&self, actor: Actor) -> Http {
        match actor {
            Actor::Nobody | Actor::Holder | Actor::OtherHolder => self.lab.nobody(),
            Actor::UnknownToken => self.lab.nobody().with_token(&"0".repeat(64)),
            Actor::Owner => self.owner.clone(),
            Actor::OtherUser => self.other.clone(),
            Actor::Testbox => self.boxes.clone(),
            Actor::OtherTestbox => self.other_boxes.clone(),
            Actor::Admin => self.lab.admin.clone(),
        }
    }

    /// Submits a job of the owner that no host can take.
    async fn waiting(&self) -> String {
        let job = jobs::with(jobs::dc("alice"), &json!({"need_memory": "9000g"}));
        self.owner.submit(&job).await.remove(0)
    }

    /// Returns the webhook of a waiting job of the owner.
    async fn webhook(&self) -> String {
        let more = json!({
            "need_memory": "9000g",
            "callback": "http://127.0.0.1:9/hook",
            "secrets": {"callback": WEBHOOK_SECRET},
        });
        let job = jobs::with(jobs::dc("alice"), &more);
        self.owner.submit(&job).await;
        let webhooks = self.owner.get("/scheduler/v1/webhooks").await;
        let id = webhooks.json()[0]["webhook_id"].as_str().map(str::to_owned);
        id.unwrap_or_else(|| panic!("no webhook: {}", webhooks.text))
    }

    /// Creates a preview of the owner, for a waiting job.
    async fn preview(&self) -> String {
        let id = self.waiting().await;
        let asked = json!({"action": "cancel", "jobs": [id]});
        let shown = self.owner.post("/scheduler/v1/previews", &asked).await;
        let id = shown.json()["preview_id"].as_str().map(str::to_owned);
        id.unwrap_or_else(|| panic!("no preview: {}", shown.text))
    }

    /// Returns a job of the owner that the machine has.
    async fn held(&mut self) -> Grant {
        self.owner.submit(&jobs::dc("alice")).await;
        let machine = &mut self.machine;
        // Jobs that it must stop come before new work.
        for id in machine.heartbeat().await {
            let its = machine.held().iter().find(|grant| grant.job_id == id);
            if let Some(grant) = its.cloned() {
                machine.report(&grant, "job_stage=finish").await;
            }
            machine.drop_job(&id);
        }
        machine.take().await
    }

    /// Creates a new thing for this route, and returns a request about it.
    async fn ask_about(&mut self, row: &Endpoint) -> Asked {
        self.made += 1;
        let name = format!("n{}", self.made);
        let (mut token, mut body, mut more) = (String::new(), Value::Null, String::new());
        let (mut id, mut webhook, mut preview) = (String::new(), String::new(), String::new());
        if takes_jobs(row)
            || matches!(
                row.path,
                "/result/*path" | "/scheduler/v1/jobs/:id/terminate"
            )
        {
            let grant = self.held().await;
            (id, token) = (grant.job_id, grant.job_token);
            more = format!(
                "{}/{name}",
                grant.result_root.trim_start_matches("/result/")
            );
        } else if row.path.contains("jobs") || row.path == "/r/:id" {
            id = self.waiting().await;
        } else if row.path.contains(":webhook") {
            webhook = self.webhook().await;
        } else if row.path.contains(":preview") {
            preview = self.preview().await;
        } else if row.path.contains(":group") {
            let more = json!({"need_memory": "9000g", "group": name});
            self.owner
                .submit(&jobs::with(jobs::dc("alice"), &more))
                .await;
        }
        if row.path.starts_with("/scheduler/v1/timers/:timer") {
            let timer = json!({"timer": name, "every": "1h"});
            let timer = jobs::with(jobs::dc("alice"), &timer);
            let made = self.owner.post("/scheduler/v1/timers", &timer).await;
            assert_eq!(made.status, 200, "{}", made.text);
        }
        let input = Input::of(&name);
        if row.path.contains("content") {
            input.put(&self.owner, "").await;
        }
        let path = row
            .path
            .replace(":content", &input.id)
            .replace(":digest", &input.chunk)
            .replace(
                ":boot_type/:parameter/:value",
                &format!("ipxe/host/{SPARE}?wait=0"),
            )
            .replace(":id", &id)
            .replace(":timer", &name)
            .replace(":webhook", &webhook)
            .replace(":preview", &preview)
            .replace(":group", &name)
            .replace(":hostname", SPARE)
            .replace(":name", &name)
            .replace(
                ":my_account",
                if row.path.ends_with("/notify") {
                    "alice"
                } else {
                    &name
                },
            )
            .replace(
                ":report",
                &format!("set-job-stage?job_id={id}&job_stage=boot"),
            )
            .replace("*path", &more);
        let path = match row.path {
            "/scheduler/v1/jobs/dispatch" => format!("{path}?hostname={SPARE}&wait=0"),
            "/scheduler/v1/tests" => format!("{path}?suite=sleep"),
            "/scheduler/v1/content/chunks/:digest" if row.methods == ["PUT"] => {
                format!("{path}?put=by-hand")
            }
            "/scheduler/v1/content/chunks/:digest" => format!("{path}?id={}", input.id),
            "/scheduler/v1/content/manifests" => format!("{path}?put=by-hand"),
            "/scheduler/v1/content/:content" => format!("{path}?account=alice"),
            group if group.contains(":group") => format!("{path}?account=alice"),
            timer if timer.contains(":timer") => format!("{path}?account=alice"),
            "/scheduler/v1/jobs/:id/update" => format!("{path}?job_stage=boot"),
            "/result/*path" if row.caller == Caller::JobTokenOrAdmin => {
                format!("{path}?job_id={id}")
            }
            _ => path,
        };
        match row.path {
            "/scheduler/v1/jobs/submit" | "/submit_job" => body = jobs::dc("alice"),
            "/scheduler/v1/jobs/wait" => body = json!({"wait_on": {&id: {"job_stage": "submit"}}}),
            "/scheduler/v1/jobs/change" => body = json!({"job_ids": [&id], "hold": true}),
            "/scheduler/v1/jobs/cancel" | "/scheduler/v1/jobs/rerun" => {
                body = json!({"job_ids": [&id]});
            }
            "/scheduler/v1/timers" => {
                let timer = json!({"timer": name, "every": "1h"});
                body = jobs::with(jobs::dc("alice"), &timer);
            }
            "/scheduler/v1/webhooks/test" => {
                body = json!({"url": "http://127.0.0.1:9/hook", "secret": WEBHOOK_SECRET});
            }
            "/scheduler/v1/content/pin" => {
                body = json!({"put": "by-hand", "chunks": [input.chunk]});
            }
            "/scheduler/v1/content/urls" => {
                body = json!({"id": input.id, "chunks": [input.chunk]});
            }
            "/scheduler/v1/content/collect" | "/scheduler/v1/content/check" => {
                body = json!({"dry_run": true});
            }
            "/scheduler/v1/content/:content" => body = json!({"until": "+1d"}),
            "/scheduler/v1/timers/:timer" => body = json!({"every": "2h"}),
            "/scheduler/v1/previews" => body = json!({"action": "cancel", "jobs": [MISSING]}),
            "/scheduler/v1/retention" => body = json!({"keep_months": 0}),
            "/scheduler/v1/rules" => body = json!({"rules": []}),
            "/scheduler/v1/queues/:name" => body = json!({"weight": 2}),
            "/scheduler/v1/accounts/:my_account" => body = json!({"role": "user"}),
            "/scheduler/v1/accounts/:my_account/notify" if row.methods == ["POST"] => {
                body = json!({"url": "http://127.0.0.1:9/hook"});
            }
            "/scheduler/v1/hosts/:hostname/reserve" => {
                body = json!({"accounts": ["alice"], "until": "+1h"});
            }
            "/scheduler/v1/testboxes/:hostname/consume" => body = self.offer(),
            "/scheduler/v1/testboxes/:hostname/heartbeat" => body = json!({"session": "s"}),
            "/scheduler/v1/hosts/:hostname" | "/scheduler/v1/hosts/:hostname/cordon" => {
                body = json!({});
            }
            _ => {}
        }
        let between = if path.contains('?') { '&' } else { '?' };
        let as_job = match row.caller {
            Caller::AccountOrJob => format!("{between}job_id={id}"),
            _ => String::new(),
        };
        Asked {
            path,
            body,
            token,
            as_job,
        }
    }

    fn offer(&self) -> Value {
        let offer = ConsumeRequest {
            request: 1,
            session: format!("s{}", self.made),
            free_memory_mb: 0,
            ..self.machine.offer.clone()
        };
        json!(offer)
    }

    /// Returns the status of the answer. In lists with one result for each item it is that of the item.
    async fn send(
        &self,
        (row, method): (&Endpoint, &str),
        asked: &Asked,
        actor: Actor,
    ) -> (u16, String) {
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.unwrap_or_else(|error| panic!("a client: {error}"));
        let method: Method = method.parse().unwrap_or(Method::GET);
        let base = self.lab.scheduler.url();
        let as_job = match actor {
            Actor::Holder | Actor::OtherHolder => asked.as_job.as_str(),
            _ => "",
        };
        let path = format!("{base}{}{as_job}", asked.path);
        let mut request = client.request(method, path);
        if let Some(token) = self.client(actor).token() {
            request = request.bearer_auth(token);
        }
        match actor {
            Actor::Holder => request = request.header(JOB_TOKEN_HEADER, &asked.token),
            Actor::OtherHolder => {
                request = request.header(JOB_TOKEN_HEADER, &self.other_job.job_token);
            }
            _ => {}
        }
        // Browsers send the origin of a page, and logins are only for browsers.
        if matches!(row.path, "/scheduler/v1/login" | "/scheduler/v1/logout") {
            request = request.header("origin", &base);
        }
        if !asked.body.is_null() {
            request = request
                .header("content-type", "application/json")
                .body(asked.body.to_string());
        }
        let answer = request
            .send()
            .await
            .unwrap_or_else(|error| panic!("{}: {error:?}", asked.path));
        let status = answer.status().as_u16();
        // A stream of events may be endless.
        let is_stream = header(&answer, "content-type") == "text/event-stream";
        let text = if is_stream {
            String::new()
        } else {
            answer.text().await.unwrap_or_default()
        };
        let is_report = matches!(
            row.path,
            "/scheduler/v1/jobs/cancel" | "/scheduler/v1/jobs/change"
        );
        if is_report && text.contains("\"forbidden\"") {
            return (403, text);
        }
        (status, text)
    }
}

/// Returns each route with each of its methods.
fn ways() -> impl Iterator<Item = (&'static Endpoint, &'static str)> {
    ENDPOINTS
        .iter()
        .flat_map(|row| row.methods.iter().map(move |method| (row, *method)))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_lets_through_whom_the_table_names_and_nobody_else() {
    let mut walk = Walk::start().await;
    let mut wrong = Vec::new();
    for (row, method) in ways() {
        for actor in ACTORS {
            // On other routes, the holder of a job's token has no rights.
            let is_holder = matches!(actor, Actor::Holder | Actor::OtherHolder);
            if is_holder && !takes_jobs(row) {
                continue;
            }
            let asked = walk.ask_about(row).await;
            let (status, text) = walk.send((row, method), &asked, actor).await;
            let meant = meant(row, actor);
            if told(row, status) != meant || status >= 500 {
                let asked = &asked.path;
                wrong.push(format!(
                    "{method} {asked} by {actor:?}: {status}, not {meant:?}: {text}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that a missing thing is answered like a foreign one if the account may not know, and otherwise with 404.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_lets_nobody_through() {
    let mut walk = Walk::start().await;
    let mut wrong = Vec::new();
    for (row, method) in ways().filter(|(row, _)| row.path.contains(":id")) {
        for actor in ACTORS {
            let is_holder = matches!(actor, Actor::Holder | Actor::OtherHolder);
            if is_holder && !takes_jobs(row) {
                continue;
            }
            let mut asked = walk.ask_about(row).await;
            let id = asked
                .path
                .split('/')
                .find(|part| part.len() == MISSING.len());
            let id = id.unwrap_or_default().to_owned();
            asked.path = asked.path.replace(&id, MISSING);
            let (status, text) = walk.send((row, method), &asked, actor).await;
            let is_right = match (meant(row, actor), row.caller) {
                // The token belongs to another job.
                (Told::Through, Caller::JobToken | Caller::JobTokenOrAdmin)
                    if actor == Actor::Holder =>
                {
                    status == 403
                }
                (Told::Through, _) => status == 404,
                // All accounts may list jobs, so the existence of a job is no secret to them.
                (Told::Refused(refused), _) if walk.client(actor).token().is_some() => {
                    status == refused || (status == 404 && actor != Actor::UnknownToken)
                }
                (Told::Refused(refused), _) => status == refused,
            };
            if !is_right {
                wrong.push(format!(
                    "{method} {} by {actor:?}: {status}: {text}",
                    asked.path
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
