//! Connections that begin something and then stay silent.

use std::io;

use tokio::{io::AsyncWriteExt, net::TcpStream};

/// Bytes that are sent before the silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Nothing.
    FromTheStart,
    /// A part of a head.
    InHead,
    /// A head and a part of its body.
    InBody,
    /// A part of the HTTP/2 preface.
    InPreface,
    /// The HTTP/2 preface and settings, without a request.
    AfterPreface,
}

impl Silence {
    /// All cases.
    pub const ALL: [Self; 5] = [
        Self::FromTheStart,
        Self::InHead,
        Self::InBody,
        Self::InPreface,
        Self::AfterPreface,
    ];

    fn words(self) -> &'static [u8] {
        match self {
            Self::FromTheStart => b"",
            Self::InHead => b"POST /scheduler/v1/jobs/submit HTTP/1.1\r\nHost: 127.0.0.1\r\nX-",
            Self::InBody => {
                b"POST /scheduler/v1/jobs/submit HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{\"suite\":"
            }
            Self::InPreface => b"PRI * HTTP/2.0\r\n",
            Self::AfterPreface => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Line(TcpStream);

impl Line {
    /// Connects to `HOST:PORT` and sends these bytes, nothing more.
    pub async fn open(address: &str, bytes: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address)
            .await
            .unwrap_or_else(|error| panic!("a connection to {address}: {error}"));
        let _ = stream.write_all(bytes).await;
        Self(stream)
    }

    /// Connects, begins, and falls silent.
    pub async fn silent(address: &str, how: Silence) -> Self {
        Self::open(address, how.words()).await
    }

    /// Sends more bytes.
    pub async fn say(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// Returns the bytes received since the last call. `None`: the other side closed the connection.
    pub fn heard(&self) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        let mut piece = [0; 4096];
        loop {
            match self.0.try_read(&mut piece) {
                // Bytes received before the end are returned first.
                Ok(0) => return Some(all).filter(|all| !all.is_empty()),
                Ok(read) => all.extend_from_slice(piece.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(all),
                Err(_) => return None,
            }
        }
    }
}

/// Returns a long poll of a testbox: the whole request, as its agent would send it.
pub fn poll(host: &str, token: Option<&str>, wait_s: u32) -> Vec<u8> {
    let body = serde_json::json!({
        "session": format!("s-{host}"), "request": 1, "kinds": ["dc"], "arch": "riscv64",
        "memory_mb": 1024, "free_memory_mb": 1024, "wait_s": wait_s,
    })
    .to_string();
    let token = token.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    format!(
        "POST /scheduler/v1/testboxes/{host}/consume HTTP/1.1\r\nHost: 127.0.0.1\r\n{token}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
