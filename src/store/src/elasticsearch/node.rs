//! One node: its connections, and whether it is avoided for a while.

use std::time::{Duration, Instant};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use reqwest::{
    Certificate, Client, ClientBuilder, Method, RequestBuilder, Url,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue,
        InvalidHeaderValue,
    },
};

use super::{
    call::Call,
    config::{ElasticConfig, without_user},
};
use crate::{StoreError, clock};

/// Back-off after the first failure of a node; doubled with each failure in a row.
const DEAD_FIRST: Duration = Duration::from_millis(500);
/// Longest back-off.
const DEAD_MOST: Duration = Duration::from_secs(30);
/// Time without an answer after which the node is asked for a sign of life; and again.
const QUIET: Duration = Duration::from_secs(1);
/// Timeout of that answer.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
const JSON: &str = "application/json";
/// Content type of lines of JSON.
const LINES: &str = "application/x-ndjson";

/// Result of one try on one node.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The node answered.
    Answer { status: u16, body: Bytes },
    /// No connection: the request was certainly not sent.
    NotSent(String),
    /// The request was, or may have been, sent, and no whole answer came.
    Broken(String),
}

/// A node of the cluster.
#[derive(Debug)]
pub(super) struct Node {
    /// Name for display, without a password.
    pub(super) name: String,
    /// Base of its URLs, without a slash at the end.
    url: String,
    client: Client,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    dead_until: Option<Instant>,
    /// True while one call tries if a failed node is live again. Other calls leave the node out meanwhile.
    on_trial: bool,
}

/// Rank of a node: the smallest one is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The node is live, or may be tried.
    Well,
    /// The node failed before and its back-off time has passed.
    Rested,
    /// The node is left out until this time.
    Resting(Instant),
}

impl Node {
    /// Creates the node without connecting to it.
    pub(super) fn new(url: &str, config: &ElasticConfig) -> Result<Self, StoreError> {
        let name = without_user(url).to_owned();
        let refuse = |problem: String| StoreError::Unusable {
            reason: format!("Elasticsearch at {name}: {problem}"),
            hint: "give URLs as http://HOST:PORT, and certificates as PEM".to_owned(),
        };
        Url::parse(url).map_err(|error| refuse(error.to_string()))?;
        let headers = headers(config).map_err(|error| refuse(error.to_string()))?;
        let mut builder = Client::builder().no_proxy().default_headers(headers);
        if let Some(pem) = &config.ca_pem {
            let certificates = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(|error| refuse(format!("the CA certificate: {error}")))?;
            builder = certificates
                .into_iter()
                .fold(builder, ClientBuilder::add_root_certificate);
        }
        let client = builder.build().map_err(|error| refuse(error.to_string()))?;
        Ok(Self {
            name,
            url: url.trim_end_matches('/').to_owned(),
            client,
            state: Mutex::default(),
        })
    }

    /// Sends one try. A hanging node is detected long before `timeout`, because it does not answer a sign of life
    /// either.
    pub(super) async fn send_or_hang_up(&self, call: &Call, timeout: Duration) -> Outcome {
        tokio::select! {
            outcome = self.send(call, timeout) => outcome,
            reason = self.falls_silent() => Outcome::Broken(reason),
        }
    }

    /// Sends one try. Used for the only node, where giving up early has no use.
    pub(super) async fn send(&self, call: &Call, timeout: Duration) -> Outcome {
        let kind = if call.is_ndjson { LINES } else { JSON };
        let request = self.request(call.method.clone(), &call.path, timeout);
        let mut request = request.header(CONTENT_TYPE, kind);
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return self.of_error(&error),
        };
        let status = response.status().as_u16();
        match response.bytes().await {
            Ok(body) => Outcome::Answer { status, body },
            Err(error) => Outcome::Broken(self.in_words(&error)),
        }
    }

    /// Returns when the node does not answer the simplest request. Returns the error as text.
    async fn falls_silent(&self) -> String {
        loop {
            clock::pause(QUIET).await;
            let asked = self.request(Method::HEAD, "/", SIGN_OF_LIFE);
            if let Err(error) = asked.send().await {
                return self.in_words(&error);
            }
        }
    }

    fn request(&self, method: Method, path: &str, timeout: Duration) -> RequestBuilder {
        let url = format!("{}{path}", self.url);
        self.client.request(method, url).timeout(timeout)
    }

    /// Returns true if the node is live.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        self.rank(now, false) == Rank::Well
    }

    /// Returns the rank of the node. `may_try`: a call may try a failed node.
    pub(super) fn rank(&self, now: Instant, may_try: bool) -> Rank {
        match self.locked().dead_until {
            None => Rank::Well,
            Some(until) if until > now => Rank::Resting(until),
            Some(_) if may_try => Rank::Well,
            Some(_) => Rank::Rested,
        }
    }

    /// Begins a call. A call that tries a failed node is the only one for a while.
    pub(super) fn begin(&self, now: Instant) {
        let mut state = self.locked();
        if state.dead_until.is_some_and(|until| until <= now) {
            state.dead_until = Some(now + QUIET + SIGN_OF_LIFE);
            state.on_trial = true;
        }
    }

    /// Notes that the node answered.
    pub(super) fn mark_live(&self) {
        *self.locked() = State::default();
    }

    /// Notes that the node did not answer. Calls that fail together count as one failure.
    pub(super) fn mark_dead(&self, now: Instant) {
        let mut state = self.locked();
        if state.dead_until.is_some_and(|until| until > now) && !state.on_trial {
            return;
        }
        let time = DEAD_FIRST * 2_u32.saturating_pow(state.failures.min(16));
        state.failures += 1;
        state.dead_until = Some(now + time.min(DEAD_MOST));
        state.on_trial = false;
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn of_error(&self, error: &reqwest::Error) -> Outcome {
        let words = self.in_words(error);
        if (error.is_connect() || error.is_builder()) && !error.is_timeout() {
            Outcome::NotSent(words)
        } else {
            Outcome::Broken(words)
        }
    }

    /// Returns the text of the innermost cause, because the outer errors are too general.
    fn in_words(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return format!("{}: no answer in time", self.name);
        }
        let mut inner: &(dyn std::error::Error + 'static) = error;
        while let Some(cause) = inner.source() {
            inner = cause;
        }
        format!("{}: {inner}", self.name)
    }
}

/// Headers of all requests.
fn headers(config: &ElasticConfig) -> Result<HeaderMap, InvalidHeaderValue> {
    let json = HeaderValue::from_static(JSON);
    // Else every answer is packed, which costs Elasticsearch as much as a write.
    let plain = HeaderValue::from_static("identity");
    let mut headers = HeaderMap::from_iter([(ACCEPT, json), (ACCEPT_ENCODING, plain)]);
    let login = match (&config.api_key, &config.username) {
        (Some(key), _) => format!("ApiKey {key}"),
        (None, Some(user)) => {
            let password = config.password.as_deref().unwrap_or_default();
            let pair = BASE64_STANDARD.encode(format!("{user}:{password}"));
            format!("Basic {pair}")
        }
        (None, None) => return Ok(headers),
    };
    let mut login = HeaderValue::try_from(login)?;
    // `Debug` hides it.
    login.set_sensitive(true);
    headers.insert(AUTHORIZATION, login);
    Ok(headers)
}
