//! Sends a message to a receiver that the operator allows.

use std::{net::SocketAddr, time::Duration};

use reqwest::{Client, Url, redirect::Policy};

use super::message::Message;
use fairlead_base::webhook_targets::Targets;

/// How long a receiver may take.
const SEND_TIME: Duration = Duration::from_secs(10);

/// Why a receiver did not take a message.
pub(super) struct NotTaken {
    /// In words.
    pub(super) problem: String,
    /// It did not answer in time.
    pub(super) is_slow: bool,
}

impl From<String> for NotTaken {
    fn from(problem: String) -> Self {
        Self {
            problem,
            is_slow: false,
        }
    }
}

/// Sends a message once. The address that was checked is the one that is connected to, and nothing leads elsewhere.
///
/// # Errors
/// The receiver did not take it.
pub(super) async fn send(message: &Message, targets: &Targets) -> Result<(), NotTaken> {
    let url = Url::parse(&message.url).map_err(|error| format!("its address is bad: {error}"))?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let name = host.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((name, port)).await;
    let mut found = found.map_err(|error| format!("{host} is not found: {error}"))?;
    let address: Option<SocketAddr> = found.find(|at| targets.allows(&url, at.ip()));
    let Some(address) = address else {
        let problem = format!(
            "the operator does not allow webhooks to {host}, port {port}: fairlead serve --webhooks-to"
        );
        return Err(problem.into());
    };
    let client = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .timeout(SEND_TIME)
        .resolve(name, address)
        .build()
        .map_err(|error| error.to_string())?;
    let mut request = client.post(url).body(message.body.clone());
    for (name, value) in &message.headers {
        request = request.header(*name, value);
    }
    let answer = request.send().await.map_err(|error| NotTaken {
        problem: words_of(&error),
        is_slow: error.is_timeout(),
    })?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    Err(format!("it answered {}", status.as_u16()).into())
}

/// An error without the address, which may have a token in its query.
fn words_of(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("it did not answer within {} s", SEND_TIME.as_secs());
    }
    if error.is_connect() {
        return "no connection".to_owned();
    }
    "the connection broke".to_owned()
}
