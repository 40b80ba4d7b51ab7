//! One node: its transport, and whether it is left alone for a while.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use ::elasticsearch::{
    auth::Credentials,
    cert::{Certificate, CertificateValidation},
    http::{
        Method, Url,
        headers::{CONTENT_TYPE, HeaderMap, HeaderValue},
        transport::{SingleNodeConnectionPool, Transport, TransportBuilder},
    },
};
use bytes::Bytes;

use super::config::{ElasticConfig, without_user};
use crate::StoreError;

/// How long a node that failed once is left alone; doubled with each failure in a row.
const DEAD_FIRST: Duration = Duration::from_millis(500);
/// The longest that it is left alone.
const DEAD_MOST: Duration = Duration::from_secs(30);

/// What came of one try on one node.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It answered.
    Answer { status: u16, body: Bytes },
    /// No connection: certainly not sent.
    NotSent(String),
    /// Sent, or perhaps sent, and no whole answer came.
    Broken(String),
}

/// A node of the cluster.
#[derive(Debug)]
pub(super) struct Node {
    /// For people: no password in it.
    pub(super) name: String,
    transport: Transport,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    dead_until: Option<Instant>,
}

impl Node {
    /// Makes the transport; connects to nothing yet.
    pub(super) fn new(url: &str, config: &ElasticConfig) -> Result<Self, StoreError> {
        let name = without_user(url).to_owned();
        let refuse = |problem: String| StoreError::Unusable {
            reason: format!("Elasticsearch at {name}: {problem}"),
            hint: "give URLs as http://HOST:PORT, and certificates as PEM".to_owned(),
        };
        let parsed = Url::parse(url).map_err(|error| refuse(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
            return Err(refuse("not an http or https URL".to_owned()));
        }
        let own_user = (!parsed.username().is_empty()).then(|| {
            let password = parsed.password().unwrap_or_default();
            Credentials::Basic(parsed.username().to_owned(), password.to_owned())
        });
        let mut builder =
            TransportBuilder::new(SingleNodeConnectionPool::new(parsed)).disable_proxy();
        if let Some(credentials) = credentials(config).or(own_user) {
            builder = builder.auth(credentials);
        }
        if let Some(pem) = &config.ca_pem {
            let certificate = Certificate::from_pem(pem.as_bytes())
                .map_err(|error| refuse(format!("the CA certificate: {error}")))?;
            builder = builder.cert_validation(CertificateValidation::Full(certificate));
        }
        let transport = builder.build().map_err(|error| refuse(error.to_string()))?;
        Ok(Self {
            name,
            transport,
            state: Mutex::default(),
        })
    }

    /// One try.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        is_ndjson: bool,
        timeout: Duration,
    ) -> Outcome {
        let mut headers = HeaderMap::new();
        if is_ndjson {
            headers.insert(
                CONTENT_TYPE,
                HeaderValue::from_static("application/x-ndjson"),
            );
        }
        let sent = self
            .transport
            .send(method, path, headers, None::<&()>, body, Some(timeout))
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => return self.of_error(&error),
        };
        let status = response.status_code().as_u16();
        match response.bytes().await {
            Ok(body) => Outcome::Answer { status, body },
            Err(error) => Outcome::Broken(self.in_words(&error)),
        }
    }

    /// Whether it may be asked now.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        self.dead_until().is_none_or(|until| until <= now)
    }

    /// Until when it is left alone.
    pub(super) fn dead_until(&self) -> Option<Instant> {
        self.locked().dead_until
    }

    /// It answered.
    pub(super) fn mark_live(&self) {
        *self.locked() = State::default();
    }

    /// It did not.
    pub(super) fn mark_dead(&self, now: Instant) {
        let mut state = self.locked();
        let time = DEAD_FIRST * 2_u32.saturating_pow(state.failures.min(16));
        state.failures += 1;
        state.dead_until = Some(now + time.min(DEAD_MOST));
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_error(&self, error: &::elasticsearch::Error) -> Outcome {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        let mut refused = false;
        while let Some(inner) = cause {
            refused |= inner
                .downcast_ref::<reqwest::Error>()
                .is_some_and(|error| error.is_connect() || error.is_builder());
            cause = inner.source();
        }
        let words = self.in_words(error);
        if refused && !error.is_timeout() {
            Outcome::NotSent(words)
        } else {
            Outcome::Broken(words)
        }
    }

    /// The innermost cause says what happened; the outer ones only that something did.
    fn in_words(&self, error: &::elasticsearch::Error) -> String {
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

fn credentials(config: &ElasticConfig) -> Option<Credentials> {
    if let Some(key) = &config.api_key {
        return Some(Credentials::EncodedApiKey(key.clone()));
    }
    let user = config.username.clone()?;
    let password = config.password.clone().unwrap_or_default();
    Some(Credentials::Basic(user, password))
}
