//! Tests of what is read of results and logs: in part, once, and never as a page.

use fairlead_tests::{Scheduler, Store, Testbox, header, jobs, on_both_stores};
use reqwest::Method;
use serde_json::json;

on_both_stores!(
    a_result_is_read_in_part_and_once,
    a_log_is_read_from_where_it_broke,
);

/// Possible places of results and logs.
const PLACES: [&str; 2] = ["data", "content"];

async fn a_result_is_read_in_part_and_once(store: Store) {
    for place in PLACES {
        read_a_result(store, place).await;
    }
}

async fn read_a_result(store: Store, place: &str) {
    let scheduler = Scheduler::start_with(store, &["--files-in", place]).await;
    let http = scheduler.http();
    http.submit(&json!([jobs::dc("alice")])).await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let grant = testbox.take().await;
    let page = "<html><script>alert(1)</script></html>";
    let large = "0123456 ".repeat(40_000);
    for (name, text) in [("index.html", page), ("large.txt", large.as_str())] {
        let path = format!(
            "{}/{name}?job_id={}&job_token={}&attempt=1",
            grant.result_root, grant.job_id, grant.job_token
        );
        let body = text.as_bytes().to_vec();
        let sent = http.send(Method::POST, &path, "", body).await;
        assert_eq!(sent.status, 200, "{}", sent.text);
    }
    // A browser must not execute a file that a job wrote.
    let path = format!("{}/index.html", grant.result_root);
    let whole = http.get_with(&path, &[]).await;
    assert_eq!(header(&whole, "content-type"), "text/plain; charset=utf-8");
    assert_eq!(header(&whole, "x-content-type-options"), "nosniff");
    let tag = header(&whole, "etag");
    assert_eq!(whole.text().await.expect("a body"), page);
    // A client that has it does not get it again.
    let again = http.get_with(&path, &[("if-none-match", &tag)]).await;
    assert_eq!(
        (again.status().as_u16(), header(&again, "etag")),
        (304, tag)
    );
    // A large file comes in pieces, and in parts on request.
    let path = format!("{}/large.txt", grant.result_root);
    let whole = http.get_with(&path, &[]).await;
    assert_eq!(header(&whole, "content-length"), large.len().to_string());
    let tag = header(&whole, "etag");
    assert_eq!(whole.text().await.expect("a body"), large);
    let part = http
        .get_with(
            &path,
            &[("range", "bytes=100000-199999"), ("if-range", &tag)],
        )
        .await;
    assert_eq!(part.status(), 206);
    let place = format!("bytes 100000-199999/{}", large.len());
    assert_eq!(header(&part, "content-range"), place);
    assert_eq!(part.text().await.expect("a body"), large[100_000..200_000]);
    let end = http.get_with(&path, &[("range", "bytes=-7")]).await;
    assert_eq!(end.text().await.expect("a body"), large[large.len() - 7..]);
    let other = http
        .get_with(&path, &[("range", "bytes=5-9"), ("if-range", "\"other\"")])
        .await;
    assert_eq!(other.status(), 200, "a part of another file does not help");
    let behind = http.get_with(&path, &[("range", "bytes=9999999-")]).await;
    assert_eq!(behind.status(), 416);
    assert_eq!(
        header(&behind, "content-range"),
        format!("bytes */{}", large.len())
    );
}

async fn a_log_is_read_from_where_it_broke(store: Store) {
    for place in PLACES {
        read_a_log(store, place).await;
    }
}

async fn read_a_log(store: Store, place: &str) {
    let scheduler = Scheduler::start_with(store, &["--files-in", place]).await;
    let http = scheduler.http();
    http.submit(&json!([jobs::dc("alice")])).await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let grant = testbox.take().await;
    let log = format!("/scheduler/v1/jobs/{}/log", grant.job_id);
    let none = http.get_with(&log, &[]).await;
    assert_eq!(
        (none.status().as_u16(), none.text().await.expect("a body")),
        (200, String::new())
    );
    let append = format!("{log}?offset=0&attempt=1&job_token={}", grant.job_token);
    let body = b"one\ntwo\nthree\n".to_vec();
    http.send(Method::POST, &append, "text/plain", body).await;
    for (query, headers, text) in [
        ("", vec![], "one\ntwo\nthree\n"),
        ("?offset=4", vec![], "two\nthree\n"),
        ("?offset=14", vec![], ""),
        ("?offset=99", vec![], ""),
        ("", vec![("range", "bytes=4-6")], "two"),
    ] {
        let read = http.get_with(&format!("{log}{query}"), &headers).await;
        assert_eq!(header(&read, "content-type"), "text/plain; charset=utf-8");
        assert_eq!(read.text().await.expect("a body"), text, "{query}");
    }
    testbox.finish(&grant).await;
    let followed = http
        .get_with(&format!("{log}?follow=true&offset=8"), &[])
        .await;
    assert_eq!(followed.text().await.expect("a body"), "three\n");
}
