//! Plain HTTP to programs on this machine.

use std::time::Duration;

/// A client without proxy and compression. `answer_time` limits a whole answer.
///
/// # Errors
/// The TLS stack could not be set up.
pub fn client(answer_time: Duration) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .no_proxy()
        .no_gzip()
        .timeout(answer_time)
        .build()
}
