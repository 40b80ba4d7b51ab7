//! Lists webhooks for people, sends one again, and tries a receiver.

use std::{cmp::Reverse, sync::Arc};

use fairlead_api::{ErrorCode, JobAnswer, WebhookTest, WebhookTested, WebhookView};
use fairlead_job::{CALLBACK, Callback, Health, Spec, Stage, receiver_secret};
use serde_json::{Value, json};

use crate::webhooks::{
    WebhookFlow,
    message::{Message, Told},
    send::send,
};
use fairlead_base::{errors::Refusal, text::without_path};
use fairlead_known::{
    accounts::Who,
    webhooks::{Event, Key, Standing, Webhook, key_of},
};

/// Most webhooks in a list.
const LIST_MAX: usize = 1_000;

impl WebhookFlow {
    /// The webhooks that an account may see, the newest first.
    pub(crate) async fn list_webhooks(&self, who: &Who) -> Result<Vec<WebhookView>, Refusal> {
        let (mut known, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.webhooks_after(&after).await?;
            let Some((last, _)) = page.last() else {
                break;
            };
            after.clone_from(last);
            let its = page.into_iter();
            known.extend(its.filter(|(_, webhook)| who.may_act_for(&webhook.doc.account)));
            // Most that are skipped say nothing, and must hide nothing.
            known.sort_by_key(|(_, webhook)| {
                let is_skipped = webhook.doc.standing == Standing::Skipped;
                (is_skipped, Reverse(webhook.doc.since_ms))
            });
            known.truncate(LIST_MAX);
        }
        known.sort_by_key(|(_, webhook)| Reverse(webhook.doc.since_ms));
        let views = known.into_iter();
        Ok(views.map(|(id, webhook)| view(id, webhook.doc)).collect())
    }

    /// Sends a webhook again, under the same id.
    pub(crate) async fn redeliver_webhook(
        self: &Arc<Self>,
        who: &Who,
        id: &str,
    ) -> Result<(), Refusal> {
        let unknown = || {
            let shown = fairlead_base::errors::excerpt(id);
            let message = format!("unknown webhook '{shown}'");
            Refusal::new(
                ErrorCode::NotFound,
                message,
                "list them with GET /scheduler/v1/webhooks",
            )
        };
        let key = key_of(id).ok_or_else(unknown)?;
        let known = self
            .ctx
            .docs
            .read::<Webhook>(id)
            .await?
            .ok_or_else(unknown)?;
        if !who.may_act_for(&known.doc.account) {
            return Err(unknown());
        }
        let now_ms = self.ctx.clock.wall_ms();
        check_has_event(id, key, &known.doc)?;
        let again = Webhook {
            standing: Standing::Trying,
            at_ms: now_ms.max(1),
            since_ms: now_ms,
            tries: 0,
            tried_until_ms: 0,
            ..known.doc.clone()
        };
        self.ctx.docs.put(id, Some(&known), Some(&again)).await?;
        self.ctx
            .audit(&who.name, "webhook.redeliver", id, Value::Null);
        self.known.looks.look_now(key, ());
        Ok(())
    }

    /// Sends a message about no job to a receiver, now.
    pub(crate) async fn test_webhook(
        &self,
        who: &Who,
        test: &WebhookTest,
    ) -> Result<WebhookTested, Refusal> {
        let spec = as_a_job_says(test);
        let missing = || {
            Refusal::new(
                ErrorCode::BadField,
                "url: it is missing",
                "give the address",
            )
        };
        let callback = Callback::of(&spec)?.ok_or_else(missing)?;
        let answer = JobAnswer {
            job_id: "0".to_owned(),
            over: true,
            job_stage: Stage::Finish.into(),
            job_health: Health::Success.into(),
            reason: "this is a test".to_owned(),
            my_account: who.name.clone(),
            ..JobAnswer::default()
        };
        let now_ms = self.ctx.clock.wall_ms();
        let told = Told {
            id: &format!("test.{now_ms}"),
            event: Event::Ended,
            answer: &answer,
            page: &self.ctx.replicas.url,
            now_ms,
        };
        let message = Message::to(&callback, &told, receiver_secret(&spec, CALLBACK));
        let sent = send(&message, &self.ctx.config.webhooks_to).await;
        let shown = without_path(&callback.url);
        self.ctx
            .audit(&who.name, "webhook.test", &shown, Value::Null);
        Ok(WebhookTested {
            taken: sent.is_ok(),
            problem: sent.err().map(|not| not.problem).unwrap_or_default(),
        })
    }
}

/// Refuses a webhook whose event has not come, or never will.
fn check_has_event(id: &str, key: Key, webhook: &Webhook) -> Result<(), Refusal> {
    let (message, hint) = match webhook.standing {
        Standing::Waiting if key.event == Event::Ended => (
            format!("webhook {id} waits for the end of its job"),
            "it is sent then",
        ),
        Standing::Skipped => (
            format!("webhook {id} was skipped: {}", webhook.problem),
            "only events that were asked for are sent",
        ),
        _ => return Ok(()),
    };
    Err(Refusal::new(ErrorCode::WrongStage, message, hint))
}

/// The fields of a job that say the same.
fn as_a_job_says(test: &WebhookTest) -> Spec {
    let mut callback = json!({ "url": test.url });
    if let Some(kind) = &test.kind {
        callback["kind"] = json!(kind);
    }
    let mut said = Spec::from_iter([(CALLBACK.to_owned(), callback)]);
    if let Some(secret) = &test.secret {
        said.insert("secrets".to_owned(), json!({ CALLBACK: secret }));
    }
    said
}

fn view(id: String, webhook: Webhook) -> WebhookView {
    let standing = match webhook.standing {
        Standing::Waiting => "waiting",
        Standing::Trying => "trying",
        Standing::Sent => "sent",
        Standing::Dead => "dead",
        Standing::Skipped => "skipped",
    };
    let on = webhook.on.words();
    WebhookView {
        webhook_id: id,
        job_id: webhook.job_id.to_string(),
        my_account: webhook.account,
        field: webhook.field.as_str().to_owned(),
        on: on.into_iter().map(str::to_owned).collect(),
        event: webhook.tells.unwrap_or(webhook.event).as_str().to_owned(),
        standing: standing.to_owned(),
        tries: webhook.tries,
        since_ms: webhook.since_ms,
        next_ms: (webhook.standing == Standing::Trying).then_some(webhook.at_ms),
        problem: webhook.problem,
    }
}
