//! Tests of the sent requests, and of the answers' parsing.

use bytes::Bytes;
use serde_json::json;

use super::stub::{Answer, Stub};
use crate::{
    Client, ClientConfig, ClientError, ErrorCode, JobQuery, JobUpdate, LogAppend, UploadBody,
    UploadOutcome,
};

fn client(stub: &Stub) -> Client {
    Client::new(ClientConfig {
        token: Some("secret".to_owned()),
        ..ClientConfig::new([stub.url.clone()])
    })
    .unwrap()
}

#[tokio::test]
async fn a_submit_s_array_is_an_answer_at_any_status() {
    let stub = Stub::start(|_, _| {
        Answer::Say(
            400,
            r#"[{"job_id":"0","message":"no suite","errcode":"bad_field","code":"bad_field","hint":"say one"}]"#,
        )
    })
    .await;
    let items = client(&stub).submit(&json!([{}])).await.unwrap();
    assert_eq!(items[0].job_id, "0");
    assert_eq!(items[0].hint, "say one");
    let seen = &stub.seen()[0];
    assert_eq!(seen.line, "POST /scheduler/v1/jobs/submit");
    assert_eq!(seen.body, b"[{}]");
    let head = seen.head.to_lowercase();
    assert!(head.contains("authorization: bearer secret"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
}

#[tokio::test]
async fn a_large_body_is_sent_whole_and_says_its_length() {
    let stub = Stub::start(|_, _| Answer::Say(200, "{}")).await;
    let bytes: Vec<u8> = (0_u32..50_000).flat_map(u32::to_le_bytes).collect();
    let client = client(&stub);
    let sent = client.put_chunk(None, "p", "d", bytes.clone().into());
    sent.await.unwrap();
    let seen = &stub.seen()[0];
    assert_eq!(seen.line, "PUT /scheduler/v1/content/chunks/d?put=p");
    assert!(seen.body == bytes);
    let head = seen.head.to_lowercase();
    assert!(head.contains("content-length: 200000"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
}

#[tokio::test]
async fn a_submit_s_object_is_a_refusal() {
    let stub = Stub::start(|_, _| {
        Answer::Say(
            413,
            r#"{"code":"too_large","message":"9 MB, 8 at most","hint":"split"}"#,
        )
    })
    .await;
    let error = client(&stub).submit_yaml("suite: x").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::TooLarge));
}

#[tokio::test]
async fn answers_that_nobody_expects_are_told_apart() {
    let stub = Stub::start(|n, _| match n {
        0 => Answer::Say(200, "<html>"),
        1 => Answer::Say(404, "<html>no such page"),
        _ => Answer::Say(
            422,
            r#"{"code":"from_the_future","message":"m","hint":"h"}"#,
        ),
    })
    .await;
    let client = client(&stub);
    let error = client.job("7").await.unwrap_err();
    assert!(matches!(error, ClientError::BadAnswer { .. }), "{error}");
    let error = client.job("7").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    assert!(error.to_string().contains("no such page"), "{error}");
    let error = client.job("7").await.unwrap_err();
    assert_eq!(error.to_string(), "m (hint: h)");
}

#[tokio::test]
async fn lists_come_bare_or_named() {
    let stub = Stub::start(|n, _| match n {
        0 => Answer::Say(200, r#"[{"my_account":"a","role":"user"}]"#),
        1 => Answer::Say(200, r#"{"accounts":[{"my_account":"a","role":"user"}]}"#),
        _ => Answer::Say(200, r#"{"results":[{"job_id":"7","result":"success"}]}"#),
    })
    .await;
    let client = client(&stub);
    assert_eq!(
        client.accounts().await.unwrap(),
        client.accounts().await.unwrap()
    );
    let items = client.cancel_many(&["7".to_owned()]).await.unwrap();
    assert_eq!(items[0].result, "success");
}

#[tokio::test]
async fn names_and_values_are_escaped() {
    let stub = Stub::start(|_, _| Answer::Say(200, "[]")).await;
    let client = client(&stub);
    let update = JobUpdate {
        attempt: Some(2),
        job_stage: Some("finish".to_owned()),
        exit_code: Some(-1),
        reason: Some("a&b c".to_owned()),
        milestones: vec!["x".to_owned(), "y".to_owned()],
        ..JobUpdate::default()
    };
    client.update("7/8?", &update).await.unwrap();
    let query = JobQuery {
        stage: vec!["submit".to_owned(), "running".to_owned()],
        limit: Some(5),
        ..JobQuery::default()
    };
    assert!(client.jobs(&query).await.is_err());
    let lines: Vec<_> = stub.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(
        lines,
        [
            "POST /scheduler/v1/jobs/7%2F8%3F/update?attempt=2&job_stage=finish&milestones=x%2Cy&exit_code=-1&reason=a%26b+c",
            "GET /scheduler/v1/jobs?stage=submit%2Crunning&limit=5",
        ]
    );
    for name in ["", ".", ".."] {
        assert!(matches!(
            client.job(name).await,
            Err(ClientError::BadUrl { .. })
        ));
    }
}

#[tokio::test]
async fn an_append_tells_where_the_server_stands() {
    let stub = Stub::start(|n, _| match n {
        0 => Answer::Say(200, r#"{"size":12}"#),
        1 => Answer::Say(
            409,
            r#"{"code":"conflict","message":"a gap","hint":"go on at 4"}"#,
        ),
        2 => Answer::Say(
            409,
            r#"{"code":"conflict","message":"a gap","hint":"","size":5}"#,
        ),
        3 => Answer::Say(
            409,
            r#"{"code":"conflict","message":"offset 10 leaves a gap: the log has 6 bytes","hint":"append at its size"}"#,
        ),
        _ => Answer::Say(
            409,
            r#"{"code":"conflict","message":"attempt 1 is over; attempt 2 counts","hint":"stop"}"#,
        ),
    })
    .await;
    let client = client(&stub);
    let append = || client.append_log("7", 1, "t", 10, Bytes::from_static(b"ab"));
    assert_eq!(append().await.unwrap(), LogAppend::Stored { size: 12 });
    assert_eq!(append().await.unwrap(), LogAppend::Gap { size: 4 });
    assert_eq!(append().await.unwrap(), LogAppend::Gap { size: 5 });
    assert_eq!(append().await.unwrap(), LogAppend::Gap { size: 6 });
    assert_eq!(
        append().await.unwrap_err().code(),
        Some(ErrorCode::Conflict)
    );
    assert_eq!(
        stub.seen()[0].line,
        "POST /scheduler/v1/jobs/7/log?attempt=1&offset=10&job_token=t"
    );
}

#[tokio::test]
async fn a_file_is_uploaded_anew_at_each_try_and_an_existing_one_is_fine() {
    let stub = Stub::start(|n, _| match n {
        0 => Answer::HangUp,
        1 => Answer::Say(200, ""),
        _ => Answer::Say(409, r#"{"code":"conflict","message":"exists","hint":""}"#),
    })
    .await;
    let client = client(&stub);
    let file = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let upload = |body| client.upload("a/b c/out", "7", "t", body);
    let stored = upload(UploadBody::File(file)).await.unwrap();
    assert_eq!(stored, UploadOutcome::Stored);
    let seen = stub.seen();
    assert_eq!(
        seen[1].line,
        "POST /result/a/b%20c/out?job_id=7&job_token=t"
    );
    assert!(seen[0].body == bytes && seen[1].body == bytes);
    let again = upload(UploadBody::Bytes(Bytes::new())).await.unwrap();
    assert_eq!(again, UploadOutcome::Existed);
    let gone = upload(UploadBody::File("/nowhere/at/all".into())).await;
    assert!(matches!(gone, Err(ClientError::File { .. })));
    assert!(
        client
            .upload("a/../b", "7", "t", UploadBody::Bytes(Bytes::new()))
            .await
            .is_err()
    );
}

/// A scheduler of before reads the query alone; one that takes the header gets no token in an address.
#[tokio::test]
async fn a_job_s_token_is_in_no_address_once_the_scheduler_takes_the_header() {
    let stub = Stub::start(|_, _| Answer::TakesHeader(200)).await;
    let client = client(&stub);
    let update = JobUpdate {
        job_token: Some("t0ken".to_owned()),
        ..JobUpdate::default()
    };
    for _ in 0..2 {
        client.update("7", &update).await.unwrap();
    }
    let seen = stub.seen();
    assert_eq!(
        seen[0].line,
        "POST /scheduler/v1/jobs/7/update?job_token=t0ken"
    );
    assert_eq!(seen[1].line, "POST /scheduler/v1/jobs/7/update");
    for request in seen {
        assert!(
            request.head.contains("job-token: t0ken"),
            "{}",
            request.head
        );
    }
}

#[tokio::test]
async fn streams_come_to_their_end() {
    let stub = Stub::start(|_, _| Answer::Say(200, "hello")).await;
    let client = client(&stub);
    let mut log = client.log("7", Some(1), 3, true).await.unwrap();
    let mut all = Vec::new();
    while let Some(piece) = log.chunk().await.unwrap() {
        all.extend_from_slice(&piece);
    }
    assert_eq!(all, b"hello");
    let mut file = client.download("/result/x/y").await.unwrap();
    assert_eq!(file.length(), Some(5));
    assert!(file.chunk().await.unwrap().is_some());
    let lines: Vec<_> = stub.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(
        lines,
        [
            "GET /scheduler/v1/jobs/7/log?offset=3&attempt=1&follow=true",
            "GET /result/x/y"
        ]
    );
}

#[test]
fn what_is_no_url_or_token_is_refused() {
    for url in [
        "",
        "ftp://x",
        "http://",
        "http://x?q",
        "http://a:b@x",
        "http://x#f",
        "x y",
    ] {
        let error = Client::new(ClientConfig::new([url])).unwrap_err();
        assert!(
            matches!(error, ClientError::BadUrl { .. }),
            "{url}: {error}"
        );
    }
    assert!(Client::new(ClientConfig::new(Vec::<String>::new())).is_err());
    let bad_token = ClientConfig {
        token: Some("a\nb".to_owned()),
        ..ClientConfig::new(["x"])
    };
    let error = Client::new(bad_token).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
}
