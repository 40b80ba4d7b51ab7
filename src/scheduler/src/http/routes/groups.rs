//! Handlers of groups.

use std::sync::Arc;

use fairlead_api::ErrorCode;
use fairlead_job::JobId;
use warp::reply::Response;

use crate::{
    flows::Flows,
    http::{reply::ok, request::Request},
    views::answer::answer_of,
};
use fairlead_base::errors::{Refusal, excerpt};
use fairlead_known::accounts::Who;

pub(super) async fn show(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    group: &str,
) -> Result<Response, Refusal> {
    let id = find(&flows, &request, &who, group).await?;
    Ok(ok(&answer_of(&flows.views, id).await?))
}

pub(super) async fn close(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    group: &str,
) -> Result<Response, Refusal> {
    let id = find(&flows, &request, &who, group).await?;
    flows.submission.close_group(&who, id).await?;
    Ok(ok(&answer_of(&flows.views, id).await?))
}

/// The parent of a group of the account that is named, or of whoever asks.
async fn find(flows: &Flows, request: &Request, who: &Who, group: &str) -> Result<JobId, Refusal> {
    let account = request.query.get("account").unwrap_or(&who.name);
    let found = if who.may_act_for(account) {
        flows.submission.find_group(account, group).await?
    } else {
        None
    };
    found.ok_or_else(|| {
        let (group, account) = (excerpt(group), excerpt(account));
        let message = format!("account '{account}' has no group '{group}'");
        let hint = "its first job opens it: group: NAME; it is known for a day";
        Refusal::new(ErrorCode::NotFound, message, hint)
    })
}
