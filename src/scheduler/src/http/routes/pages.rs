//! The dashboard's pages and files, and logins of browsers.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::{ErrorCode, Login};
use fairlead_dashboard::{Asset, CONTENT_SECURITY_POLICY, PAGE, find};
use warp::{
    http::{HeaderValue, StatusCode},
    reply::Response,
};

use crate::{
    files::read::names_tag,
    flows::Flows,
    http::{
        reply::{bytes, done, ok, typed},
        request::Request,
        sessions,
    },
};
use fairlead_base::{
    errors::{Refusal, excerpt},
    names::check_name,
};
use fairlead_known::accounts::Credentials;

/// Where browsers that ask for `/` are led.
const HOME: &str = "/ui/";

/// Leads a browser to the dashboard.
pub(super) fn home() -> Response {
    let mut response = Response::new("see /ui/\n".into());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert("location", HeaderValue::from_static(HOME));
    response
}

/// A file of the dashboard; the page itself for every address that names no file.
pub(super) fn show(request: &Request, path: &[&str]) -> Result<Response, Refusal> {
    let name = path.join("/");
    let is_file = path.last().is_some_and(|last| last.contains('.'));
    let found = if is_file { find(&name) } else { find(PAGE) };
    let asset = found.ok_or_else(|| {
        let message = format!("the dashboard has no file '{}'", excerpt(&name));
        Refusal::new(ErrorCode::NotFound, message, "begin at /ui/")
    })?;
    Ok(served(request, asset))
}

fn served(request: &Request, asset: &'static Asset) -> Response {
    let known = request.header("if-none-match").unwrap_or_default();
    let is_packed = request.takes_gzip();
    let mut response = if names_tag(known, &asset.tag) {
        typed(304, asset.media_type, Vec::new())
    } else if is_packed {
        bytes(200, asset.media_type, Bytes::from_static(&asset.gzip))
    } else {
        bytes(200, asset.media_type, Bytes::from_static(asset.bytes))
    };
    let is_whole = response.status() == StatusCode::OK;
    let headers = response.headers_mut();
    if is_packed && is_whole {
        headers.insert("content-encoding", HeaderValue::from_static("gzip"));
    }
    if let Ok(tag) = HeaderValue::from_str(&asset.tag) {
        headers.insert("etag", tag);
    }
    for (name, value) in [
        ("vary", "accept-encoding"),
        ("cache-control", "no-cache"),
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        ("referrer-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Lets a browser in.
pub(super) async fn login(flows: Arc<Flows>, mut request: Request) -> Result<Response, Refusal> {
    sessions::check_origin(&request)?;
    let asked: Login = request
        .read_json(flows.ctx.config.limits.login_bytes_max)
        .await?;
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let who = if flows.people.accounts.tokens_needed() {
        Credentials {
            token: given(asked.token),
            ..Credentials::default()
        }
    } else {
        if !asked.my_account.is_empty() {
            check_name("account", &asked.my_account)?;
        }
        Credentials {
            token: None,
            account: given(asked.my_account),
            ..Credentials::default()
        }
    };
    let known = flows.people.accounts.identify(&who)?;
    request.identified();
    let mut response = ok(&flows.people.accounts.view_of(&known));
    if let Some(cookie) = sessions::cookie(&flows, &request, who) {
        response.headers_mut().insert("set-cookie", cookie);
    }
    Ok(response)
}

/// Ends the login of a browser, and all others of its account.
pub(super) async fn logout(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    sessions::check_origin(&request)?;
    if let Some(account) = sessions::account(&flows, &request) {
        flows.people.end_logins(&account).await?;
    }
    let mut response = done();
    let headers = response.headers_mut();
    headers.insert("set-cookie", sessions::no_cookie());
    Ok(response)
}
