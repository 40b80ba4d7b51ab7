//! Plain requests at addresses, against a server that answers as it is told.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::*;
use crate::transfer::direct::Direct;

/// Answers each request with the next status and the bytes, and keeps what was sent.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    _answering: JoinSet<()>,
}

impl Server {
    async fn that_answers(statuses: &'static [u16], bytes: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "http://{}/chunk?signed=secret",
            listener.local_addr().unwrap()
        );
        let requests = Arc::new(Mutex::new(Vec::new()));
        let mut answering = JoinSet::new();
        let kept = Arc::clone(&requests);
        answering.spawn(async move {
            for status in statuses {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = request(&mut stream).await;
                kept.lock().unwrap().push(request);
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    bytes.len()
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(bytes).await.unwrap();
            }
        });
        Self {
            url,
            requests,
            _answering: answering,
        }
    }

    fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.lock().unwrap().clone()
    }
}

/// A whole request.
async fn request(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut piece = [0; 8_192];
        let many = stream.read(&mut piece).await.unwrap();
        all.extend_from_slice(&piece[..many]);
        let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if all.len() >= end + 4 + length {
            return all;
        }
    }
}

#[tokio::test]
async fn a_store_that_is_busy_is_asked_again() {
    let server = Server::that_answers(&[503, 429, 200], b"").await;
    let bytes = Bytes::from(noise("body", 200_000));
    let headers = [("x-ms-blob-type".to_owned(), "BlockBlob".to_owned())];
    let sent = Direct::new()
        .unwrap()
        .put(&server.url, &headers, bytes.clone())
        .await;
    assert!(sent.unwrap());
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert!(request.starts_with(b"PUT /chunk?signed=secret HTTP/1.1\r\n"));
        assert!(request.ends_with(&bytes));
        let head = String::from_utf8_lossy(&request[..request.len() - bytes.len()]).to_lowercase();
        assert!(head.contains("x-ms-blob-type: blockblob"), "{head}");
        assert!(!head.contains("authorization"), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
    }
}

#[tokio::test]
async fn answers_that_stand_are_told_apart() {
    let direct = Direct::new().unwrap();
    let good = Server::that_answers(&[200], b"bytes").await;
    let read = direct.get(&good.url).await.unwrap();
    assert_eq!(read, Some(Some(Bytes::from_static(b"bytes"))));
    let old = Server::that_answers(&[403], b"").await;
    assert_eq!(direct.get(&old.url).await.unwrap(), None);
    let gone = Server::that_answers(&[404], b"").await;
    assert_eq!(direct.get(&gone.url).await.unwrap(), Some(None));
    let odd = Server::that_answers(&[302], b"").await;
    let refused = direct.get(&odd.url).await.unwrap_err();
    assert!(!refused.may_pass());
    assert!(!refused.to_string().contains("secret"), "{refused}");
    let refused = direct.get("file:///etc/passwd").await.unwrap_err();
    assert!(!refused.may_pass(), "{refused}");
}
