//! Handlers of webhooks.

use std::sync::Arc;

use fairlead_api::{ErrorCode, WebhookTest, WebhookView};
use serde_json::Value;
use warp::reply::Response;

use crate::{
    base::errors::Refusal,
    core::Core,
    http::{
        reply::{done, ok, paged},
        request::Request,
        signed::read_actor,
    },
};

pub(super) async fn list(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    let who = core.people.accounts.identify(&request.credentials(None))?;
    // Newest first.
    let place = |webhook: &WebhookView| {
        let age = u64::MAX.saturating_sub(webhook.since_ms);
        format!("{age:020}.{}", webhook.webhook_id)
    };
    paged(&request, core.list_webhooks(&who).await?, place)
}

pub(super) async fn redeliver(
    core: Arc<Core>,
    mut request: Request,
    id: &str,
) -> Result<Response, Refusal> {
    let (who, _) = read_actor(&core, &mut request).await?;
    core.redeliver_webhook(&who, id).await?;
    Ok(done())
}

pub(super) async fn test(core: Arc<Core>, mut request: Request) -> Result<Response, Refusal> {
    let (who, body) = read_actor(&core, &mut request).await?;
    let test: WebhookTest = serde_json::from_value(Value::Object(body)).map_err(|error| {
        let message = format!("the body cannot be read: {error}");
        let hint = r#"{"url": "https://ci.example.com/hook", "secret": "whsec_…"}"#;
        Refusal::new(ErrorCode::BadField, message, hint)
    })?;
    Ok(ok(&core.test_webhook(&who, &test).await?))
}
