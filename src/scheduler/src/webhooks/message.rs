//! Writes the message for a receiver, in the words that it understands. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fairlead_api::JobAnswer;
use fairlead_job::{Callback, CallbackKind};
use ring::hmac;
use serde_json::{Value, json};

use crate::{
    base::{clock::utc_text, text::cut},
    known::webhooks::Event,
};

/// Failed shards that a message names.
const FAILED_MAX: usize = 20;
/// Longest description of a commit's status, bytes: what GitHub takes.
const DESCRIPTION_BYTES_MAX: usize = 140;

/// A request to a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) url: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

/// What a message says.
pub(super) struct Told<'a> {
    /// The same for each try.
    pub(super) id: &'a str,
    pub(super) event: Event,
    pub(super) answer: &'a JobAnswer,
    /// Where people see the answer.
    pub(super) page: &'a str,
    pub(super) now_ms: u64,
}

impl Message {
    /// The message for a receiver. `secret`: the key of signatures, or the token that the receiver asks for.
    pub(super) fn to(callback: &Callback, told: &Told<'_>, secret: &str) -> Self {
        let (headers, body) = match &callback.kind {
            CallbackKind::Fairlead => {
                let body = own(told).to_string();
                (signed(told.id, told.now_ms / 1000, &body, secret), body)
            }
            CallbackKind::Azure { job_id, task_id } => {
                let body = azure(told.answer, job_id, task_id).to_string();
                (vec![("authorization", format!("Bearer {secret}"))], body)
            }
            CallbackKind::Github { context } => {
                let headers = vec![
                    ("authorization", format!("Bearer {secret}")),
                    ("accept", "application/vnd.github+json".to_owned()),
                ];
                (headers, github(told, context).to_string())
            }
        };
        let own = [
            ("content-type", "application/json".to_owned()),
            ("user-agent", "fairlead".to_owned()),
        ];
        Self {
            url: callback.url.clone(),
            headers: headers.into_iter().chain(own).collect(),
            body,
        }
    }
}

/// The headers of Standard Webhooks: id, time and signature.
pub(super) fn signed(
    id: &str,
    now_s: u64,
    body: &str,
    secret: &str,
) -> Vec<(&'static str, String)> {
    // Receivers keep the key in base64 behind a prefix. Another text is the key itself.
    let key = secret
        .strip_prefix("whsec_")
        .and_then(|text| STANDARD.decode(text).ok());
    let key = key.unwrap_or_else(|| secret.as_bytes().to_vec());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, format!("{id}.{now_s}.{body}").as_bytes());
    vec![
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", now_s.to_string()),
        ("webhook-signature", format!("v1,{}", STANDARD.encode(tag))),
    ]
}

/// fairlead's own words: the answer without its shards, but for those that failed.
fn own(told: &Told<'_>) -> Value {
    let answer = told.answer;
    let failed = answer.parts.iter().filter(|part| {
        let is_good = matches!(part.job_health.as_str(), "" | "success" | "unknown");
        !is_good
    });
    let failed: Vec<_> = failed.take(FAILED_MAX).collect();
    let whole = JobAnswer {
        parts: Vec::new(),
        ..answer.clone()
    };
    json!({
        "type": format!("job.{}", told.event.as_str()),
        "timestamp": utc_text(told.now_ms),
        "data": {"job": whole, "failed_shards": failed, "page": told.page},
    })
}

/// The event for which an Azure DevOps task waits. It knows only success and failure.
fn azure(answer: &JobAnswer, job_id: &str, task_id: &str) -> Value {
    let result = if answer.job_health == "success" {
        "succeeded"
    } else {
        "failed"
    };
    json!({"name": "TaskCompleted", "taskId": task_id, "jobId": job_id, "result": result})
}

fn github(told: &Told<'_>, context: &str) -> Value {
    let answer = told.answer;
    let state = match (told.event, answer.job_health.as_str()) {
        (Event::Ended, "success") => "success",
        (Event::Ended, "fail") | (Event::Failing, _) => "failure",
        (Event::Ended, _) => "error",
    };
    let description = if answer.reason.is_empty() {
        format!("job {} ended with {}", answer.job_id, answer.job_health)
    } else {
        answer.reason.clone()
    };
    let description = cut(&description, DESCRIPTION_BYTES_MAX);
    json!({"state": state, "target_url": told.page, "description": description, "context": context})
}

#[cfg(test)]
mod tests {
    use fairlead_api::ShardAnswer;

    use super::*;

    fn message(kind: CallbackKind, health: &str, event: Event) -> Message {
        let callback = Callback {
            url: "https://ci/hook".to_owned(),
            ended: true,
            failing: true,
            kind,
        };
        let answer = JobAnswer {
            job_id: "7".to_owned(),
            job_health: health.to_owned(),
            reason: "ü".repeat(200),
            parts: vec![ShardAnswer {
                shard: 3,
                job_health: "fail".to_owned(),
                ..ShardAnswer::default()
            }],
            ..JobAnswer::default()
        };
        let told = Told {
            id: "7.ended",
            event,
            answer: &answer,
            page: "http://lab/r/7",
            now_ms: 1_614_265_330_000,
        };
        Message::to(&callback, &told, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    }

    /// The example of the Standard Webhooks specification.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let headers = signed(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        );
        assert_eq!(
            headers[2].1,
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn each_receiver_is_told_in_its_own_words() {
        let read = |message: &Message| -> Value { serde_json::from_str(&message.body).unwrap() };
        let own = message(CallbackKind::Fairlead, "fail", Event::Ended);
        let said = read(&own);
        assert_eq!(
            (&said["type"], &said["data"]["failed_shards"][0]["shard"]),
            (&json!("job.ended"), &json!(3))
        );
        let azure = CallbackKind::Azure {
            job_id: "j".to_owned(),
            task_id: "t".to_owned(),
        };
        let said = read(&message(azure, "oom", Event::Ended));
        let expected =
            json!({"name": "TaskCompleted", "taskId": "t", "jobId": "j", "result": "failed"});
        assert_eq!(said, expected);
        let github = || CallbackKind::Github {
            context: "lab".to_owned(),
        };
        for (health, event, state) in [
            ("success", Event::Ended, "success"),
            ("fail", Event::Ended, "failure"),
            ("abort_provider", Event::Ended, "error"),
            ("unknown", Event::Failing, "failure"),
        ] {
            let said = read(&message(github(), health, event));
            assert_eq!(said["state"], state, "{health}");
            assert!(
                said["description"]
                    .as_str()
                    .is_some_and(|text| text.len() <= 140)
            );
        }
    }
}
