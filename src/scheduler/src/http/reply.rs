//! Builds replies.

use fairlead_api::ErrorCode;
use futures_util::future::BoxFuture;
use serde::Serialize;
use warp::{
    http::{HeaderValue, StatusCode},
    reply::Response,
};

use crate::base::errors::Refusal;

/// A JSON answer.
pub(super) fn json<T: Serialize>(status: u16, body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => typed(status, "application/json", bytes),
        Err(error) => {
            tracing::error!(%error, "an answer could not be encoded as JSON");
            refuse(&Refusal::new(
                ErrorCode::Internal,
                "the answer could not be encoded as JSON",
                "the replica's log has the reason",
            ))
        }
    }
}

/// A text answer.
pub(super) fn text(status: u16, body: impl Into<String>) -> Response {
    typed(
        status,
        "text/plain; charset=utf-8",
        body.into().into_bytes(),
    )
}

/// A page without scripts, from which nothing is loaded.
pub(super) fn html(page: String) -> Response {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let mut response = typed(200, "text/html; charset=utf-8", page.into_bytes());
    let headers = response.headers_mut();
    headers.insert("content-security-policy", HeaderValue::from_static(POLICY));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    response
}

/// Bytes of some type.
pub(super) fn typed(status: u16, content_type: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static(content_type));
    response
}

/// A refusal, with `retry-after` where trying again helps.
pub(super) fn refuse(refusal: &Refusal) -> Response {
    let body = refusal.body();
    say_when(body.code, json(refusal.status(), &body))
}

/// The same, with `retry-after` where trying again helps.
pub(super) fn say_when(code: ErrorCode, mut response: Response) -> Response {
    let again = matches!(
        code,
        ErrorCode::Unavailable | ErrorCode::Unknown | ErrorCode::TooMany
    );
    if again {
        response
            .headers_mut()
            .insert("retry-after", HeaderValue::from_static("2"));
    }
    response
}

/// An acknowledgement.
pub(super) fn done() -> Response {
    text(200, "Success")
}

/// A JSON answer of a handler that cannot be refused any more.
pub(super) fn ok<T: Serialize>(body: &T) -> Response {
    json(200, body)
}

/// Boxed: one handler needs twenty times the memory of another, and thousands of requests wait.
pub(super) type Answer<'a> = BoxFuture<'a, Result<Response, Refusal>>;
