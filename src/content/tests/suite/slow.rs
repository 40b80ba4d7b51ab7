//! A store that asks for fewer requests, or that refuses.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener},
    thread,
};

use fairlead_content::{ContentError, ContentState, Digest, Location};

use crate::server::s3_at;

/// Answers each request with the next of these status lines.
fn server(answers: &'static [&'static str]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the process of the test.
    thread::spawn(move || {
        let mut answers = answers.iter();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut got = Vec::new();
            let mut some = [0; 4_096];
            while !got.windows(4).any(|four| four == b"\r\n\r\n") {
                match stream.read(&mut some).unwrap() {
                    0 => break,
                    many => got.extend_from_slice(&some[..many]),
                }
            }
            let answer = answers.next().expect("an answer is left");
            let whole =
                format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(whole.as_bytes()).unwrap();
        }
    });
    format!("http://127.0.0.1:{port}")
}

#[tokio::test]
async fn a_store_that_is_throttled_is_asked_again() {
    const SLOW: [&str; 4] = [
        "503 Slow Down",
        "429 Too Many Requests",
        "404 Not Found",
        "404 Not Found",
    ];
    let endpoint = server(&SLOW);
    let location: Location = "s3://lab".parse().unwrap();
    let store = location.open_with(s3_at(&endpoint)).unwrap();
    let digest = Digest::of(b"x");
    assert_eq!(store.missing(&[digest]).await.unwrap(), [digest]);
    let state = store.health().state;
    assert!(
        matches!(state, ContentState::Throttled { times: 2, .. }),
        "{state:?}"
    );
}

#[tokio::test]
async fn a_store_that_refuses_is_told() {
    let endpoint = server(&["403 Forbidden", "404 Not Found"]);
    let location: Location = "s3://lab".parse().unwrap();
    let store = location.open_with(s3_at(&endpoint)).unwrap();
    let digest = Digest::of(b"x");
    let refused = store.missing(&[digest]).await;
    assert!(
        matches!(refused, Err(ContentError::Store(_))),
        "{refused:?}"
    );
    let state = store.health().state;
    assert!(
        matches!(state, ContentState::Unreachable { .. }),
        "{state:?}"
    );
    store.missing(&[digest]).await.unwrap();
    assert_eq!(store.health().state, ContentState::Well);
}

#[tokio::test]
async fn without_tls_only_where_it_is_allowed() {
    let endpoint = server(&["404 Not Found"]);
    let mut variables = s3_at(&endpoint);
    variables.retain(|(name, _)| name != "AWS_ALLOW_HTTP");
    let location: Location = "s3://lab".parse().unwrap();
    let store = location.open_with(variables).unwrap();
    let refused = store.missing(&[Digest::of(b"x")]).await;
    assert!(
        matches!(refused, Err(ContentError::Store(_))),
        "{refused:?}"
    );
}
