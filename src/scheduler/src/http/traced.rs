//! Request ids and the request log: each request has an id, in the log and in the answer.
//!
//! A client or a proxy may send its own id in `x-request-id`. Log lines of a request are in its span. The span has the
//! id, the method, the path, and the host or job in the path. The span and one line for each answer are at level debug.

use fairlead_api::{REQUEST_ID_HEADER, Route};
use tracing::{Span, field::Empty};
use uuid::Uuid;
use warp::http::{HeaderMap, HeaderValue, Method};

/// Longest id that is taken from a client, bytes.
const ID_MAX: usize = 64;

/// The id that the client sent, if it is one; else a new one.
pub(super) fn request_id(headers: &HeaderMap) -> HeaderValue {
    let sent = headers.get(REQUEST_ID_HEADER);
    let new = || {
        let id = Uuid::new_v4().simple().to_string();
        HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("none"))
    };
    sent.filter(|id| is_good(id)).cloned().unwrap_or_else(new)
}

/// What is written into logs and answers is short and plain.
fn is_good(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    let id = id.as_bytes();
    (1..=ID_MAX).contains(&id.len()) && id.iter().all(is_plain)
}

/// The span of a request.
pub(super) fn span(id: &HeaderValue, method: &Method, path: &str) -> Span {
    let id = id.to_str().unwrap_or_default();
    tracing::debug_span!("request", request_id = id, %method, path, host = Empty, job_id = Empty)
}

/// Notes the host or the job that the path names.
pub(super) fn name_in_span(route: &Route<'_>) {
    if let [host] = route.value("hostname") {
        Span::current().record("host", host);
    }
    if let [id] = route.value("id")
        && id.bytes().all(|byte| byte.is_ascii_digit())
    {
        Span::current().record("job_id", id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_client_s_own_if_it_is_short_and_plain() {
        let with = |id: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID_HEADER, HeaderValue::from_bytes(id).unwrap());
            request_id(&headers)
        };
        for good in ["a", "ci/run-7:42_x.y", &"x".repeat(ID_MAX)] {
            assert_eq!(with(good.as_bytes()), good);
        }
        for bad in ["", "a b", "\u{e4}", "x\ty", &"x".repeat(ID_MAX + 1)] {
            let id = with(bad.as_bytes());
            assert!(id != bad && id.len() == 32, "{bad}: {id:?}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
