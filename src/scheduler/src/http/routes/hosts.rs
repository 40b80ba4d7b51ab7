//! Handlers of hosts.

use std::{ops::Bound, sync::Arc};

use fairlead_api::{HostClose, HostReserve, HostView};
use serde_json::{Value, json};
use warp::reply::Response;

use crate::{
    core::Core,
    http::{
        reply::{Page, done, ok, paged},
        request::Request,
        routes::admin::BODY_MAX,
    },
};
use fairlead_base::{
    errors::{HostError, Refusal},
    names::check_name,
};
use fairlead_known::{accounts::Who, cordons::CordonKind};

/// A page of hosts ends before it has more bytes: 8 MiB.
const PAGE_BYTES_MAX: usize = 8 << 20;

pub(super) async fn hosts(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    let after = request.query.get("after").unwrap_or_default();
    let behind = (Bound::Excluded(after), Bound::Unbounded);
    let mut page = Page::of(&request, PAGE_BYTES_MAX)?;
    let names = core.host_names(&request.query.list("tags"));
    for name in names.range::<str, _>(behind) {
        let view = match core.host_view(name, false).await {
            // It was forgotten meanwhile.
            Err(Refusal::Host(HostError::Unknown(_))) => continue,
            view => view?,
        };
        if page.is_full_for(name, &view) {
            break;
        }
    }
    Ok(page.answer(&request))
}

pub(super) fn unknown_machines(core: &Core, request: &Request) -> Result<Response, Refusal> {
    let machines = core.lab.unknown.list(core.clock.now());
    paged(request, machines, |machine| machine.mac.clone())
}

pub(super) async fn host(core: Arc<Core>, name: &str) -> Result<Response, Refusal> {
    Ok(ok(&core.host_view(name, true).await?))
}

pub(super) async fn register_host(
    core: Arc<Core>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    check_name("hostname", name)?;
    let mut body = request.read_object(BODY_MAX).await?;
    core.register_host(name, &body, &who).await?;
    // Clients of compass-ci put their token everywhere.
    body.shift_remove("my_token");
    core.audit(&who.name, "host.register", name, Value::Object(body));
    Ok(ok(&core.host_view(name, true).await?))
}

pub(super) async fn forget(core: Arc<Core>, who: Who, name: &str) -> Result<Response, Refusal> {
    core.forget_host(name).await?;
    core.audit(&who.name, "host.forget", name, Value::Null);
    Ok(done())
}

pub(super) async fn cordon(
    core: Arc<Core>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let close: HostClose = request.read_json(BODY_MAX).await?;
    core.know_host(name).await?;
    let how = if close.drain {
        CordonKind::Drain
    } else {
        CordonKind::Cordon
    };
    core.close_host(name, how, &close.reason, who.shown())
        .await?;
    core.audit(&who.name, "host.cordon", name, json!(close));
    Ok(ok(&core.host_view(name, false).await?))
}

pub(super) async fn uncordon(core: Arc<Core>, who: Who, name: &str) -> Result<Response, Refusal> {
    let before = core.host_view(name, false).await?;
    core.open_host(name).await?;
    core.audit(&who.name, "host.uncordon", name, Value::Null);
    let after = core.host_view(name, false).await;
    // One that is forgotten was only known for being closed.
    Ok(ok(&after.unwrap_or(HostView {
        closed: None,
        ..before
    })))
}

pub(super) async fn reserve(
    core: Arc<Core>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let asked: HostReserve = request.read_json(BODY_MAX).await?;
    core.know_host(name).await?;
    core.reserve_host(name, &asked, who.shown()).await?;
    core.audit(&who.name, "host.reserve", name, json!(asked));
    Ok(ok(&core.host_view(name, false).await?))
}

pub(super) async fn unreserve(core: Arc<Core>, who: Who, name: &str) -> Result<Response, Refusal> {
    core.unreserve_host(name).await?;
    core.audit(&who.name, "host.unreserve", name, Value::Null);
    Ok(ok(&core.host_view(name, false).await?))
}

pub(super) async fn reset_host(core: Arc<Core>, who: Who, name: &str) -> Result<Response, Refusal> {
    let reset = core.reset_host(name).await?;
    core.audit(
        &who.name,
        "host.reset",
        name,
        json!({ "repaired": reset.repaired }),
    );
    Ok(ok(&reset))
}
