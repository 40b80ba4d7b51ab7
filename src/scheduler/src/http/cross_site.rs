//! Keeps web pages out of an open lab: any page can make an operator's browser send requests.
//!
//! It applies without `--auth` only, because with it a page would need a token. It ignores content types, which real
//! clients choose freely.

use std::net::{Ipv4Addr, Ipv6Addr};

use fairlead_api::{ErrorCode, Route};
use warp::http::HeaderMap;

use super::request::Request;
use crate::flows::Flows;
use fairlead_base::errors::{Refusal, excerpt};

/// How all browsers begin the name of themselves.
const BROWSER: &str = "Mozilla/";
/// The name of one's own machine. Browsers never ask a name server for it.
const OWN_NAME: &str = "localhost";

/// Refuses what a page of another site may have sent to an open lab.
pub(super) fn refuse_pages(
    flows: &Flows,
    request: &Request,
    route: Option<Route<'_>>,
) -> Result<(), Refusal> {
    if flows.people.accounts.tokens_needed() {
        return Ok(());
    }
    let hosts = hosts(request)?;
    let advertised = flows
        .ctx
        .replicas
        .url
        .split_once("://")
        .map_or("", |(_, rest)| rest);
    let own = || {
        let names = flows.ctx.config.host_names.iter().map(String::as_str);
        names.chain([advertised.split('/').next().unwrap_or_default()])
    };
    for host in &hosts {
        if !is_own(host, own()) {
            return Err(cross_site(
                format!("Host '{}' is not a name of this scheduler", excerpt(host)),
                "ask by IP address or the machine's name, or start it with --host-name NAME",
            ));
        }
    }
    let origin = header(&request.headers, "origin");
    if let Some(origin) = origin
        && !hosts.iter().any(|host| is_of(origin, host))
    {
        return Err(cross_site(
            format!(
                "a page of '{}' sent this; an open lab takes requests of its own pages only",
                excerpt(origin)
            ),
            "use the fairlead command, or start the scheduler with --auth",
        ));
    }
    if header(&request.headers, "sec-fetch-site") == Some("cross-site") {
        return Err(cross_site(
            "a page of another site sent this (Sec-Fetch-Site: cross-site)".to_owned(),
            "type the address yourself, or start the scheduler with --auth",
        ));
    }
    if route.is_some_and(changes_by_get)
        && let Some(sign) = sign_of_browser(&request.headers)
    {
        return Err(cross_site(
            format!(
                "a browser asks here ({sign}), and this path is for testboxes: it hands out jobs or reports on them"
            ),
            "use curl to try it out",
        ));
    }
    Ok(())
}

fn cross_site(message: String, hint: &str) -> Refusal {
    Refusal::new(ErrorCode::CrossSite, message, hint)
}

/// All addresses that the request says it was sent to; more than one only when somebody plays tricks.
fn hosts(request: &Request) -> Result<Vec<&str>, Refusal> {
    let said = request.headers.get_all("host").iter();
    let said = said.map(|host| {
        host.to_str().map_err(|_| {
            cross_site(
                "Host is not ASCII".to_owned(),
                "send the name that the scheduler was started with",
            )
        })
    });
    let target = request.authority().map(Ok);
    said.chain(target).collect()
}

fn header<'r>(headers: &'r HeaderMap, name: &str) -> Option<&'r str> {
    let value = headers.get(name)?;
    // What is not text is nobody's origin and no site's word.
    Some(value.to_str().unwrap_or("?"))
}

/// Whether `NAME[:PORT]` names this scheduler: an IP address (which no name server can turn elsewhere), or a known name.
fn is_own<'n>(host: &str, mut known: impl Iterator<Item = &'n str>) -> bool {
    let name = name_of(host);
    let is_address =
        name.parse::<Ipv4Addr>().is_ok() || in_brackets(name).parse::<Ipv6Addr>().is_ok();
    is_address
        || name.eq_ignore_ascii_case(OWN_NAME)
        || known.any(|known| name_of(known).eq_ignore_ascii_case(name))
}

/// The name without port, and without the dot that ends a full name.
fn name_of(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    // An IPv6 address in brackets keeps its colons.
    let name = if host.starts_with('[') && host.ends_with(']') {
        host
    } else {
        name
    };
    name.strip_suffix('.').unwrap_or(name)
}

fn in_brackets(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or_default()
}

/// Whether an origin (`http://NAME[:PORT]`) is this host's. Browsers leave out the usual ports on both sides.
pub(super) fn is_of(origin: &str, host: &str) -> bool {
    let Some((scheme, place)) = origin.split_once("://") else {
        return false;
    };
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let plain = |text: &str| {
        text.strip_suffix(usual)
            .unwrap_or(text)
            .to_ascii_lowercase()
    };
    plain(place) == plain(host)
}

/// Whether a GET hands out a job or reports on one, as iPXE and old test suites ask.
fn changes_by_get(route: Route<'_>) -> bool {
    matches!(
        route,
        Route::Dispatch
            | Route::OldDispatch { .. }
            | Route::OldReport { .. }
            | Route::OldPostRun
            | Route::OldWtmp
    )
}

/// How a request shows that it comes from a browser.
fn sign_of_browser(headers: &HeaderMap) -> Option<String> {
    let fetch = headers
        .keys()
        .find(|name| name.as_str().starts_with("sec-fetch-"));
    let agent = header(headers, "user-agent").filter(|agent| agent.starts_with(BROWSER));
    fetch
        .map(|name| name.as_str().to_owned())
        .or_else(|| agent.map(|agent| format!("User-Agent: {}", excerpt(agent))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_goes_by_addresses_and_known_names_only() {
        let own = |host: &str| is_own(host, ["lab1", "lab1.example.org:3000"].into_iter());
        for good in [
            "127.0.0.1",
            "127.0.0.1:3000",
            "10.1.2.3:80",
            "[::1]",
            "[::1]:3000",
            "localhost:3000",
            "LAB1:3000",
            "lab1.example.org",
            "lab1.example.org.:3000",
        ] {
            assert!(own(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:3000",
            "lab1.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "localhost.evil.example",
            "[::1].evil.example",
            "lab1:80:80",
            "0x7f.1",
        ] {
            assert!(!own(bad), "{bad}");
        }
    }

    #[test]
    fn an_origin_is_the_host_s_whatever_usual_port_is_said() {
        assert!(is_of("http://lab1:3000", "lab1:3000"));
        assert!(is_of("http://lab1", "LAB1:80") && is_of("https://lab1:443", "lab1"));
        for other in [
            "null",
            "?",
            "http://lab1",
            "http://lab1:3001",
            "http://evil.example:3000",
            "file://lab1:3000",
        ] {
            assert!(!is_of(other, "lab1:3000"), "{other}");
        }
    }

    #[test]
    fn paths_that_hand_out_jobs_are_known() {
        let changes = |path: &str| {
            let path = path.split('/').filter(|segment| !segment.is_empty());
            Route::find("GET", &path.collect::<Vec<_>>()).is_ok_and(changes_by_get)
        };
        assert!(changes("/boot.ipxe/mac/x") && changes("/boot.grub/host/a"));
        assert!(changes("/scheduler/v1/jobs/dispatch") && changes("/~lkp/cgi-bin/set-job-stage"));
        assert!(!changes("/") && !changes("/scheduler/v1/jobs") && !changes("/result/boot.log"));
    }
}
