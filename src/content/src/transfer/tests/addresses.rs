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

/// Answers each request with the given answer, and keeps the requests.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    _answering: JoinSet<()>,
}

impl Server {
    /// `answer`: status and body of the nth request.
    async fn start(answer: impl Fn(usize) -> (u16, Vec<u8>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let mut answering = JoinSet::new();
        let kept = Arc::clone(&requests);
        answering.spawn(async move {
            for nth in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = request(&mut stream).await;
                kept.lock().unwrap().push(request);
                let (status, body) = answer(nth);
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(&body).await.unwrap();
            }
        });
        Self {
            url,
            requests,
            _answering: answering,
        }
    }

    async fn that_answers(statuses: &'static [u16], bytes: &'static [u8]) -> Self {
        Self::start(|nth| (statuses[nth], bytes.to_vec())).await
    }

    /// An address with a signature.
    fn signed(&self) -> String {
        format!("{}/chunk?signed=secret", self.url)
    }

    fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.lock().unwrap().clone()
    }

    /// Methods and paths.
    fn lines(&self) -> Vec<String> {
        let line = |request: &Vec<u8>| {
            let text = String::from_utf8_lossy(request).into_owned();
            text.lines().next().unwrap().replace(" HTTP/1.1", "")
        };
        self.requests().iter().map(line).collect()
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
        .put(&server.signed(), &headers, bytes.clone())
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
    let read = direct.get(&good.signed()).await.unwrap();
    assert_eq!(read, Some(Some(Bytes::from_static(b"bytes"))));
    let old = Server::that_answers(&[403], b"").await;
    assert_eq!(direct.get(&old.signed()).await.unwrap(), None);
    let gone = Server::that_answers(&[404], b"").await;
    assert_eq!(direct.get(&gone.signed()).await.unwrap(), Some(None));
    let odd = Server::that_answers(&[302], b"").await;
    let refused = direct.get(&odd.signed()).await.unwrap_err();
    assert!(!refused.may_pass());
    assert!(!refused.to_string().contains("secret"), "{refused}");
    let refused = direct.get("file:///etc/passwd").await.unwrap_err();
    assert!(!refused.may_pass(), "{refused}");
}

/// A lab whose content is in an object store: chunks go past it, and it is asked again when an address is too old.
#[tokio::test]
async fn chunks_go_past_the_lab_and_old_addresses_are_renewed() {
    let bytes = Bytes::from_static(b"bytes");
    let digest = Digest::of(&bytes);
    let sends = Server::that_answers(&[403, 200], b"").await;
    let reads = Server::that_answers(&[403, 200], b"bytes").await;
    let missing = serde_json::json!({
        "missing": [{ "digest": digest, "url": sends.signed(), "headers": [["x-a", "b"]] }],
        "until_ms": 1,
    });
    let urls = serde_json::json!({ "urls": [reads.signed()], "until_ms": 1 });
    let answers = [&missing, &missing, &urls, &urls].map(|answer| answer.to_string().into_bytes());
    let lab = Server::start(move |nth| (200, answers[nth].clone())).await;
    let client = fairlead_api::Client::new(fairlead_api::ClientConfig {
        token: Some("account".to_owned()),
        ..fairlead_api::ClientConfig::new([lab.url.clone()])
    });
    let remote = LabRemote::new(client.unwrap(), None).unwrap();

    let places = remote.pin("p", &[digest]).await.unwrap();
    assert_eq!(places.len(), 1);
    remote
        .put_chunk("p", &places[0], bytes.clone())
        .await
        .unwrap();
    let places = remote.places(digest, &[digest]).await.unwrap();
    assert_eq!(remote.chunk(digest, &places[0]).await.unwrap(), bytes);

    let pin = "POST /scheduler/v1/content/pin";
    let ask = "POST /scheduler/v1/content/urls";
    assert_eq!(lab.lines(), [pin, pin, ask, ask]);
    assert_eq!(sends.lines(), ["PUT /chunk?signed=secret"; 2]);
    assert_eq!(reads.lines(), ["GET /chunk?signed=secret"; 2]);
    for request in sends.requests().iter().chain(&reads.requests()) {
        let text = String::from_utf8_lossy(request).to_lowercase();
        assert!(!text.contains("authorization"), "{text}");
    }
    let sent = String::from_utf8_lossy(&sends.requests()[1]).to_lowercase();
    assert!(sent.contains("x-a: b") && sent.ends_with("bytes"), "{sent}");
}
