//! Plain PUT and GET at addresses that a lab signed: no credentials, no redirects.
//!
//! A store that is busy or away (429, 5xx, no answer) is asked again after growing pauses. A request fails only when
//! nothing of it has moved for a while.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use fairlead_api::client::{is_loopback, jittered};
use futures_util::stream;
use reqwest::{StatusCode, Url, header};

use super::error::TransferError;
use crate::CHUNK_BYTES_MAX;

/// Timeout of a connection's set-up.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Longest time without any progress.
const STALL_MAX: Duration = Duration::from_secs(30);
/// First pause before another try; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause before another try.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Maximum number of tries of one request: some 40 s of pauses.
const TRIES_MAX: u32 = 12;
/// Bytes of a body that are handed to the connection at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Pauses between tries, each about twice as long as the one before.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    tries: u32,
}

impl Pauses {
    /// Waits before another try, at least as long as `asked`; `false`: no tries are left.
    pub(super) async fn rest(&mut self, asked: Option<Duration>) -> bool {
        self.tries += 1;
        if self.tries >= TRIES_MAX {
            return false;
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.tries.min(10));
        let pause = jittered(pause.min(PAUSE_MAX));
        let pause = asked.map_or(pause, |asked| pause.max(asked.min(STALL_MAX)));
        rest(pause).await;
        true
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only timer of transfers: between two tries"
)]
async fn rest(pause: Duration) {
    tokio::time::sleep(pause).await;
}

/// An HTTP client for signed addresses. Clones share connections.
#[derive(Debug, Clone)]
pub(super) struct Direct {
    http: reqwest::Client,
    /// Client for this machine itself, which no proxy reaches.
    near: reqwest::Client,
}

/// Result of one try.
enum Try {
    Done(Bytes),
    Gone,
    Forbidden,
    Again {
        problem: String,
        after: Option<Duration>,
    },
    No(String),
}

impl Direct {
    pub(super) fn new() -> Result<Self, TransferError> {
        let build = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT_MAX)
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(concat!("fairlead/", env!("CARGO_PKG_VERSION")))
        };
        let failed = |error: reqwest::Error| TransferError::Address {
            host: "(none)".to_owned(),
            problem: error.to_string(),
            may_pass: false,
        };
        Ok(Self {
            http: build().build().map_err(failed)?,
            near: build().no_proxy().build().map_err(failed)?,
        })
    }

    /// Sends a chunk. `false`: the address has expired.
    pub(super) async fn put(
        &self,
        url: &str,
        headers: &[(String, String)],
        bytes: Bytes,
    ) -> Result<bool, TransferError> {
        let done = self.until_answered(url, |http, url| {
            let (body, moved) = body_of(bytes.clone());
            let length = bytes.len();
            let request = http.put(url).header(header::CONTENT_LENGTH, length);
            let request = headers.iter().fold(request, |request, (name, value)| {
                request.header(name, value)
            });
            attempt(request.body(body), moved)
        });
        match done.await? {
            Try::Done(_) => Ok(true),
            Try::Forbidden => Ok(false),
            _ => Err(refused(url, "it knows no such place".to_owned(), false)),
        }
    }

    /// Reads a chunk. `None`: the address has expired; `Some(None)`: the chunk does not exist.
    pub(super) async fn get(&self, url: &str) -> Result<Option<Option<Bytes>>, TransferError> {
        let done = self.until_answered(url, |http, url| attempt(http.get(url), Moved::default()));
        match done.await? {
            Try::Done(bytes) => Ok(Some(Some(bytes))),
            Try::Forbidden => Ok(None),
            _ => Ok(Some(None)),
        }
    }

    /// Returns the error for a fresh address that is refused.
    pub(super) fn forbidden(url: &str) -> TransferError {
        let problem =
            "it refuses a fresh address (hint: do the clocks of the lab and of the store agree?)";
        refused(url, problem.to_owned(), false)
    }

    async fn until_answered<F>(
        &self,
        url: &str,
        one: impl Fn(&reqwest::Client, Url) -> F,
    ) -> Result<Try, TransferError>
    where
        F: Future<Output = Try> + Send,
    {
        let parsed = Url::parse(url).ok();
        let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| {
            refused(
                url,
                "the lab named an address that is none".to_owned(),
                false,
            )
        })?;
        let http = if is_loopback(&parsed) {
            &self.near
        } else {
            &self.http
        };
        let mut pauses = Pauses::default();
        loop {
            match one(http, parsed.clone()).await {
                Try::Again { problem, after } => {
                    if !pauses.rest(after).await {
                        return Err(refused(url, problem, true));
                    }
                }
                Try::No(problem) => return Err(refused(url, problem, false)),
                answered => return Ok(answered),
            }
        }
    }
}

/// Returns an error that names the host only, because the address itself opens the store to its readers.
fn refused(url: &str, problem: String, may_pass: bool) -> TransferError {
    let host = Url::parse(url).ok();
    let host = host.and_then(|url| url.host_str().map(str::to_owned));
    TransferError::Address {
        host: host.unwrap_or_else(|| "(no address)".to_owned()),
        problem,
        may_pass,
    }
}

/// Bytes of a body that the connection took.
type Moved = Arc<AtomicU64>;

/// Returns a body that is sent in pieces, and the counter of its sent bytes.
fn body_of(bytes: Bytes) -> (reqwest::Body, Moved) {
    let moved = Moved::default();
    let counter = Arc::clone(&moved);
    let pieces = stream::unfold(bytes, move |mut rest| {
        let counter = Arc::clone(&counter);
        async move {
            if rest.is_empty() {
                return None;
            }
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            let many = u64::try_from(piece.len()).unwrap_or(0);
            counter.fetch_add(many, Ordering::Relaxed);
            Some((Ok::<_, std::io::Error>(piece), rest))
        }
    });
    (reqwest::Body::wrap_stream(pieces), moved)
}

async fn attempt(request: reqwest::RequestBuilder, moved: Moved) -> Try {
    let again = |problem: String| Try::Again {
        problem,
        after: None,
    };
    let mut response = match sent(request, &moved).await {
        Ok(response) => response,
        Err(problem) => return again(problem),
    };
    let status = response.status();
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        let after = response.headers().get(header::RETRY_AFTER);
        let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
        return Try::Again {
            problem: format!("it answers {status}"),
            after: after.map(Duration::from_secs),
        };
    }
    match status {
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => return Try::Forbidden,
        StatusCode::NOT_FOUND => return Try::Gone,
        status if !status.is_success() => return Try::No(format!("it answers {status}")),
        _ => {}
    }
    let mut all = BytesMut::new();
    loop {
        match tokio::time::timeout(STALL_MAX, response.chunk()).await {
            Ok(Ok(Some(piece))) if all.len() + piece.len() <= CHUNK_BYTES_MAX => {
                all.extend_from_slice(&piece);
            }
            Ok(Ok(Some(_))) => {
                return Try::No(format!("it sends more than {CHUNK_BYTES_MAX} bytes"));
            }
            Ok(Ok(None)) => return Try::Done(all.freeze()),
            Ok(Err(error)) => return again(error.without_url().to_string()),
            Err(_) => return again(stalled()),
        }
    }
}

async fn sent(
    request: reqwest::RequestBuilder,
    moved: &Moved,
) -> Result<reqwest::Response, String> {
    let mut sending = pin!(request.send());
    let mut seen = 0;
    loop {
        if let Ok(answer) = tokio::time::timeout(STALL_MAX, &mut sending).await {
            return answer.map_err(|error| error.without_url().to_string());
        }
        let now = moved.load(Ordering::Relaxed);
        if now == seen {
            return Err(stalled());
        }
        seen = now;
    }
}

fn stalled() -> String {
    format!("nothing moved for {} s", STALL_MAX.as_secs())
}
