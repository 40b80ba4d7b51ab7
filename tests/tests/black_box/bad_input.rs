//! Bad input: each gets 4xx with code, message and hint, and the next good request works.

use fairlead_tests::{Http, Scheduler, Store, Testbox, jobs};
use reqwest::Method;
use serde_json::{Value, json};

const SUBMIT: &str = "/scheduler/v1/jobs/submit";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// Sends a request, which must be refused, and checks that a good job is accepted afterwards.
async fn refused(http: &Http, method: Method, path: &str, kind: &str, body: impl Into<Vec<u8>>) {
    let reply = http.send(method, path, kind, body.into()).await;
    reply.refusal();
    http.submit(&jobs::dc("alice")).await;
}

async fn each_submit_is_refused(kind: &str, bodies: impl IntoIterator<Item = Vec<u8>>) {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    for body in bodies {
        refused(&http, Method::POST, SUBMIT, kind, body).await;
    }
}

async fn each_field_is_refused(fields: &[Value]) {
    let bodies = fields.iter().map(|fields| {
        let job = jobs::with(jobs::dc("alice"), fields);
        job.to_string().into_bytes()
    });
    each_submit_is_refused(JSON, bodies).await;
}

#[tokio::test]
async fn broken_json_is_refused() {
    let bodies = [
        "{\"suite\": ",
        "{\"a\":1,}",
        "{'suite': 1}",
        "[",
        "]",
        "{}{}",
    ];
    each_submit_is_refused(JSON, bodies.map(|body| body.as_bytes().to_vec())).await;
}

#[tokio::test]
async fn what_is_no_job_is_refused() {
    let bodies = [
        "", " ", "42", "null", "true", "\"job\"", "[]", "{}", "[1, 2]", "[[]]", "[null]",
    ];
    each_submit_is_refused(JSON, bodies.map(|body| body.as_bytes().to_vec())).await;
}

#[tokio::test]
async fn wrong_types_are_refused() {
    each_field_is_refused(&[
        json!({"suite": {"a": 1}}),
        json!({"my_account": ["a", "b"]}),
        json!({"testbox": {"a": 1}}),
        json!({"tags": {"a": 1}}),
        json!({"tags": [["a"]]}),
        json!({"priority": "high"}),
        json!({"priority": 1.5}),
        json!({"need_memory": [1, 2]}),
        json!({"script": {"a": 1}}),
        json!({"target_machines": {"a": 1}}),
        json!({"wait_on": 5}),
    ])
    .await;
}

#[tokio::test]
async fn wrong_units_are_refused() {
    each_field_is_refused(&[
        json!({"need_memory": "8 elephants"}),
        json!({"need_memory": "-1g"}),
        json!({"need_memory": "g"}),
        json!({"need_memory": "99999999999999999999g"}),
        json!({"runtime": "5 parsecs"}),
        json!({"timeout": "-3s"}),
        json!({"timeout": "10ms3"}),
        json!({"priority": 1_000_000}),
    ])
    .await;
}

#[tokio::test]
async fn nul_and_other_nonsense_in_names_is_refused() {
    let long = "x".repeat(10_000);
    each_field_is_refused(&[
        json!({"my_account": "a\u{0}b"}),
        json!({"queue": "a\u{0}b"}),
        json!({"my_account": "../../etc/passwd"}),
        json!({"my_account": "a\nb"}),
        json!({"my_account": long}),
        json!({"queue": "a/b"}),
        json!({"tags": ["a\u{0}"]}),
        json!({"target_machines": ["a b\u{7}"]}),
        json!({"testbox": "vm-\u{0}"}),
        json!({"suite": "a\u{0}b"}),
    ])
    .await;
}

#[tokio::test]
async fn deep_nesting_is_refused() {
    for depth in [200, 100_000] {
        let arrays = "[".repeat(depth);
        let maps = "{\"a\":".repeat(depth);
        let closed = format!(
            "{{\"suite\":\"s\",\"a\":{}1{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        );
        each_submit_is_refused(JSON, [arrays, maps, closed].map(String::into_bytes)).await;
    }
    let flow = format!("suite: s\na: {}1{}\n", "[".repeat(5000), "]".repeat(5000));
    let lines: Vec<_> = (0..5000)
        .map(|at| format!("{}a:", " ".repeat(at)))
        .collect();
    let block = lines.join("\n");
    each_submit_is_refused(YAML, [flow, block].map(String::into_bytes)).await;
}

#[tokio::test]
async fn invalid_utf_8_is_refused() {
    let bodies = [
        b"{\"suite\": \"\xff\xfe\"}".to_vec(),
        b"\x80\x81\x82".to_vec(),
        vec![0; 64],
        vec![0xf0, 0x28, 0x8c, 0x28],
    ];
    each_submit_is_refused(JSON, bodies.clone()).await;
    each_submit_is_refused(YAML, bodies).await;
}

#[tokio::test]
async fn yaml_that_is_no_job_file_is_refused() {
    let bodies = [
        "suite: [a",
        "suite: a\nsuite: b\n",
        "<<: other.yaml\nsuite: a\n",
        "<<: /etc/passwd\n",
        "suite: <%= 1 %>\n",
        "suite: {{ `id` }}\n",
        "suite: '{{ system(1) }}'\n",
        "a|b: [x|y, z]\nsuite: s\n",
        "&a [*a, *a]",
        "- 1\n- 2\n",
        "\tsuite: a\n",
    ];
    each_submit_is_refused(YAML, bodies.map(|body| body.as_bytes().to_vec())).await;
    let level = |at: usize| {
        let inside = at
            .checked_sub(1)
            .map_or("x".to_owned(), |below| format!("*a{below}"));
        format!("a{at}: &a{at} [{}]", vec![inside; 9].join(", "))
    };
    let bomb = (0..12).map(level).collect::<Vec<_>>().join("\n");
    let ten = |at: usize| format!("k{at}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");
    let many = (0..7).map(ten).collect::<Vec<_>>().join("\n");
    let matrix = format!("suite: s\n{many}\n");
    each_submit_is_refused(YAML, [bomb, matrix].map(String::into_bytes)).await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let large = jobs::with(jobs::dc("alice"), &json!({"note": "x".repeat(300 << 10)}));
    refused(&http, Method::POST, SUBMIT, JSON, large.to_string()).await;
    let many = jobs::times(10_001, &json!({"suite": "s", "my_account": "a"}));
    let reply = http.post(SUBMIT, &many).await;
    assert_eq!(
        reply.status,
        413,
        "{}",
        &reply.text[..reply.text.len().min(500)]
    );
    http.submit(&jobs::dc("alice")).await;
    // The body is larger than the server reads, so the answer may come early and cut the connection.
    let huge = vec![b' '; 40 << 20];
    if let Ok(reply) = http.try_send(Method::POST, SUBMIT, JSON, huge).await {
        reply.refused(413);
    }
    http.submit(&jobs::dc("alice")).await;
    let total = http.get("/scheduler/v1/jobs?limit=1").await.json()["total"].clone();
    assert_eq!(total, json!(3), "nothing of a refused list is in");
}

#[tokio::test]
async fn bad_queries_are_refused() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    for query in [
        "limit=-1",
        "limit=x",
        "limit=1000000",
        "order=sideways",
        "stage=flying",
        "health=well",
        "after=abc",
        "since_ms=-5",
        "until_ms=tomorrow",
        "helth=fail",
    ] {
        refused(
            &http,
            Method::GET,
            &format!("/scheduler/v1/jobs?{query}"),
            "",
            "",
        )
        .await;
    }
    for query in [
        "offset=-1",
        "offset=x",
        "attempt=0",
        "attempt=x",
        "follow=maybe",
    ] {
        let path = format!("/scheduler/v1/jobs/{id}/log?{query}");
        refused(&http, Method::GET, &path, "", "").await;
    }
    for query in [
        "wait=-1",
        "wait=601",
        "wait=1e3",
        "wait=99999999999999999999",
        "boot_type=floppy",
    ] {
        let path = format!("/scheduler/v1/jobs/dispatch?hostname=h&arch=x86_64&{query}");
        refused(&http, Method::GET, &path, "", "").await;
    }
}

#[tokio::test]
async fn unknown_paths_ids_and_methods_are_refused() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    for path in [
        "/nope",
        "/scheduler/v1",
        "/scheduler/v1/nope",
        "/scheduler/v2/jobs",
        "/scheduler/v1/jobs/abc",
        "/scheduler/v1/jobs/-1",
        "/scheduler/v1/jobs/0",
        "/scheduler/v1/jobs/a%00b",
        "/scheduler/v1/jobs/%ff",
        "/scheduler/v1/jobs/1/nope",
        "/scheduler/v1/jobs/99999999999999999999",
        "/scheduler/v1/hosts/a%00b",
        "/result/nope",
        "/scheduler/v1/hosts/..%2f..",
        "/boot.floppy/mac/1",
        "/boot.ipxe/colour/red",
    ] {
        refused(&http, Method::GET, path, "", "").await;
    }
    for (method, path) in [
        (Method::GET, SUBMIT),
        (Method::PUT, SUBMIT),
        (Method::DELETE, "/scheduler/v1/jobs"),
        (Method::POST, "/scheduler/v1/health"),
        (Method::GET, "/scheduler/v1/jobs/wait"),
        (Method::PATCH, "/scheduler/v1/queues/a"),
    ] {
        let reply = http.send(method, path, "", Vec::new()).await;
        assert_eq!(
            reply.refusal().code.as_str(),
            "method_not_allowed",
            "{path}"
        );
        assert_eq!(reply.status, 405, "{path}");
    }
    http.submit(&jobs::dc("alice")).await;
}

#[tokio::test]
async fn a_bad_offer_is_refused() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    testbox.next_request(0);
    let good = json!(testbox.offer);
    let path = "/scheduler/v1/testboxes/host-1/consume";
    for fields in [
        json!({"session": ""}),
        json!({"session": "x".repeat(65)}),
        json!({"session": null}),
        json!({"request": 0}),
        json!({"request": -1}),
        json!({"kinds": []}),
        json!({"kinds": ["toaster"]}),
        json!({"kinds": ["hw", "vm"]}),
        json!({"kinds": "vm"}),
        json!({"arch": ""}),
        json!({"arch": "a\u{0}"}),
        json!({"memory_mb": -1}),
        json!({"memory_mb": "8g"}),
        json!({"wait_s": -1}),
        json!({"wait_s": 601}),
        json!({"jobs_max": 0}),
        json!({"jobs_max": 257}),
        json!({"tags": "fast"}),
        json!({"tags": vec!["t"; 100_000]}),
        json!({"running": [{"job_id": "x"}]}),
    ] {
        let body = jobs::with(good.clone(), &fields).to_string();
        refused(&http, Method::POST, path, JSON, body).await;
    }
    for body in ["", "[]", "nonsense", "{}"] {
        refused(&http, Method::POST, path, JSON, body).await;
    }
    let nul = "/scheduler/v1/testboxes/a%00b/consume";
    refused(&http, Method::POST, nul, JSON, good.to_string()).await;
    refused(
        &http,
        Method::POST,
        "/scheduler/v1/testboxes/host-1/heartbeat",
        JSON,
        "{}",
    )
    .await;
    assert_eq!(
        http.post(path, &good).await.status,
        200,
        "the good one is taken"
    );
}

#[tokio::test]
async fn bad_policies_and_accounts_are_refused() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    for (path, body) in [
        ("/scheduler/v1/queues/a", json!({"weight": 0})),
        ("/scheduler/v1/queues/a", json!({"weight": 10_001})),
        ("/scheduler/v1/queues/a", json!({"weight": -3})),
        ("/scheduler/v1/queues/a", json!({"weight": "much"})),
        ("/scheduler/v1/queues/a", json!({"priority": 10})),
        ("/scheduler/v1/queues/a", json!([])),
        ("/scheduler/v1/queues/a%00b", json!({"weight": 1})),
        ("/scheduler/v1/accounts/a", json!({"role": "king"})),
        ("/scheduler/v1/accounts/a", json!({"role": 1})),
        ("/scheduler/v1/accounts/a%2fb", json!({"limits": {}})),
        (
            "/scheduler/v1/accounts/a",
            json!({"limits": {"running": 1}}),
        ),
        ("/scheduler/v1/jobs/cancel", json!({"job_ids": "all"})),
        ("/scheduler/v1/jobs/cancel", json!({"job_ids": []})),
        ("/scheduler/v1/jobs/cancel", json!({})),
    ] {
        refused(&http, Method::POST, path, JSON, body.to_string()).await;
    }
}

/// A URL library would clean such paths before sending them; an attacker does not.
#[tokio::test]
async fn raw_paths_do_not_climb() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    for path in [
        "/result/../../../../etc/passwd",
        "/result/..%2f..%2f..%2fetc/passwd",
        "/result/%2e%2e/%2e%2e/etc/passwd",
        "/result//etc/passwd",
        "/result/a/../../data/fairlead.db",
        "/result/a%00b",
        "/srv/scheduler/pending-jobs/../../job.cgz",
    ] {
        let reply = http
            .raw(&format!(
                "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            ))
            .await;
        let status = reply.split(' ').nth(1).unwrap_or_default();
        assert!(status.starts_with('4'), "{path}: {reply}");
        assert!(!reply.contains("root:"), "{path}: {reply}");
    }
    for nonsense in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "\u{0}\u{1}\u{2}",
        "GET / HTTP/9.9\r\n\r\n",
    ] {
        http.raw(nonsense).await;
        http.submit(&jobs::dc("alice")).await;
    }
}

/// The log names requests by this id.
#[tokio::test]
async fn an_answer_has_the_request_s_id_or_one_of_its_own() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let id_of = async |path: &str, sent: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Request-Id: {sent}\r\n\r\n"
        );
        let answer = http.raw(&request).await.to_ascii_lowercase();
        let line = answer
            .lines()
            .find_map(|line| line.strip_prefix("x-request-id: "));
        line.unwrap_or_else(|| panic!("no id: {answer}")).to_owned()
    };
    for path in ["/", "/scheduler/v1/jobs/1", "/nowhere", "/bad%zzpath"] {
        assert_eq!(id_of(path, "ci/run-7:42").await, "ci/run-7:42");
        let long = "x".repeat(65);
        for bad in ["", "a b", &long] {
            let own = id_of(path, bad).await;
            assert!(own.len() == 32 && own != bad, "{own}");
        }
    }
}
