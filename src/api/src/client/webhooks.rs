//! Requests about webhooks.

use super::{call::Call, error::ClientError, transport::Client};
use crate::{Route, WebhookTest, WebhookTested, WebhookView};

impl Client {
    /// The webhooks that whoever asks may see, newest first.
    pub async fn webhooks(&self) -> Result<Vec<WebhookView>, ClientError> {
        let call = Call::to(Route::Webhooks)?;
        self.run(&call).await?.json()
    }

    /// Sends a webhook again, under the same id.
    pub async fn redeliver_webhook(&self, id: &str) -> Result<(), ClientError> {
        let call = Call::to(Route::RedeliverWebhook { webhook: id })?;
        self.run(&call).await.map(drop)
    }

    /// Sends a test message to a receiver now.
    pub async fn test_webhook(&self, test: &WebhookTest) -> Result<WebhookTested, ClientError> {
        let call = Call::to(Route::TestWebhook)?.json(test)?;
        self.run(&call).await?.json()
    }
}
