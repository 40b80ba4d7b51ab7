//! Handlers of webhooks.

use std::sync::Arc;

use fairlead_api::{WebhookTest, WebhookView};
use warp::reply::Response;

use crate::{
    base::errors::Refusal,
    core::Core,
    http::{
        reply::{done, ok, paged},
        request::Request,
        signed::{read_actor, read_actor_as},
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
    let hint = r#"{"url": "https://ci.example.com/hook", "secret": "whsec_…"}"#;
    let (who, test): (_, WebhookTest) = read_actor_as(&core, &mut request, hint).await?;
    Ok(ok(&core.test_webhook(&who, &test).await?))
}
