//! Requests of a testbox: work, heartbeats, output. All are idempotent by design and sent again:
//! requests for work by their number, output by its offset.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::{call::Call, error::ClientError, transport::Client};
use crate::{
    ConsumeAnswer, ConsumeRequest, ErrorCode, HeartbeatAnswer, HeartbeatRequest, PeersAnswer, Route,
};

/// How long a server holds a request of a node that waits for its peers.
const WAIT_PEER: Duration = Duration::from_secs(8);

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
        let call = Call::to(Route::Consume { hostname: host })?.json(request)?;
        let wait = Duration::from_secs(u64::from(request.wait_s));
        self.run(&call.wait(wait)).await?.json()
    }

    /// Asks whether all nodes of a job's cluster wait for each other; the server holds the request for some seconds.
    pub async fn wait_peer(
        &self,
        job_id: &str,
        attempt: u16,
        job_token: &str,
    ) -> Result<PeersAnswer, ClientError> {
        let call = Call::to(Route::WaitPeer { id: job_id })?
            .query(vec![("attempt", attempt.to_string())])
            .job_token(Some(job_token))
            .wait(WAIT_PEER);
        self.run(&call).await?.json()
    }

    /// Renews the leases of a session.
    pub async fn heartbeat(
        &self,
        host: &str,
        request: &HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, ClientError> {
        let call = Call::to(Route::Heartbeat { hostname: host })?.json(request)?;
        self.run(&call).await?.json()
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
        let call = Call::to(Route::AppendLog { id: job_id })?
            .query(vec![
                ("attempt", attempt.to_string()),
                ("offset", offset.to_string()),
            ])
            .job_token(Some(job_token))
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
        let gap = (reply.status == ErrorCode::Conflict.status())
            .then(|| size.or_else(|| size_said(&value)))
            .flatten();
        match gap {
            Some(size) if size < offset => Ok(LogAppend::Gap { size }),
            _ => Err(reply
                .checked()
                .map_or_else(|error| error, |reply| reply.bad("expected a refusal"))),
        }
    }
}

/// How much the server has, where a refusal says so in words: `… leaves a gap: the log has 4096 bytes`,
/// or a hint such as `go on at 4096`.
fn size_said(refusal: &Value) -> Option<u64> {
    let text = |name: &str| {
        refusal
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let last_number = |text: &str| {
        text.rsplit(|c: char| !c.is_ascii_digit())
            .find(|digits| !digits.is_empty())
            .and_then(|digits| digits.parse().ok())
    };
    if !text("message").contains("gap") {
        return None;
    }
    last_number(text("hint")).or_else(|| last_number(text("message")))
}
