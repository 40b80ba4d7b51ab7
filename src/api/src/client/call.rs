//! One request, independent of the replica that it goes to: method, path, query, body, and whether it may be repeated.

use std::time::Duration;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use reqwest::Method;

use super::{error::ClientError, file_body::FileBody};
use crate::Route;

/// Everything but RFC 3986's unreserved characters is escaped in a path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Whether a request whose outcome is unknown may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Yes: doing it twice is doing it once.
    Always,
    /// Only when it was certainly not done.
    IfNotDone,
}

#[derive(Debug)]
pub(super) enum Payload {
    None,
    Bytes {
        content_type: &'static str,
        bytes: Bytes,
    },
    File(FileBody),
}

/// One request, independent of the replica that it goes to.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    /// Begins with a slash, escaped.
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) payload: Payload,
    /// How long the server may wait on purpose.
    pub(super) wait: Duration,
    pub(super) repeat: Repeat,
    /// Whether JSON is asked for, where text is the usual answer.
    pub(super) accepts_json: bool,
    /// Only so many bytes of the end of the body.
    pub(super) last_bytes: Option<u64>,
    /// Whether the body of a good answer is handed on as it comes.
    pub(super) stream: bool,
    /// The token of the job that it is about: sent as a header, so that no log of addresses has it.
    pub(super) job_token: Option<String>,
}

impl Call {
    /// A request of this route. Refuses names that cannot stand in a path.
    pub(super) fn to(route: Route<'_>) -> Result<Self, ClientError> {
        let endpoint = route.endpoint();
        let mut path = String::new();
        for part in endpoint.path.split('/').skip(1) {
            let Some((_, name)) = part.split_once([':', '*']) else {
                path.extend(["/", part]);
                continue;
            };
            for value in route.value(name) {
                path.extend(["/", &segment(value)?]);
            }
        }
        Ok(Self {
            method: endpoint.methods[0].parse().unwrap_or_default(),
            path,
            query: Vec::new(),
            payload: Payload::None,
            wait: Duration::ZERO,
            repeat: Repeat::Always,
            accepts_json: false,
            last_bytes: None,
            stream: false,
            job_token: None,
        })
    }

    pub(super) fn job_token(mut self, token: Option<&str>) -> Self {
        self.job_token = token.map(str::to_owned);
        self
    }

    pub(super) fn json(self, body: &impl serde::Serialize) -> Result<Self, ClientError> {
        let bytes = serde_json::to_vec(body).map_err(|error| ClientError::BadUrl {
            value: "the request's body".to_owned(),
            problem: error.to_string(),
        })?;
        Ok(self.bytes("application/json", bytes.into()))
    }

    pub(super) fn bytes(mut self, content_type: &'static str, bytes: Bytes) -> Self {
        self.payload = Payload::Bytes {
            content_type,
            bytes,
        };
        self
    }

    pub(super) fn query(mut self, pairs: Vec<(&'static str, String)>) -> Self {
        self.query = pairs;
        self
    }

    pub(super) fn once(mut self) -> Self {
        self.repeat = Repeat::IfNotDone;
        self
    }

    pub(super) fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// Escapes one path segment. Refuses those that mean "here" and "above", and the empty one.
fn segment(name: &str) -> Result<String, ClientError> {
    if matches!(name, "" | "." | "..") {
        return Err(ClientError::BadUrl {
            value: name.to_owned(),
            problem: "a name in a path must not be empty, '.' or '..'".to_owned(),
        });
    }
    Ok(percent_encode(name.as_bytes(), SEGMENT).to_string())
}
