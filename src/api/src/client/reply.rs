//! Reads replies: classifies refusals, and reads bodies as a whole or in pieces.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    call::Repeat,
    error::{ClientError, Failure},
};
use crate::{ErrorBody, ErrorCode};

/// Largest answer that is read into memory: a page of jobs or a batch of grants is far below it.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How much of an answer that is not understood is shown.
const SHOWN_CHARS: usize = 200;

/// An answer, good or not.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// Base URL of the replica that gave it.
    pub(super) url: String,
    /// Whether a list goes on behind it.
    pub(super) is_part: bool,
    pub(super) body: ReplyBody,
}

#[derive(Debug)]
pub(super) enum ReplyBody {
    Whole(Bytes),
    Stream(reqwest::Response),
}

impl Reply {
    /// Whether the request is to be tried on the next replica. 503 `unavailable`, 503 `unreadable_document`
    /// and 429 say that nothing was done; all other 502, 503 and 504 leave it open.
    pub(super) fn try_elsewhere(&self, repeat: Repeat) -> bool {
        if !matches!(self.status, 429 | 502 | 503 | 504) {
            return false;
        }
        repeat == Repeat::Always || self.status == 429 || (self.status == 503 && self.says_undone())
    }

    /// Whether the body says in so many words that nothing was done, for an item at a time too.
    fn says_undone(&self) -> bool {
        let is_it = |value: &Value| {
            let code = value.get("code").and_then(Value::as_str);
            [ErrorCode::Unavailable, ErrorCode::UnreadableDocument]
                .iter()
                .any(|undone| code == Some(undone.as_str()))
        };
        match self.value() {
            Some(Value::Array(items)) => !items.is_empty() && items.iter().all(is_it),
            Some(value) => is_it(&value),
            None => false,
        }
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn whole(&self) -> &[u8] {
        match &self.body {
            ReplyBody::Whole(bytes) => bytes,
            ReplyBody::Stream(_) => &[],
        }
    }

    /// The body, where it is JSON.
    pub(super) fn value(&self) -> Option<Value> {
        serde_json::from_slice(self.whole()).ok()
    }

    /// Turns an answer that is not 2xx into the refusal that it is.
    pub(super) fn checked(self) -> Result<Self, ClientError> {
        if self.is_success() {
            return Ok(self);
        }
        Err(ClientError::Refused {
            status: self.status,
            body: self.refusal(),
        })
    }

    /// Reads a refusal leniently: what answers may be a proxy, or a scheduler that knows newer codes.
    fn refusal(&self) -> ErrorBody {
        let value = self.value().unwrap_or(Value::Null);
        // A submit that is refused answers a list; its first item tells why.
        let value = match value {
            Value::Array(items) => items.into_iter().next().unwrap_or(Value::Null),
            other => other,
        };
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let code = value
            .get("code")
            .and_then(|code| serde_json::from_value(code.clone()).ok())
            .unwrap_or_else(|| code_of(self.status));
        let message = text("message").map_or_else(
            || format!("{} answered {}: {}", self.url, self.status, self.shown()),
            str::to_owned,
        );
        let hint = text("hint").unwrap_or_default();
        ErrorBody::new(code, message, hint)
    }

    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(self.whole());
        let mut shown: String = text.trim().chars().take(SHOWN_CHARS).collect();
        if shown.is_empty() {
            shown.push_str("(nothing)");
        }
        shown
    }

    /// The body as it is.
    pub(super) fn bytes(self) -> Result<Bytes, ClientError> {
        match self.checked()?.body {
            ReplyBody::Whole(bytes) => Ok(bytes),
            ReplyBody::Stream(_) => Ok(Bytes::new()),
        }
    }

    /// The body as text.
    pub(super) fn text(self) -> Result<String, ClientError> {
        let reply = self.checked()?;
        Ok(String::from_utf8_lossy(reply.whole()).into_owned())
    }

    /// The body as a `T`.
    pub(super) fn json<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let reply = self.checked()?;
        serde_json::from_slice(reply.whole()).map_err(|error| reply.bad(&error.to_string()))
    }

    /// The same, whether the answer is good or not.
    pub(super) fn json_of_any_status<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        serde_json::from_slice(self.whole()).map_err(|error| self.bad(&error.to_string()))
    }

    /// The body as a list of `T`, bare or as field `name` of an object.
    pub(super) fn json_list<T: DeserializeOwned>(self, name: &str) -> Result<Vec<T>, ClientError> {
        let reply = self.checked()?;
        let list = match reply.value() {
            Some(Value::Object(mut fields)) => fields.remove(name),
            other => other,
        };
        let list = list.ok_or_else(|| reply.bad(&format!("expected a list of {name}")))?;
        serde_json::from_value(list).map_err(|error| reply.bad(&error.to_string()))
    }

    /// The body as it comes.
    pub(super) fn stream(self, pause_max: Option<Duration>) -> Result<ByteStream, ClientError> {
        let reply = self.checked()?;
        match reply.body {
            ReplyBody::Stream(response) => Ok(ByteStream {
                length: response.content_length(),
                response,
                url: reply.url,
                pause_max,
            }),
            ReplyBody::Whole(_) => Err(reply.bad("expected a stream")),
        }
    }

    pub(super) fn bad(&self, problem: &str) -> ClientError {
        ClientError::BadAnswer {
            url: self.url.clone(),
            status: self.status,
            problem: format!("{problem}; it said: {}", self.shown()),
        }
    }
}

/// The code that fits a status best, where the body names none that is known here.
fn code_of(status: u16) -> ErrorCode {
    match status {
        401 => ErrorCode::Unauthorized,
        403 => ErrorCode::Forbidden,
        404 => ErrorCode::NotFound,
        405 => ErrorCode::MethodNotAllowed,
        409 => ErrorCode::Conflict,
        413 => ErrorCode::TooLarge,
        415 => ErrorCode::UnsupportedMediaType,
        423 => ErrorCode::Closed,
        429 => ErrorCode::TooMany,
        503 => ErrorCode::Unavailable,
        502 | 504 => ErrorCode::Unknown,
        507 => ErrorCode::DataFull,
        400..500 => ErrorCode::BadBody,
        _ => ErrorCode::Internal,
    }
}

/// Reads a whole body of bounded size; each piece must come within `limit`.
pub(super) async fn read_whole(
    mut response: reqwest::Response,
    url: &str,
    limit: Duration,
) -> Result<Bytes, Failure> {
    let status = response.status().as_u16();
    let mut all = BytesMut::new();
    loop {
        let piece = match tokio::time::timeout(limit, response.chunk()).await {
            Ok(Ok(Some(piece))) => piece,
            Ok(Ok(None)) => return Ok(all.freeze()),
            Ok(Err(error)) => return Err(Failure::of(&error, limit)),
            Err(_) => {
                return Err(Failure::Sent(format!(
                    "the answer stopped for {} ms",
                    limit.as_millis()
                )));
            }
        };
        if all.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(Failure::Stop(ClientError::BadAnswer {
                url: url.to_owned(),
                status,
                problem: format!("longer than {ANSWER_BYTES_MAX} bytes"),
            }));
        }
        all.extend_from_slice(&piece);
    }
}

/// A body that comes piece by piece: a log that is followed, a file. Dropping it closes the connection.
#[derive(Debug)]
pub struct ByteStream {
    response: reqwest::Response,
    url: String,
    length: Option<u64>,
    /// How long the next piece may take; `None`: for ever (a job that says nothing for hours).
    pause_max: Option<Duration>,
}

impl ByteStream {
    /// How long it will be, bytes, where the server said.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The next piece, never empty; `None` at the end.
    ///
    /// Errors: [`ClientError::Unreachable`] when the connection broke; ask again from the offset that
    /// was reached.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        let lost = |cause: String| ClientError::Unreachable {
            tried: vec![self.url.clone()],
            cause,
            hint: "ask again from where it broke".to_owned(),
        };
        loop {
            let next = self.response.chunk();
            let piece = match self.pause_max {
                None => next.await,
                Some(pause_max) => tokio::time::timeout(pause_max, next).await.map_err(|_| {
                    lost(format!(
                        "the stream stopped for {} ms",
                        pause_max.as_millis()
                    ))
                })?,
            };
            match piece {
                Ok(Some(bytes)) if bytes.is_empty() => {}
                Ok(piece) => return Ok(piece),
                Err(error) => return Err(lost(format!("the stream broke: {error}"))),
            }
        }
    }
}
