//! Handlers of hosts.

use std::{ops::Bound, sync::Arc};

use fairlead_api::{HostClose, HostReserve, HostView};
use serde_json::{Value, json};
use warp::reply::Response;

use crate::{
    flows::Flows,
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

pub(super) async fn hosts(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    let after = request.query.get("after").unwrap_or_default();
    let behind = (Bound::Excluded(after), Bound::Unbounded);
    let mut page = Page::of(&request, PAGE_BYTES_MAX)?;
    let names = flows.views.host_names(&request.query.list("tags"));
    for name in names.range::<str, _>(behind) {
        let view = match flows.views.host_view(name, false).await {
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

pub(super) fn unknown_machines(flows: &Flows, request: &Request) -> Result<Response, Refusal> {
    let machines = flows.hosts.unknown.list(flows.ctx.clock.now());
    paged(request, machines, |machine| machine.mac.clone())
}

pub(super) async fn host(flows: Arc<Flows>, name: &str) -> Result<Response, Refusal> {
    Ok(ok(&flows.views.host_view(name, true).await?))
}

pub(super) async fn register_host(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    check_name("hostname", name)?;
    let mut body = request.read_object(BODY_MAX).await?;
    flows.hosts.register_host(name, &body, &who).await?;
    // Clients of compass-ci put their token everywhere.
    body.shift_remove("my_token");
    flows
        .ctx
        .audit(&who.name, "host.register", name, Value::Object(body));
    Ok(ok(&flows.views.host_view(name, true).await?))
}

pub(super) async fn forget(flows: Arc<Flows>, who: Who, name: &str) -> Result<Response, Refusal> {
    flows.hosts.forget_host(name).await?;
    flows.ctx.audit(&who.name, "host.forget", name, Value::Null);
    Ok(done())
}

pub(super) async fn cordon(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let close: HostClose = request.read_json(BODY_MAX).await?;
    flows.hosts.know_host(name).await?;
    let how = if close.drain {
        CordonKind::Drain
    } else {
        CordonKind::Cordon
    };
    flows
        .hosts
        .close_host(name, how, &close.reason, who.shown())
        .await?;
    flows
        .ctx
        .audit(&who.name, "host.cordon", name, json!(close));
    Ok(ok(&flows.views.host_view(name, false).await?))
}

pub(super) async fn uncordon(flows: Arc<Flows>, who: Who, name: &str) -> Result<Response, Refusal> {
    let before = flows.views.host_view(name, false).await?;
    flows.hosts.open_host(name).await?;
    flows
        .ctx
        .audit(&who.name, "host.uncordon", name, Value::Null);
    let after = flows.views.host_view(name, false).await;
    // One that is forgotten was only known for being closed.
    Ok(ok(&after.unwrap_or(HostView {
        closed: None,
        ..before
    })))
}

pub(super) async fn reserve(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let asked: HostReserve = request.read_json(BODY_MAX).await?;
    flows.hosts.know_host(name).await?;
    flows.hosts.reserve_host(name, &asked, who.shown()).await?;
    flows
        .ctx
        .audit(&who.name, "host.reserve", name, json!(asked));
    Ok(ok(&flows.views.host_view(name, false).await?))
}

pub(super) async fn unreserve(
    flows: Arc<Flows>,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    flows.hosts.unreserve_host(name).await?;
    flows
        .ctx
        .audit(&who.name, "host.unreserve", name, Value::Null);
    Ok(ok(&flows.views.host_view(name, false).await?))
}

pub(super) async fn reset_host(
    flows: Arc<Flows>,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let reset = flows.hosts.reset_host(name).await?;
    flows.ctx.audit(
        &who.name,
        "host.reset",
        name,
        json!({ "repaired": reset.repaired }),
    );
    Ok(ok(&reset))
}
