//! `callback` and `notify`: who is told when a job has ended, or begins to fail.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    FieldError, Spec,
    fields::read::{Charset, checked, known_keys, present, refuse},
    units::shown,
};

/// The field for programs, and the name of its secret.
pub const CALLBACK: &str = "callback";
/// The field for people, and the name of its secret.
pub const NOTIFY: &str = "notify";
/// The value of `notify` that turns off what the account says.
const NOBODY: &str = "none";
/// Bytes of an address.
const URL_BYTES_MAX: usize = 2_048;
/// Bytes of a word that a receiver asks for.
const WORD_BYTES_MAX: usize = 256;
/// Bytes of the secret.
const SECRET_BYTES_MAX: usize = 4_096;

/// In which words a receiver is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackKind {
    /// fairlead's own, signed as Standard Webhooks says.
    Fairlead,
    /// A sentence in `text`, as the incoming webhooks of chats take it.
    Text,
    /// An Azure DevOps task that waits for its event `TaskCompleted`.
    Azure {
        /// The id of the pipeline's job.
        job_id: String,
        /// The id of its task.
        task_id: String,
    },
    /// The status of a GitHub commit.
    Github {
        /// The name of the status.
        context: String,
    },
}

impl CallbackKind {
    /// Its name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Fairlead => "fairlead",
            Self::Text => "text",
            Self::Azure { .. } => "azure",
            Self::Github { .. } => "github",
        }
    }
}

/// Which events of a job somebody is told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each event is asked for by itself"
)]
pub struct CallbackEvents {
    /// Each end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// The first failure of one of its shards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failing: bool,
    /// An end with another health than success, unless a person stopped the job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// A success, when the last earlier job of the account that ran the same thing had failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed_again: bool,
}

impl CallbackEvents {
    /// Each end, and nothing else.
    pub const ENDED: Self = Self {
        ended: true,
        failing: false,
        failed: false,
        passed_again: false,
    };

    /// Returns true if one of them may come with the end of the job.
    pub const fn may_come_at_the_end(self) -> bool {
        self.ended || self.failed || self.passed_again
    }

    /// Their names.
    pub fn words(self) -> Vec<&'static str> {
        let Self {
            ended,
            failing,
            failed,
            passed_again,
        } = self;
        let all = [
            (ended, "ended"),
            (failing, "failing"),
            (failed, "failed"),
            (passed_again, "passed_again"),
        ];
        let asked = all.into_iter().filter(|(is_asked, _)| *is_asked);
        asked.map(|(_, word)| word).collect()
    }

    /// Adds the event of this name; `None`: there is none.
    fn and(mut self, word: &str) -> Option<Self> {
        let event = match word {
            "ended" => &mut self.ended,
            "failing" => &mut self.failing,
            "failed" => &mut self.failed,
            "passed_again" => &mut self.passed_again,
            _ => return None,
        };
        *event = true;
        Some(self)
    }
}

/// Receiver, its events and its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// Where to, `http` or `https`, 1 to 2,048 bytes. Empty: it is among secrets that are sealed.
    pub url: String,
    /// Of what.
    pub on: CallbackEvents,
    /// In which words.
    pub kind: CallbackKind,
}

/// Receiver that `notify` names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Notify {
    /// The receiver of the account; the default.
    #[default]
    AsAccount,
    /// Nobody, whomever the account names.
    Nobody,
    /// This receiver, and not that of the account.
    To(Callback),
}

impl Notify {
    /// Reads `notify`.
    ///
    /// # Errors
    /// It is neither `none`, an address nor such a map, or its secret is missing.
    pub fn of(spec: &Spec) -> Result<Self, FieldError> {
        match present(spec, NOTIFY) {
            None => Ok(Self::AsAccount),
            Some(said) if said == NOBODY => Ok(Self::Nobody),
            Some(said) => Callback::read(spec, NOTIFY, said).map(Self::To),
        }
    }

    /// The receiver that the job itself names.
    pub fn own(self) -> Option<Callback> {
        match self {
            Self::To(receiver) => Some(receiver),
            Self::AsAccount | Self::Nobody => None,
        }
    }
}

impl Callback {
    /// Reads `callback`; `None`: nobody is told.
    ///
    /// # Errors
    /// It is no address and no such map, or its secret is missing.
    pub fn of(spec: &Spec) -> Result<Option<Self>, FieldError> {
        let said = present(spec, CALLBACK);
        said.map(|said| Self::read(spec, CALLBACK, said))
            .transpose()
    }

    /// Reads `callback` or `notify`, which differ only in what a bare address means.
    fn read(spec: &Spec, field: &str, said: &Value) -> Result<Self, FieldError> {
        const KEYS: [&str; 6] = ["url", "on", "kind", "job_id", "task_id", "context"];
        let Value::Object(map) = said else {
            let receiver = Self {
                url: url_of(field, said)?,
                on: CallbackEvents::ENDED,
                kind: usual_kind(field),
            };
            check_secret(spec, field, &receiver.kind)?;
            return Ok(receiver);
        };
        known_keys(field, map, &KEYS, example(field))?;
        let (on, kind) = (events(field, map)?, kind(field, map)?);
        check_secret(spec, field, &kind)?;
        let url = match present(map, "url") {
            Some(url) => url_of(&format!("{field}.url"), url)?,
            None if kind == CallbackKind::Text => secret_url(spec, field)?,
            None => return refuse(field, "url is missing".to_owned(), example(field)),
        };
        Ok(Self { url, on, kind })
    }
}

/// Returns an example of `callback` or `notify`.
fn example(field: &str) -> &'static str {
    if field == NOTIFY {
        "notify: {url: https://chat.example.com/hooks/x, on: [failed, passed_again]}"
    } else {
        "callback: {url: https://ci.example.com/hook, on: [ended, failing]}"
    }
}

/// The kind where none is named: programs get all there is to know, people a sentence.
fn usual_kind(field: &str) -> CallbackKind {
    if field == NOTIFY {
        CallbackKind::Text
    } else {
        CallbackKind::Fairlead
    }
}

fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let is_plain = text.len() <= URL_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic());
    host.is_some_and(|host| !host.is_empty() && !host.contains('@')) && is_plain
}

/// Example of an address.
const URL_HINT: &str =
    "write http://HOST/PATH or https://HOST/PATH without a password, up to 2,048 bytes";

fn url_of(field: &str, value: &Value) -> Result<String, FieldError> {
    let text = value.as_str().unwrap_or_default();
    if is_url(text) {
        return Ok(text.to_owned());
    }
    refuse(field, format!("{} is no address", shown(value)), URL_HINT)
}

/// The address of a chat, which lets in whoever knows it: it may be the secret.
fn secret_url(spec: &Spec, field: &str) -> Result<String, FieldError> {
    if is_sealed(spec) {
        return Ok(String::new());
    }
    match receiver_secret(spec, field) {
        "" => refuse(
            field,
            "url is missing".to_owned(),
            "give url, or the address itself as the secret of that name: secrets: {notify: https://…}",
        ),
        text if is_url(text) => Ok(text.to_owned()),
        // It is not shown.
        _ => refuse(
            &format!("secrets.{field}"),
            "it is no address, and url is missing".to_owned(),
            URL_HINT,
        ),
    }
}

/// `on`: one event or a list of them.
fn events(field: &str, map: &Map<String, Value>) -> Result<CallbackEvents, FieldError> {
    let said = match present(map, "on") {
        None => return Ok(CallbackEvents::ENDED),
        Some(Value::Array(events)) => events.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let mut asked = CallbackEvents::default();
    for event in said {
        let word = event.as_str().unwrap_or_default();
        let Some(more) = asked.and(word) else {
            let problem = format!("{} is no event", shown(event));
            let hint = "ended, failed, passed_again, failing, or a list of them";
            return refuse(&format!("{field}.on"), problem, hint);
        };
        asked = more;
    }
    Ok(asked)
}

fn kind(field: &str, map: &Map<String, Value>) -> Result<CallbackKind, FieldError> {
    let word = |key: &str| {
        let field = format!("{field}.{key}");
        match present(map, key) {
            Some(value) => checked(&field, value, Charset::Text, WORD_BYTES_MAX),
            None => refuse(
                &field,
                "it is missing".to_owned(),
                "azure needs job_id and task_id of the pipeline, github a context",
            ),
        }
    };
    let Some(said) = present(map, "kind") else {
        return Ok(usual_kind(field));
    };
    match said.as_str() {
        Some("fairlead") => Ok(CallbackKind::Fairlead),
        Some("text") => Ok(CallbackKind::Text),
        Some("azure") => Ok(CallbackKind::Azure {
            job_id: word("job_id")?,
            task_id: word("task_id")?,
        }),
        Some("github") => Ok(CallbackKind::Github {
            context: word("context")?,
        }),
        _ => refuse(
            &format!("{field}.kind"),
            format!("{} is none of the known kinds", shown(said)),
            "fairlead, text, azure or github",
        ),
    }
}

fn is_sealed(spec: &Spec) -> bool {
    spec.contains_key("secrets_sealed")
}

/// The secret that the receiver of `callback` or `notify` shares with the lab; empty: there is none in the clear.
pub fn receiver_secret<'s>(spec: &'s Spec, field: &str) -> &'s str {
    let secrets = spec.get("secrets").and_then(Value::as_object);
    let secret = secrets.and_then(|secrets| secrets.get(field));
    secret.and_then(Value::as_str).unwrap_or_default()
}

/// The receiver must be able to tell that it was fairlead, so there is a secret: the key of signatures, or a token. A chat
/// trusts whoever knows its address.
fn check_secret(spec: &Spec, field: &str, kind: &CallbackKind) -> Result<(), FieldError> {
    if is_sealed(spec) {
        // It was read before it was sealed.
        return Ok(());
    }
    let secrets = spec.get("secrets").and_then(Value::as_object);
    let is_given = secrets.is_some_and(|secrets| secrets.contains_key(field));
    let text = receiver_secret(spec, field);
    let is_good =
        (1..=SECRET_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    if is_good || (!is_given && *kind == CallbackKind::Text) {
        return Ok(());
    }
    let problem = if is_given {
        "it is no secret of 1 to 4,096 printable characters"
    } else {
        "it is missing"
    };
    refuse(
        &format!("secrets.{field}"),
        problem.to_owned(),
        "give the key of the signatures (whsec_…), or the token that Azure or GitHub asks for",
    )
}

#[cfg(test)]
mod tests;
