//! Tests of what those build on who write clients: pages, tags and event streams.

use std::collections::BTreeSet;

use fairlead_api::JobEvent;
use fairlead_job::Stage;
use fairlead_tests::{Scheduler, Store, Testbox, header, jobs, on_both_stores};
use reqwest::Response;
use serde_json::{Value, json};

on_both_stores!(
    a_list_comes_in_pages,
    a_job_is_read_once_by_its_tag,
    events_of_a_submit_go_on_where_they_broke,
);

async fn parsed<T: serde::de::DeserializeOwned>(response: Response) -> T {
    let text = response.text().await.expect("a body");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn a_list_comes_in_pages(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    for name in ["a", "b", "c"] {
        let path = format!("/scheduler/v1/queues/{name}");
        let reply = http.post(&path, &json!({"weight": 5})).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    let mut path = "/scheduler/v1/queues?limit=2".to_owned();
    let mut names = Vec::new();
    loop {
        let page = http.get_with(&path, &[]).await;
        let next = header(&page, "link");
        let page: Vec<Value> = parsed(page).await;
        assert!(page.len() <= 2, "{page:?}");
        names.extend(page.into_iter().map(|queue| queue["name"].clone()));
        let Some(next) = next.strip_prefix('<') else {
            break;
        };
        path = next.split('>').next().expect("an address").to_owned();
    }
    let all = http.get("/scheduler/v1/queues").await.json();
    let all: Vec<Value> = all
        .as_array()
        .expect("queues")
        .iter()
        .map(|queue| queue["name"].clone())
        .collect();
    assert!(all.len() >= 3, "{all:?}");
    assert_eq!(names, all);
    let refused = http
        .get("/scheduler/v1/hosts?limit=1001")
        .await
        .refused(400);
    assert!(refused.message.contains("0 to 1000"), "{refused:?}");
}

async fn a_job_is_read_once_by_its_tag(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http.submit(&json!([jobs::dc("alice")])).await.remove(0);
    let path = format!("/scheduler/v1/jobs/{id}");
    let first = http.get_with(&path, &[]).await;
    let tag = header(&first, "etag");
    let job: Value = parsed(first).await;
    // Absent values are null, not 0; compass-ci's names stand beside ours.
    assert_eq!(job["dispatch_ms"], Value::Null, "{job}");
    assert_eq!(job["submit_id"], id.as_str());
    let again = http.get_with(&path, &[("if-none-match", &tag)]).await;
    assert_eq!(again.status(), 304);
    assert_eq!(again.text().await.expect("a body"), "");
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    testbox.take_all().await;
    let changed = http.get_with(&path, &[("if-none-match", &tag)]).await;
    assert_eq!(changed.status(), 200);
    assert_ne!(header(&changed, "etag"), tag);
    let job: Value = parsed(changed).await;
    assert_eq!(
        (&job["host"], &job["host_machine"]),
        (&json!("host-1"), &json!("host-1"))
    );
    assert!(job["dispatch_ms"].is_u64(), "{job}");
}

/// Returns events until the stream ends or `most` arrived, each with its id, and the final message.
async fn events(response: Response, most: usize) -> (Vec<(String, JobEvent)>, Option<Value>) {
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "content-type"), "text/event-stream");
    let mut response = response;
    let (mut text, mut found) = (String::new(), Vec::new());
    while let Some(piece) = response.chunk().await.expect("a piece") {
        text.push_str(std::str::from_utf8(&piece).expect("text"));
        while let Some((event, rest)) = text.split_once("\n\n") {
            let line = |name: &str| {
                let mut lines = event.lines();
                lines
                    .find_map(|line| line.strip_prefix(name))
                    .unwrap_or_default()
            };
            let (id, kind, data) = (line("id: "), line("event: "), line("data: "));
            match kind {
                "over" => return (found, serde_json::from_str(data).ok()),
                "job" => {
                    let data = serde_json::from_str(data).expect("an event");
                    found.push((id.to_owned(), data));
                }
                _ => {}
            }
            text = rest.to_owned();
            if found.len() >= most {
                return (found, None);
            }
        }
    }
    (found, None)
}

async fn events_of_a_submit_go_on_where_they_broke(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let items = http.submit_items(&jobs::times(3, &jobs::dc("alice"))).await;
    let submit = items[0].submit_id.clone();
    assert!(
        items.iter().all(|item| item.submit_id == submit),
        "{items:?}"
    );
    let path = format!("/scheduler/v1/submits/{submit}/events");
    let (first, _) = events(http.get_with(&path, &[]).await, 3).await;
    let stages: BTreeSet<&str> = first
        .iter()
        .map(|(_, event)| event.job_stage.as_str())
        .collect();
    assert_eq!((first.len(), stages), (3, BTreeSet::from(["submit"])));
    let last = first[2].0.clone();
    let mut testbox = Testbox::dc(&http, "host-1", 64 << 10);
    let following = http.get_with(&path, &[("last-event-id", &last)]).await;
    let ran = testbox.run_all(5).await;
    assert_eq!(ran.len(), 3, "{ran:?}");
    let (later, over) = events(following, usize::MAX).await;
    let ended: BTreeSet<&str> = later
        .iter()
        .filter(|(_, event)| event.job_stage == Stage::Finish)
        .map(|(_, event)| event.job_id.as_str())
        .collect();
    assert_eq!(ended.len(), 3, "{later:?}");
    assert_eq!(over, Some(json!({"jobs": 3, "failed": 0})));
    let none = http
        .get("/scheduler/v1/submits/none/events")
        .await
        .refused(404);
    assert!(none.message.contains("no submit 'none'"), "{none:?}");
}
