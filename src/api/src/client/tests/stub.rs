//! A stub replica: one answer per connection, made by a function of the request. It keeps all requests.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::ACCEPTS_HEADER;

/// What the stub does with a request.
pub(super) enum Answer {
    /// Answers so.
    Say(u16, &'static str),
    /// Answers with this status, as a scheduler that takes a job's token from a header.
    TakesHeader(u16),
    /// Takes the request and closes.
    HangUp,
    /// Takes the request and never answers.
    Silence,
}

#[derive(Debug, Clone)]
pub(super) struct SeenRequest {
    /// Method and path with query.
    pub(super) line: String,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

pub(super) struct Stub {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    _tasks: JoinSet<()>,
}

impl Stub {
    /// Answers the nth request (from 0) with `answer(n, request)`.
    pub(super) async fn start(
        answer: impl Fn(usize, &SeenRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let kept = Arc::clone(&seen);
        tasks.spawn(async move {
            let answer = Arc::new(answer);
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                connections.spawn(async move { serve(stream, &kept, &*answer).await });
            }
        });
        Self {
            url,
            seen,
            _tasks: tasks,
        }
    }

    pub(super) fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<SeenRequest>>,
    answer: &(impl Fn(usize, &SeenRequest) -> Answer + Sync),
) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    match answer(number, &request) {
        Answer::Say(status, body) => {
            let text = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Answer::TakesHeader(status) => {
            let text = format!(
                "HTTP/1.1 {status} X\r\n{ACCEPTS_HEADER}: job-token\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Answer::HangUp => {}
        Answer::Silence => {
            // Holds the connection until the other side gives up.
            let _ = stream.read(&mut [0; 1]).await;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<SeenRequest> {
    let mut all = Vec::new();
    let end = loop {
        if let Some(at) = all.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut all).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        })
        .unwrap_or(0_usize);
    while all.len() < end + length {
        if stream.read_buf(&mut all).await.ok()? == 0 {
            return None;
        }
    }
    let line = head.lines().next().unwrap().replace(" HTTP/1.1", "");
    Some(SeenRequest {
        line,
        body: all[end..].to_vec(),
        head,
    })
}

/// An address where nothing listens.
pub(super) fn dead_url() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
