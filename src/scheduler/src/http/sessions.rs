//! Logins of browsers: a sealed cookie stands for a token, or in an open lab for a name.
//!
//! The cookie holds the token itself, so a token that is replaced or an account that is deleted ends its logins at once. A
//! logout ends all logins of its account: a copy of the cookie is worth nothing then.
//! No script can read it. A request that changes something counts only if a page of this scheduler sent it. Routes of
//! testboxes, jobs and replicas take no cookie.

use fairlead_api::{Caller, ErrorCode, Route};
use serde::{Deserialize, Serialize};
use warp::http::{HeaderValue, Method};

use super::{cross_site, request::Request};
use crate::flows::Flows;
use fairlead_base::errors::{Refusal, excerpt};
use fairlead_known::accounts::Credentials;

/// The name of the cookie.
const COOKIE: &str = "fairlead_session";
/// How long a login lasts, seconds: seven days.
const SESSION_S: u64 = 7 * 86_400;
/// What a sealed text is for: no other sealed text is taken for a login.
const PURPOSE: &str = "session";

/// What a cookie says.
#[derive(Serialize, Deserialize)]
struct Session {
    token: Option<String>,
    account: Option<String>,
    until_ms: u64,
}

/// The credentials of the cookie, where a route takes it and the request names nobody itself.
pub(super) fn credentials(
    flows: &Flows,
    request: &Request,
    route: Option<Route<'_>>,
) -> Result<Option<Credentials>, Refusal> {
    let takes = |route: Route<'_>| {
        let caller = route.endpoint().caller;
        caller.is_account() || matches!(caller, Caller::Admin | Caller::AccountOrJob)
    };
    let names_itself =
        request.header("authorization").is_some() || request.query.get("token").is_some();
    if names_itself || !route.is_some_and(takes) {
        return Ok(None);
    }
    let Some(session) = cookie_of(request).and_then(|sealed| opened(flows, sealed)) else {
        return Ok(None);
    };
    if !matches!(request.method, Method::GET | Method::HEAD) {
        check_origin(request)?;
    }
    Ok(Some(Credentials {
        token: session.token,
        account: session.account,
        ..Credentials::default()
    }))
}

/// Refuses what no page of this scheduler sent.
pub(super) fn check_origin(request: &Request) -> Result<(), Refusal> {
    let origin = request.header("origin").unwrap_or_default();
    let host = request.header("host").or_else(|| request.authority());
    if host.is_some_and(|host| cross_site::is_of(origin, host)) {
        return Ok(());
    }
    let said = if origin.is_empty() {
        "no Origin came with a login's cookie".to_owned()
    } else {
        format!(
            "a page of '{}' sent this with a login's cookie",
            excerpt(origin)
        )
    };
    Err(Refusal::new(
        ErrorCode::CrossSite,
        said,
        "use a page of this scheduler, or send the token in the header Authorization",
    ))
}

/// The header that lets a browser in.
pub(super) fn cookie(flows: &Flows, request: &Request, who: Credentials) -> Option<HeaderValue> {
    let session = Session {
        token: who.token,
        account: who.account,
        until_ms: flows.ctx.clock.wall_ms().saturating_add(SESSION_S * 1_000),
    };
    let text = serde_json::to_string(&session).ok()?;
    let sealed = flows.ctx.sealer.seal_text(PURPOSE, &text)?;
    // Over TLS alone, where the page came over TLS.
    let is_tls = request
        .header("origin")
        .is_some_and(|it| it.starts_with("https://"));
    let secure = if is_tls { "; Secure" } else { "" };
    let value =
        format!("{COOKIE}={sealed}; Path=/; Max-Age={SESSION_S}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&value).ok()
}

/// The header that ends a login.
pub(super) fn no_cookie() -> HeaderValue {
    HeaderValue::from_static("fairlead_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax")
}

fn cookie_of(request: &Request) -> Option<&str> {
    let mut cookies = request.header("cookie")?.split(';');
    cookies.find_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn opened(flows: &Flows, sealed: &str) -> Option<Session> {
    let text = flows.ctx.sealer.open_text(PURPOSE, sealed)?;
    let session: Session = serde_json::from_str(&text).ok()?;
    let accounts = &flows.people.accounts;
    let said = Credentials {
        token: session.token.clone(),
        ..Credentials::default()
    };
    let since_ms = accounts
        .known(&said)
        .map_or(0, |who| accounts.logins_since_ms(&who.name));
    let made_ms = session.until_ms.saturating_sub(SESSION_S * 1_000);
    (session.until_ms > flows.ctx.clock.wall_ms() && made_ms >= since_ms).then_some(session)
}

/// The account that a browser's login is of, by a token.
pub(super) fn account(flows: &Flows, request: &Request) -> Option<String> {
    let token = opened(flows, cookie_of(request)?)?.token;
    let said = Credentials {
        token: Some(token?),
        ..Credentials::default()
    };
    Some(flows.people.accounts.known(&said)?.name)
}
