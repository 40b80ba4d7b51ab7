//! Writes the message for a receiver, in the words that it understands. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fairlead_api::{JobAnswer, ShardAnswer};
use fairlead_job::{Callback, CallbackKind, Health};
use reqwest::Url;
use ring::hmac;
use serde_json::{Value, json};

use fairlead_base::{clock::utc_text, text::cut};
use fairlead_known::webhooks::Event;

/// Failed shards that a message names.
const FAILED_MAX: usize = 20;
/// Longest description of a commit's status, bytes: what GitHub takes.
const DESCRIPTION_BYTES_MAX: usize = 140;

/// Longest part of a sentence that somebody else wrote, bytes.
const SAID_BYTES_MAX: usize = 300;

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
    /// Whom it goes to: host and port, without what may be a secret.
    pub(super) fn receiver(&self) -> String {
        let url = Url::parse(&self.url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let port = url.as_ref().and_then(Url::port_or_known_default);
        format!("{host}:{}", port.unwrap_or(0))
    }

    /// The message for a receiver. `secret`: the key of signatures, or the token that the receiver asks for.
    pub(super) fn to(callback: &Callback, told: &Told<'_>, secret: &str) -> Self {
        let (headers, body) = match &callback.kind {
            CallbackKind::Fairlead => {
                let body = own(told).to_string();
                (signed(told.id, told.now_ms / 1000, &body, secret), body)
            }
            CallbackKind::Text => {
                let body = json!({ "text": sentence(told) }).to_string();
                // One whose address is the secret trusts whoever knows it.
                let is_signed = !secret.is_empty() && secret != callback.url;
                let headers = is_signed.then(|| signed(told.id, told.now_ms / 1000, &body, secret));
                (headers.unwrap_or_default(), body)
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
    let failed: Vec<_> = failed_shards(answer).take(FAILED_MAX).collect();
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

fn failed_shards(answer: &JobAnswer) -> impl Iterator<Item = &ShardAnswer> {
    answer.parts.iter().filter(|part| {
        let is_good = matches!(part.job_health.as_str(), "" | "success" | "unknown");
        !is_good
    })
}

/// A sentence for people, and where they see more.
fn sentence(told: &Told<'_>) -> String {
    let answer = told.answer;
    let health = &answer.job_health;
    let what = match told.event {
        Event::Ended => format!("ended with {health}"),
        Event::Failed => format!("failed with {health}"),
        Event::PassedAgain => "passed again".to_owned(),
        Event::Failing => {
            let failed = failed_shards(answer).next();
            let failed = failed.map(|part| format!(": shard {} ({})", part.shard, part.job_health));
            format!("begins to fail{}", failed.unwrap_or_default())
        }
    };
    let reason = match answer.reason.as_str() {
        "" => String::new(),
        reason => format!(": {}", plain(reason)),
    };
    let (id, suite) = (&answer.job_id, plain(&answer.suite));
    format!("Job {id} of suite {suite} {what}{reason}\n{}", told.page)
}

/// A text that somebody else wrote, without what a chat takes for a command, a link or the name of a person.
fn plain(text: &str) -> String {
    let each = cut(text, SAID_BYTES_MAX).chars();
    let each = each.map(|c| match c {
        '<' => '‹',
        '>' => '›',
        '@' => '＠',
        '[' => '(',
        ']' => ')',
        control if control.is_control() => ' ',
        other => other,
    });
    each.collect()
}

/// The event for which an Azure DevOps task waits. It knows only success and failure.
fn azure(answer: &JobAnswer, job_id: &str, task_id: &str) -> Value {
    let result = if answer.job_health == Health::Success {
        "succeeded"
    } else {
        "failed"
    };
    json!({"name": "TaskCompleted", "taskId": task_id, "jobId": job_id, "result": result})
}

fn github(told: &Told<'_>, context: &str) -> Value {
    let answer = told.answer;
    let state = match (told.event, answer.job_health.as_str()) {
        (Event::Failing, _) | (_, "fail") => "failure",
        (_, "success") => "success",
        _ => "error",
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
    use fairlead_job::CallbackEvents;

    use super::*;

    fn message(kind: CallbackKind, health: &str, event: Event) -> Message {
        let callback = Callback {
            url: "https://ci/hook".to_owned(),
            on: CallbackEvents::ENDED,
            kind,
        };
        let answer = JobAnswer {
            job_id: "7".to_owned(),
            suite: "sleep".to_owned(),
            job_health: health.parse::<Health>().unwrap().into(),
            reason: "ü".repeat(200),
            parts: vec![ShardAnswer {
                shard: 3,
                job_health: Health::Fail.into(),
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

    #[test]
    fn a_chat_gets_a_sentence() {
        let said = |event, health| -> String {
            let message = message(CallbackKind::Text, health, event);
            let body: Value = serde_json::from_str(&message.body).unwrap();
            body["text"].as_str().unwrap().to_owned()
        };
        for (event, health, begin) in [
            (
                Event::Ended,
                "success",
                "Job 7 of suite sleep ended with success: ü",
            ),
            (
                Event::Failed,
                "oom",
                "Job 7 of suite sleep failed with oom: ü",
            ),
            (
                Event::PassedAgain,
                "success",
                "Job 7 of suite sleep passed again: ü",
            ),
            (
                Event::Failing,
                "unknown",
                "Job 7 of suite sleep begins to fail: shard 3 (fail): ü",
            ),
        ] {
            let text = said(event, health);
            assert!(text.starts_with(begin), "{text}");
            assert!(
                text.ends_with("\nhttp://lab/r/7") && text.len() < 400,
                "{text}"
            );
        }
        let shouted = plain("<!channel> @all [x](http://evil)\n");
        assert_eq!(shouted, "‹!channel› ＠all (x)(http://evil) ");
    }

    #[test]
    fn a_chat_is_not_told_its_own_address() {
        let callback = |url: &str| Callback {
            url: url.to_owned(),
            on: CallbackEvents::ENDED,
            kind: CallbackKind::Text,
        };
        let told = Told {
            id: "7.notify.ended",
            event: Event::Ended,
            answer: &JobAnswer::default(),
            page: "http://lab/r/7",
            now_ms: 1,
        };
        let is_signed = |secret: &str| {
            let message = Message::to(&callback("https://chat/x"), &told, secret);
            let mut names = message.headers.iter();
            names.any(|(name, _)| *name == "webhook-signature")
        };
        let signed = ["", "https://chat/x", "whsec_MfKQ9r8"].map(is_signed);
        assert_eq!(signed, [false, false, true]);
    }
}
