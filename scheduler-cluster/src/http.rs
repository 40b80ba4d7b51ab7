//! Plain HTTP to what runs on this machine.

use std::time::Duration;

/// A client that asks no proxy and for nothing packed, and waits so long for a whole answer.
pub(crate) fn client(answer_time: Duration) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .no_proxy()
        .no_gzip()
        .timeout(answer_time)
        .build()
}
