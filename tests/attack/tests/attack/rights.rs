//! Rights, walked: each endpoint of the table, asked by each role about its own, another's and a missing thing.

use fairlead_api::{Caller, ConsumeRequest, ENDPOINTS, Endpoint, Grant, JOB_TOKEN_HEADER};
use fairlead_tests::{Guarded, Http, Store, Testbox, content::Input, jobs};
use reqwest::Method;
use serde_json::{Value, json};

/// A job that nobody has.
const MISSING: &str = "2611210236110799999";
/// The machine of the testbox account `boxes` that has the jobs.
const MACHINE: &str = "host-1";
/// Another one of it, which testboxes and admins do things to.
const SPARE: &str = "host-2";
/// A key of Standard Webhooks.
const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Its memory, MB: enough for a job for each request.
const MACHINE_MB: u32 = 1 << 20;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Actor {
    Nobody,
    UnknownToken,
    /// The owner of the job, timer and files.
    Owner,
    OtherUser,
    /// A testbox account that names the host.
    Testbox,
    /// One that names others.
    OtherTestbox,
    Admin,
    /// Nobody, with the token of the job's present attempt.
    Holder,
    /// Nobody, with another job's token.
    OtherHolder,
}

const ACTORS: [Actor; 9] = [
    Actor::Nobody,
    Actor::UnknownToken,
    Actor::Owner,
    Actor::OtherUser,
    Actor::Testbox,
    Actor::OtherTestbox,
    Actor::Admin,
    Actor::Holder,
    Actor::OtherHolder,
];

/// What an actor is told: let through (whatever comes of it then), or refused with this status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Through,
    Refused(u16),
}

/// Whether a route of accounts shows everybody's things.
fn is_everybodys(row: &Endpoint) -> bool {
    matches!(
        (row.methods[0], row.path),
        (
            "GET",
            "/scheduler/v1/jobs"
                | "/scheduler/v1/jobs/:id"
                | "/scheduler/v1/jobs/:id/explain"
                | "/scheduler/v1/queues"
                | "/scheduler/v1/hosts"
                | "/scheduler/v1/hosts/:hostname"
                | "/scheduler/v1/timers"
                | "/scheduler/v1/timers/:timer"
                | "/scheduler/v1/whoami"
                | "/r/:id"
                | "/scheduler/v1/tests"
                | "/scheduler/v1/webhooks"
                | "/scheduler/v1/usage"
                | "/scheduler/v1/submits/:submit/events"
                | "/scheduler/v1/content"
        ) | (
            "POST",
            "/scheduler/v1/jobs/wait" | "/scheduler/v1/webhooks/test"
        )
    )
}

/// Whether the body says whose it is to be: a token of another account is a wrong one then.
fn names_its_account(row: &Endpoint) -> bool {
    matches!(
        (row.methods[0], row.path),
        (
            "POST",
            "/scheduler/v1/jobs/submit" | "/submit_job" | "/scheduler/v1/timers"
        )
    )
}

/// Whether another's thing is answered as an unknown one.
fn hides_others(row: &Endpoint) -> bool {
    row.path == "/scheduler/v1/webhooks/:webhook/redeliver"
        || row.path.contains(":group")
        || reads_content(row)
}

/// Of the routes for accounts and jobs, those that read what somebody put.
fn reads_content(row: &Endpoint) -> bool {
    matches!(
        (row.methods[0], row.path),
        ("GET", "/scheduler/v1/content/chunks/:digest")
            | ("GET", "/scheduler/v1/content/manifests/:content")
            | ("POST", "/scheduler/v1/content/urls")
    )
}

/// Whether the holder of a job's token may use it.
fn takes_jobs(row: &Endpoint) -> bool {
    matches!(row.caller, Caller::JobToken | Caller::AccountOrJob)
}

/// Of the routes for a job's token, those that an admin may use without.
fn takes_admin(row: &Endpoint) -> bool {
    !matches!(
        row.path,
        "/scheduler/v1/jobs/:id/wait_peer" | "/srv/scheduler/pending-jobs/:id/job.cgz"
    )
}

/// The rights as they are meant.
fn meant(row: &Endpoint, actor: Actor) -> Told {
    use Actor::{Admin, Holder, OtherHolder, OtherTestbox, OtherUser, Owner, Testbox};
    use Told::{Refused, Through};
    let has_account = matches!(actor, Owner | OtherUser | Testbox | OtherTestbox | Admin);
    match row.caller {
        Caller::Anybody => Through,
        Caller::Replica => Refused(403),
        Caller::JobToken => match actor {
            Holder => Through,
            OtherHolder => Refused(403),
            Admin if takes_admin(row) => Through,
            _ => Refused(401),
        },
        Caller::AccountOrJob => match actor {
            Owner | Admin | Holder => Through,
            OtherHolder => Refused(403),
            _ if !has_account => Refused(401),
            _ if reads_content(row) => Refused(404),
            _ => Through,
        },
        _ if !has_account => Refused(401),
        Caller::Account => match actor {
            Owner | Admin => Through,
            _ if is_everybodys(row) => Through,
            _ if names_its_account(row) => Refused(401),
            _ if hides_others(row) => Refused(404),
            _ => Refused(403),
        },
        Caller::Testbox => match actor {
            Testbox | Admin => Through,
            _ => Refused(403),
        },
        Caller::Admin => match actor {
            Admin => Through,
            _ => Refused(403),
        },
    }
}

/// One request about one thing.
struct Asked {
    path: String,
    body: Value,
    /// The token of the job that it is about.
    token: String,
    /// What a job adds to the path to ask for itself; empty: nothing.
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
        let lab = Guarded::start(Store::Embedded, &["--webhooks-to", "127.0.0.1"]).await;
        let owner = lab.user("alice").await;
        let other = lab.user("bob").await;
        let boxes = lab.testbox("boxes", &["host-*"]).await;
        let other_boxes = lab.testbox("other-boxes", &["elsewhere-*"]).await;
        let mut machine = Testbox::dc(&boxes, MACHINE, MACHINE_MB);
        let spare = format!("/scheduler/v1/hosts/{SPARE}");
        assert_eq!(boxes.post(&spare, &json!({})).await.status, 200);
        other.submit(&jobs::dc("bob")).await;
        let other_job = machine.ask(10).await.remove(0);
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

    /// A job of the owner that no host can take.
    async fn waiting(&self) -> String {
        let job = jobs::with(jobs::dc("alice"), &json!({"need_memory": "900g"}));
        self.owner.submit(&job).await.remove(0)
    }

    /// The webhook of a job of the owner that waits.
    async fn webhook(&self) -> String {
        let more = json!({
            "need_memory": "900g",
            "callback": "http://127.0.0.1:9/hook",
            "secrets": {"callback": WEBHOOK_SECRET},
        });
        let job = jobs::with(jobs::dc("alice"), &more);
        self.owner.submit(&job).await;
        let webhooks = self.owner.get("/scheduler/v1/webhooks").await;
        let id = webhooks.json()[0]["webhook_id"].as_str().map(str::to_owned);
        id.unwrap_or_else(|| panic!("no webhook: {}", webhooks.text))
    }

    /// A job of the owner that the machine has.
    async fn held(&mut self) -> Grant {
        self.owner.submit(&jobs::dc("alice")).await;
        let machine = &mut self.machine;
        // What it must stop comes before new work.
        for id in machine.heartbeat().await {
            let its = machine.held().iter().find(|grant| grant.job_id == id);
            if let Some(grant) = its.cloned() {
                machine.report(&grant, "job_stage=finish").await;
            }
            machine.drop_job(&id);
        }
        machine.ask(10).await.remove(0)
    }

    /// A new thing for this route, and a request about it.
    async fn ask_about(&mut self, row: &Endpoint) -> Asked {
        self.made += 1;
        let name = format!("n{}", self.made);
        let (mut token, mut body, mut more) = (String::new(), Value::Null, String::new());
        let (mut id, mut webhook) = (String::new(), String::new());
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
        } else if row.path.contains(":group") {
            let more = json!({"need_memory": "900g", "group": name});
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
            .replace(":group", &name)
            .replace(":hostname", SPARE)
            .replace(":name", &name)
            .replace(":my_account", &name)
            .replace(
                ":report",
                &format!("set-job-stage?job_id={id}&job_stage=boot"),
            )
            .replace("*path", &more);
        let path = match row.path {
            "/scheduler/v1/jobs/dispatch" => format!("{path}?hostname={SPARE}&wait=0"),
            "/scheduler/v1/tests" => format!("{path}?suite=sleep"),
            "/scheduler/v1/content/chunks/:digest" => {
                format!("{path}?put=by-hand&id={}", input.id)
            }
            "/scheduler/v1/content/manifests" => format!("{path}?put=by-hand"),
            "/scheduler/v1/content/:content" => format!("{path}?account=alice"),
            group if group.contains(":group") => format!("{path}?account=alice"),
            timer if timer.contains(":timer") => format!("{path}?account=alice"),
            "/scheduler/v1/jobs/:id/update" => format!("{path}?job_stage=boot"),
            "/result/*path" if row.caller == Caller::JobToken => format!("{path}?job_id={id}"),
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
            "/scheduler/v1/retention" => body = json!({"keep_months": 0}),
            "/scheduler/v1/rules" => body = json!({"rules": []}),
            "/scheduler/v1/queues/:name" => body = json!({"weight": 2}),
            "/scheduler/v1/accounts/:my_account" => body = json!({"role": "user"}),
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

    /// The status of the answer; of lists that are answered one by one, that of their item.
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
        let text = answer.text().await.unwrap_or_default();
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

fn told(row: &Endpoint, status: u16) -> Told {
    match status {
        401 | 403 => Told::Refused(status),
        404 if hides_others(row) => Told::Refused(status),
        _ => Told::Through,
    }
}

/// Each route by each of its methods.
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
            // A job's holder is nobody in particular elsewhere.
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

/// What is not there is answered as another's where the asker may not know, and with 404 where it may.
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
                // The token is another job's.
                (Told::Through, Caller::JobToken) if actor == Actor::Holder => status == 403,
                (Told::Through, _) => status == 404,
                // All accounts may list jobs: it is no secret to them which there are.
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
