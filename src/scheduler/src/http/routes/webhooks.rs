//! Handlers of webhooks.

use std::sync::Arc;

use fairlead_api::{WebhookTest, WebhookView};
use warp::reply::Response;

use crate::{
    flows::Flows,
    http::{
        reply::{done, ok, paged},
        request::Request,
        signed::Signed,
    },
};
use fairlead_base::errors::Refusal;
use fairlead_known::accounts::Who;

pub(super) async fn list(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    // Newest first.
    let place = |webhook: &WebhookView| {
        let age = u64::MAX.saturating_sub(webhook.since_ms);
        format!("{age:020}.{}", webhook.webhook_id)
    };
    paged(&request, flows.webhooks.list_webhooks(&who).await?, place)
}

pub(super) async fn redeliver(flows: Arc<Flows>, who: Who, id: &str) -> Result<Response, Refusal> {
    flows.webhooks.redeliver_webhook(&who, id).await?;
    Ok(done())
}

pub(super) async fn test(
    flows: Arc<Flows>,
    who: Who,
    mut body: Signed,
) -> Result<Response, Refusal> {
    let hint = r#"{"url": "https://ci.example.com/hook", "secret": "whsec_…"}"#;
    let test: WebhookTest = body.take_as(hint)?;
    Ok(ok(&flows.webhooks.test_webhook(&who, &test).await?))
}
