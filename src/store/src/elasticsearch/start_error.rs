//! Errors of calls at the start: the reason, and what to do.

use super::{call::Failure, config::ElasticConfig};
use crate::StoreError;

/// Advice for missing privileges.
pub(super) const ROLE_HINT: &str = "give it the role of 'Elasticsearch with logins' in the operator's guide, made for \
    this --index-prefix";

/// Returns true if the credentials are known but lack the right.
pub(super) fn is_denial(failure: &Failure) -> bool {
    matches!(failure, Failure::Status { status: 403, .. })
}

/// Returns the reason why a call at the start failed, with advice.
pub(super) fn unusable(failure: Failure, config: &ElasticConfig) -> StoreError {
    let urls = config.shown_urls();
    let (reason, hint) = match failure {
        Failure::NotSent(reason) | Failure::Busy(reason) | Failure::Unknown(reason) => (
            format!("Elasticsearch at {urls} cannot be reached: {reason}"),
            hint_of_silence(&reason),
        ),
        Failure::Status {
            status: 401,
            reason,
            ..
        } => (
            format!("Elasticsearch at {urls} refuses {}: {reason}", who(config)),
            hint_of_login(config),
        ),
        Failure::Status {
            status: 403,
            reason,
            ..
        } => (
            format!("{} lacks rights at Elasticsearch: {reason}", who(config)),
            ROLE_HINT,
        ),
        Failure::Status { reason, .. } => (
            format!("Elasticsearch at {urls} cannot be used: {reason}"),
            "see its log",
        ),
    };
    StoreError::Unusable {
        reason,
        hint: hint.to_owned(),
    }
}

/// Returns the credentials as text.
pub(super) fn who(config: &ElasticConfig) -> String {
    match (&config.username, &config.api_key) {
        (Some(user), _) => format!("user '{user}'"),
        (None, Some(_)) => "the API key".to_owned(),
        (None, None) => "a client without a login".to_owned(),
    }
}

fn hint_of_login(config: &ElasticConfig) -> &'static str {
    match (&config.username, &config.api_key) {
        (Some(_), _) => {
            "check --elasticsearch-user, and the password in FAIRLEAD_ELASTICSEARCH_PASSWORD or \
            --elasticsearch-password-file"
        }
        (None, Some(_)) => {
            "check the key in FAIRLEAD_ELASTICSEARCH_API_KEY or --elasticsearch-api-key-file: it is good \
            no more, or never was"
        }
        (None, None) => "give --elasticsearch-user and its password, or an API key",
    }
}

/// Returns advice on a connection error. TLS libraries report the cause only as text.
fn hint_of_silence(reason: &str) -> &'static str {
    if reason.contains("invalid peer certificate") {
        "give the authority that signed its certificate by --elasticsearch-ca FILE (authorities that the \
        system trusts are not asked); the certificate must name the host as the URL does"
    } else if reason.contains("corrupt message") {
        "it does not speak TLS there: write http:// in --elasticsearch"
    } else {
        "check that it runs and that --elasticsearch names it, with https:// where it speaks TLS"
    }
}
