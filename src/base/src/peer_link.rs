//! The link to other replicas. Best effort: the next read of the store finds whatever is lost here.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;

/// Timeout of one message. A slower peer reads the change from the store.
const SEND_TIME: Duration = Duration::from_secs(2);

/// Carries messages from one replica to another.
#[async_trait]
pub trait PeerLink: Send + Sync + fmt::Debug {
    /// Posts `body` to the replica at `url` (including its path), with the bearer token that peers share. Fails with
    /// the problem as text. The message is not repeated.
    async fn post(&self, url: &str, token: &str, body: Bytes) -> Result<(), String>;
}

/// Peers over HTTP.
#[derive(Debug)]
pub struct HttpPeers(reqwest::Client);

impl Default for HttpPeers {
    fn default() -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(SEND_TIME);
        Self(client.build().unwrap_or_default())
    }
}

#[async_trait]
impl PeerLink for HttpPeers {
    async fn post(&self, url: &str, token: &str, body: Bytes) -> Result<(), String> {
        let sent = self.0.post(url).bearer_auth(token).body(body).send().await;
        match sent.and_then(reqwest::Response::error_for_status) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
