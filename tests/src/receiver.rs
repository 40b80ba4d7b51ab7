//! A receiver of webhooks that notes what it is sent, and answers as it is told.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Maximum length of a request that is read, bytes.
const REQUEST_MAX: usize = 1 << 20;

/// One message.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Head of the request, in lower case.
    pub head: String,
    /// Body of the request.
    pub body: String,
}

impl Sent {
    /// Returns a header. Empty: none.
    pub fn header(&self, name: &str) -> &str {
        let lines = self.head.lines();
        let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        values.next().unwrap_or_default()
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    /// Panics if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.body))
    }
}

#[derive(Debug, Default)]
struct State {
    sent: Vec<Sent>,
    answers: VecDeque<u16>,
}

/// A receiver on a free port of loopback.
#[derive(Debug)]
pub struct Receiver {
    /// URL of the receiver.
    pub url: String,
    state: Arc<Mutex<State>>,
    _accepting: JoinSet<()>,
}

impl Receiver {
    /// Starts a receiver. It answers these statuses in turn, then 204.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn start(answers: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let port = listener.local_addr().map_or(0, |at| at.port());
        let state = Arc::new(Mutex::new(State {
            sent: Vec::new(),
            answers: answers.iter().copied().collect(),
        }));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&state)));
        Self {
            url: format!("http://127.0.0.1:{port}/hook"),
            state,
            _accepting: accepting,
        }
    }

    /// Returns the received messages, in order.
    pub fn sent(&self) -> Vec<Sent> {
        locked(&self.state).sent.clone()
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(take(stream, Arc::clone(&state)));
    }
}

async fn take(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut bytes = Vec::new();
    let sent = loop {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(n) if n > 0 && bytes.len() < REQUEST_MAX => {
                bytes.extend(piece.iter().take(n));
            }
            _ => return,
        }
        if let Some(sent) = whole(&bytes) {
            break sent;
        }
    };
    let status = {
        let mut state = locked(&state);
        state.sent.push(sent);
        state.answers.pop_front().unwrap_or(204)
    };
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    // A client that does not read it asks again.
    drop(stream.write_all(answer.as_bytes()).await);
}

/// Returns a request once it is complete.
fn whole(bytes: &[u8]) -> Option<Sent> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    (body.len() >= length).then(|| Sent {
        head,
        body: body.to_owned(),
    })
}
