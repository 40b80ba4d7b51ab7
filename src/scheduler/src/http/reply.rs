//! Builds replies.

use bytes::Bytes;
use fairlead_api::ErrorCode;
use futures_util::future::BoxFuture;
use serde::Serialize;
use warp::{
    http::{HeaderValue, StatusCode},
    reply::Response,
};

use super::request::Request;
use crate::files::read::names_tag;
use fairlead_base::{errors::Refusal, gzip};

/// Shorter answers are not compressed, bytes.
const PACKED_MIN: usize = 4096;
/// Characters of a tag.
const TAG_CHARS: usize = 32;
/// Most entries of a page.
const PAGE_MAX: u64 = 1_000;

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

/// Says that a body is compressed.
pub(super) fn packed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert("content-encoding", HeaderValue::from_static("gzip"));
    headers.insert("vary", HeaderValue::from_static("accept-encoding"));
    response
}

/// A JSON answer with its `ETag`; nothing but that, if whoever asks has it.
pub(super) fn tagged<T: Serialize>(request: &Request, body: &T) -> Response {
    let Ok(text) = serde_json::to_vec(body) else {
        return json(200, body);
    };
    let text = Bytes::from(text);
    let short = || {
        let short = (text.len() >= PACKED_MIN).then(|| gzip::whole(&text));
        short.flatten().map(Bytes::from)
    };
    tagged_by(request, &text, short, || text.clone())
}

/// The same of JSON that is made when it is needed: compressed, or as it is. `hashed` makes the tag.
pub(super) fn tagged_by(
    request: &Request,
    hashed: &[u8],
    short: impl FnOnce() -> Option<Bytes>,
    long: impl FnOnce() -> Bytes,
) -> Response {
    let hash = blake3::hash(hashed).to_hex();
    let tag = format!("\"{}\"", &hash[..TAG_CHARS]);
    let known = request.header("if-none-match").unwrap_or_default();
    let is_known = names_tag(known, &tag);
    let wants_short = request.takes_gzip() && !is_known;
    let mut response = match wants_short.then(short).flatten() {
        _ if is_known => typed(304, "application/json", Vec::new()),
        Some(short) => packed(bytes(200, "application/json", short)),
        None => bytes(200, "application/json", long()),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert("etag", tag);
    }
    response
}

/// A page of a list: with `limit` so many items at most, and of what is long only what fits. The header `Link` leads to the
/// next page.
pub(super) struct Page {
    items: Vec<u8>,
    /// Items that may follow.
    room: u64,
    bytes_max: usize,
    /// The key of the last item.
    last: String,
    is_full: bool,
}

impl Page {
    /// A page of at most so many bytes, but of one item at least.
    pub(super) fn of(request: &Request, bytes_max: usize) -> Result<Self, Refusal> {
        let is_limited = request.query.get("limit").is_some();
        let room = if is_limited {
            request.query.number("limit", 0..=PAGE_MAX, PAGE_MAX)?
        } else {
            u64::MAX
        };
        Ok(Self {
            items: Vec::new(),
            room,
            bytes_max,
            last: String::new(),
            is_full: false,
        })
    }

    /// Whether the page ends before this item.
    pub(super) fn is_full_for<T: Serialize>(&mut self, key: &str, item: &T) -> bool {
        let json = serde_json::to_vec(item).unwrap_or_default();
        let is_long = !self.items.is_empty() && self.items.len() + json.len() > self.bytes_max;
        self.is_full = self.room == 0 || is_long;
        if !self.is_full && !json.is_empty() {
            self.room -= 1;
            self.items
                .push(if self.items.is_empty() { b'[' } else { b',' });
            self.items.extend(json);
            key.clone_into(&mut self.last);
        }
        self.is_full
    }

    /// The answer to a request for it.
    pub(super) fn answer(mut self, request: &Request) -> Response {
        if self.items.is_empty() {
            self.items.push(b'[');
        }
        self.items.push(b']');
        let mut response = typed(200, "application/json", self.items);
        if self.is_full && !self.last.is_empty() {
            let link = format!("<{}>; rel=\"next\"", request.with_after(&self.last));
            if let Ok(link) = HeaderValue::from_str(&link) {
                response.headers_mut().insert("link", link);
            }
        }
        response
    }
}

/// A list sorted by `key`, or a page of it, behind `after` in the query.
pub(super) fn paged<T: Serialize>(
    request: &Request,
    mut items: Vec<T>,
    key: impl Fn(&T) -> String,
) -> Result<Response, Refusal> {
    items.sort_by_cached_key(&key);
    let after = request.query.get("after").unwrap_or_default();
    let mut page = Page::of(request, usize::MAX)?;
    for item in items {
        let key = key(&item);
        if key.as_str() > after && page.is_full_for(&key, &item) {
            break;
        }
    }
    Ok(page.answer(request))
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
    response
}

/// Bytes of some type.
pub(super) fn typed(status: u16, content_type: &'static str, body: Vec<u8>) -> Response {
    bytes(status, content_type, body.into())
}

/// Bytes of some type, which are not copied.
pub(super) fn bytes(status: u16, content_type: &'static str, body: Bytes) -> Response {
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
    // Counted where the answer leaves.
    response.extensions_mut().insert(code);
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
