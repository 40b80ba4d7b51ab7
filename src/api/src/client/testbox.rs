//! Requests of a testbox: work, heartbeats, output. All are idempotent by design and sent again:
//! requests for work by their number, output by its offset.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::{
    Client, ClientError,
    transport::{Call, segment},
};
use crate::{ConsumeAnswer, ConsumeRequest, ErrorCode, HeartbeatAnswer, HeartbeatRequest};

/// Where the server's copy of an output stands after an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAppend {
    /// The bytes are in; so much is there now.
    Stored {
        /// Bytes in all.
        size: u64,
    },
    /// The server has less than the offset that was given: go on from what it has.
    Gap {
        /// Bytes in all.
        size: u64,
    },
}

impl Client {
    /// Asks for work; the server holds the request for up to `wait_s`.
    pub async fn consume(
        &self,
        host: &str,
        request: &ConsumeRequest,
    ) -> Result<ConsumeAnswer, ClientError> {
        let path = format!("/scheduler/v1/testboxes/{}/consume", segment(host)?);
        let call = Call::post(path).json(request)?;
        let wait = Duration::from_secs(u64::from(request.wait_s));
        self.run(&call.wait(wait)).await?.json()
    }

    /// Renews the leases of a session.
    pub async fn heartbeat(
        &self,
        host: &str,
        request: &HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, ClientError> {
        let path = format!("/scheduler/v1/testboxes/{}/heartbeat", segment(host)?);
        self.run(&Call::post(path).json(request)?).await?.json()
    }

    /// Appends to an attempt's output, at most 1 MiB at a time. What the server has already from
    /// `offset` on is left as it is.
    pub async fn append_log(
        &self,
        job_id: &str,
        attempt: u16,
        job_token: &str,
        offset: u64,
        bytes: Bytes,
    ) -> Result<LogAppend, ClientError> {
        let path = format!("/scheduler/v1/jobs/{}/log", segment(job_id)?);
        let call = Call::post(path)
            .query(vec![
                ("attempt", attempt.to_string()),
                ("job_token", job_token.to_owned()),
                ("offset", offset.to_string()),
            ])
            .bytes("application/octet-stream", bytes);
        let reply = self.run(&call).await?;
        let value = reply.value().unwrap_or(Value::Null);
        let size = value.get("size").and_then(Value::as_u64);
        if reply.is_success() {
            return match size {
                Some(size) => Ok(LogAppend::Stored { size }),
                None => Err(reply.bad("expected {\"size\": bytes}")),
            };
        }
        let conflict = reply.status == ErrorCode::Conflict.status();
        match size.or_else(|| number_in(value.get("hint")?.as_str()?)) {
            Some(size) if conflict && size < offset => Ok(LogAppend::Gap { size }),
            _ => Err(reply
                .checked()
                .map_or_else(|error| error, |reply| reply.bad("expected a refusal"))),
        }
    }
}

/// The first number in a hint such as `go on at offset 4096`.
fn number_in(hint: &str) -> Option<u64> {
    hint.split(|c: char| !c.is_ascii_digit())
        .find(|digits| !digits.is_empty())
        .and_then(|digits| digits.parse().ok())
}
