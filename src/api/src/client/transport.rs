//! Sends one request: URL, headers, time limits, fail-over and retries.
//!
//! If no connection was made, or a refusal says that nothing was done, the next replica is tried. After that, the
//! request's own [`Repeat`] decides.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use reqwest::header;
use tokio::time::Instant;

use super::{
    call::{Call, Payload, Repeat},
    config::ClientConfig,
    error::{ClientError, Failure},
    file_body::Progress,
    near::{is_loopback, jittered},
    reply::{Reply, ReplyBody, read_whole},
};
use crate::{ACCEPTS_HEADER, JOB_TOKEN_HEADER, Route};

/// First pause between two rounds over the replicas; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause between two rounds: a replica that is back is found within this time.
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// Silence after which the system asks whether the other side is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A client of one or several replicas. Cheap to clone; clones share connections and the memory of
/// which replica answered last.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    bases: Vec<Base>,
    config: ClientConfig,
    /// What says who asks.
    authorization: RwLock<Option<header::HeaderValue>>,
    /// Index of the replica that answered last.
    good: AtomicUsize,
}

#[derive(Debug)]
struct Base {
    /// Without a slash at the end.
    url: String,
    /// Keeps connections.
    kept: reqwest::Client,
    /// Whether its last answer said that it takes the token of a job from a header.
    takes_header: AtomicBool,
    /// Makes a new connection for each request. A kept connection may have died unseen, and then a
    /// request that was never read looks as if its outcome were unknown.
    fresh: reqwest::Client,
}

impl Client {
    /// Checks the URLs and the token; connects to nothing yet.
    ///
    /// Errors: [`ClientError::BadUrl`] when there is no URL, one is not `http` or `https`, one holds a
    /// query, a fragment or a password, or the token holds characters that a header cannot carry.
    ///
    /// ```
    /// use fairlead_api::{Client, ClientConfig};
    /// let client = Client::new(ClientConfig::new(["127.0.0.1:3000", "http://second:3000"]))?;
    /// assert_eq!(client.urls().collect::<Vec<_>>(), ["http://127.0.0.1:3000", "http://second:3000"]);
    /// # Ok::<(), fairlead_api::ClientError>(())
    /// ```
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        let authorization = RwLock::new(authorization(config.token.as_deref())?);
        let bases: Vec<_> = config
            .urls
            .iter()
            .map(|url| Base::new(url, &config))
            .collect::<Result<_, _>>()?;
        if bases.is_empty() {
            return Err(ClientError::BadUrl {
                value: String::new(),
                problem: "at least one scheduler URL is needed, for example http://127.0.0.1:3000"
                    .to_owned(),
            });
        }
        Ok(Self {
            inner: Arc::new(Inner {
                bases,
                config,
                authorization,
                good: AtomicUsize::new(0),
            }),
        })
    }

    /// From now on this client and its clones ask with another token.
    ///
    /// Errors: [`ClientError::BadUrl`] when the token holds characters that a header cannot carry.
    pub fn set_token(&self, token: Option<&str>) -> Result<(), ClientError> {
        let new = authorization(token)?;
        *self.inner.authorization.write() = new;
        Ok(())
    }

    /// The base URLs, as they are used.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.inner.bases.iter().map(|base| base.url.as_str())
    }

    /// The base URL that answered last (the first one before any has).
    pub fn last_good_url(&self) -> &str {
        let good = self.inner.good.load(Ordering::Relaxed);
        self.inner
            .bases
            .get(good)
            .map_or("", |base| base.url.as_str())
    }

    pub(super) fn request_timeout(&self) -> Duration {
        self.inner.config.request_timeout
    }

    /// Sends `call` until it has an answer that stands.
    pub(super) fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, ClientError>> {
        Box::pin(async move {
            let started = Instant::now();
            let retry_for = self.inner.config.retry_for;
            let mut pause = PAUSE_MIN;
            let mut refused = None;
            let mut cause = String::new();
            for round in 0_u32.. {
                let first = self.inner.good.load(Ordering::Relaxed);
                let bases = self.inner.bases.iter().enumerate();
                for (at, base) in bases.clone().skip(first).chain(bases.take(first)) {
                    if round > 0 && started.elapsed() >= retry_for {
                        break;
                    }
                    match self.try_while_alive(base, call).await {
                        Ok(reply) if !reply.try_elsewhere(call.repeat) => {
                            self.inner.good.store(at, Ordering::Relaxed);
                            return Ok(reply);
                        }
                        Ok(reply) => refused = Some(reply),
                        Err(Failure::NotSent(text)) => cause = text,
                        Err(Failure::Sent(text)) if call.repeat == Repeat::Always => cause = text,
                        Err(Failure::Sent(cause)) => {
                            let url = base.url.clone();
                            return Err(ClientError::OutcomeUnknown { url, cause });
                        }
                        Err(Failure::Stop(error)) => return Err(error),
                    }
                }
                let this_pause = jittered(pause);
                if started.elapsed() + this_pause >= retry_for {
                    break;
                }
                rest(this_pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            // A replica that said no knows more than a port that is shut.
            refused.map_or_else(|| Err(self.unreachable(cause)), Ok)
        })
    }

    fn unreachable(&self, cause: String) -> ClientError {
        ClientError::Unreachable {
            tried: self.urls().map(str::to_owned).collect(),
            hint: hint_of(&cause, self.urls().any(|url| url.starts_with("http://"))).to_owned(),
            cause,
        }
    }

    /// A replica that hangs must not hold those that wait there while others could serve them.
    async fn try_while_alive(&self, base: &Base, call: &Call) -> Result<Reply, Failure> {
        let has_others = self.inner.bases.len() > 1;
        if call.wait.is_zero() || call.repeat != Repeat::Always || !has_others {
            return self.try_one(base, call).await;
        }
        tokio::select! {
            result = self.try_one(base, call) => result,
            failure = self.shows_no_life(base) => Err(failure),
        }
    }

    /// Ends when the replica shows no sign of life.
    async fn shows_no_life(&self, base: &Base) -> Failure {
        let every = self.inner.config.sign_of_life;
        let look = match Call::to(Route::Version) {
            Ok(look) => look,
            Err(error) => return Failure::Stop(error),
        };
        loop {
            rest(every).await;
            match tokio::time::timeout(every, self.try_one(base, &look)).await {
                Ok(Ok(_)) => {}
                Ok(Err(failure)) => return failure,
                Err(_) => {
                    let limit = every.as_millis();
                    return Failure::Sent(format!("no sign of life within {limit} ms"));
                }
            }
        }
    }

    async fn try_one(&self, base: &Base, call: &Call) -> Result<Reply, Failure> {
        let http = match call.repeat {
            Repeat::Always => &base.kept,
            Repeat::IfNotDone => &base.fresh,
        };
        let limit = self.inner.config.request_timeout + call.wait;
        let mut request = http
            .request(call.method.clone(), format!("{}{}", base.url, call.path))
            .query(&call.query);
        if let Some(token) = &call.job_token {
            request = request.header(JOB_TOKEN_HEADER, token);
            // A scheduler of before reads the query alone.
            if !base.takes_header.load(Ordering::Relaxed) {
                request = request.query(&[("job_token", token)]);
            }
        }
        if call.accepts_json {
            request = request.header(header::ACCEPT, "application/json");
        }
        if let Some(bytes) = call.last_bytes {
            request = request.header(header::RANGE, format!("bytes=-{bytes}"));
        }
        let authorization = self.inner.authorization.read().clone();
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let response = send(request, &call.payload, limit).await?;
        let takes_header = response.headers().contains_key(ACCEPTS_HEADER);
        base.takes_header.store(takes_header, Ordering::Relaxed);
        let links = response.headers().get_all(header::LINK).iter();
        let is_part = links.filter_map(|link| link.to_str().ok()).any(leads_on);
        let status = response.status();
        let body = if call.stream && status.is_success() {
            ReplyBody::Stream(response)
        } else {
            ReplyBody::Whole(read_whole(response, &base.url, limit).await?)
        };
        Ok(Reply {
            status: status.as_u16(),
            url: base.url.clone(),
            is_part,
            body,
        })
    }
}

/// Whether a header `Link` has the address of the next page.
fn leads_on(link: &str) -> bool {
    link.contains("rel=\"next\"")
}

/// Sends with a body. A large one may take as long as something of it moves.
async fn send(
    request: reqwest::RequestBuilder,
    payload: &Payload,
    limit: Duration,
) -> Result<reqwest::Response, Failure> {
    match payload {
        Payload::File(file) => {
            let (request, progress) = file.attach(request).await?;
            progress.send(request, limit).await
        }
        Payload::Bytes {
            content_type,
            bytes,
        } => {
            let request = request.header(header::CONTENT_TYPE, *content_type);
            if Progress::is_for(bytes) {
                let (request, progress) = Progress::of_bytes(request, bytes);
                progress.send(request, limit).await
            } else {
                send_within(request.body(bytes.clone()), limit).await
            }
        }
        Payload::None => send_within(request, limit).await,
    }
}

async fn send_within(
    request: reqwest::RequestBuilder,
    limit: Duration,
) -> Result<reqwest::Response, Failure> {
    match tokio::time::timeout(limit, request.send()).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(Failure::of(&error, limit)),
        Err(_) => Err(Failure::Sent(format!(
            "no answer within {} ms",
            limit.as_millis()
        ))),
    }
}

impl Base {
    fn new(given: &str, config: &ClientConfig) -> Result<Self, ClientError> {
        let bad = |problem: String| ClientError::BadUrl {
            value: given.to_owned(),
            problem,
        };
        let text = given.trim();
        let text = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let url = reqwest::Url::parse(&text)
            .map_err(|error| bad(format!("{error}; expected http://HOST:PORT")))?;
        let plain = url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if !matches!(url.scheme(), "http" | "https") || !plain {
            return Err(bad(
                "expected http://HOST:PORT or https://HOST:PORT".to_owned()
            ));
        }
        let build = |connections_kept: usize| {
            let mut builder = reqwest::Client::builder()
                .connect_timeout(config.connect_timeout)
                .tcp_keepalive(KEEPALIVE)
                .redirect(reqwest::redirect::Policy::none())
                .pool_max_idle_per_host(connections_kept)
                .user_agent(concat!("fairlead/", env!("CARGO_PKG_VERSION")));
            if is_loopback(&url) {
                builder = builder.no_proxy();
            }
            builder.build().map_err(|error| bad(error.to_string()))
        };
        Ok(Self {
            url: url.as_str().trim_end_matches('/').to_owned(),
            takes_header: AtomicBool::new(false),
            kept: build(64)?,
            fresh: build(0)?,
        })
    }
}

fn authorization(token: Option<&str>) -> Result<Option<header::HeaderValue>, ClientError> {
    let Some(token) = token else {
        return Ok(None);
    };
    let mut value = header::HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
        ClientError::BadUrl {
            value: "(hidden)".to_owned(),
            problem: "a token must be one line of visible ASCII characters".to_owned(),
        }
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the client's only timer: between two rounds over the replicas, and between two signs of life"
)]
async fn rest(pause: Duration) {
    tokio::time::sleep(pause).await;
}

/// What to look at first when nobody answers.
fn hint_of(cause: &str, is_plain: bool) -> &'static str {
    if cause.contains("corrupt message") {
        return "the address speaks HTTP without TLS: write http:// instead of https://";
    }
    let is_odd = ["connection closed before message", "invalid HTTP version"];
    if is_plain && is_odd.iter().any(|odd| cause.contains(odd)) {
        return "does the address speak TLS? then write https:// instead of http://";
    }
    "is the scheduler running, and is this its address?"
}
