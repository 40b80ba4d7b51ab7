//! `callback`: who is told when a job has ended, or begins to fail.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    FieldError, Spec,
    fields::read::{Charset, checked, known_keys, present, refuse},
    units::shown,
};

/// The field, and the name of its secret.
pub const CALLBACK: &str = "callback";
/// Bytes of an address.
const URL_BYTES_MAX: usize = 2_048;
/// Bytes of a word that a receiver asks for.
const WORD_BYTES_MAX: usize = 256;
/// Bytes of the secret.
const SECRET_BYTES_MAX: usize = 4_096;
const EXAMPLE: &str = "callback: {url: https://ci.example.com/hook, on: [ended, failing]}";

/// In which words a receiver is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallbackKind {
    /// fairlead's own, signed as Standard Webhooks says.
    Fairlead,
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

/// Who is told of what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callback {
    /// Where to, `http` or `https`, 1 to 2,048 bytes.
    pub url: String,
    /// Whether the end is told.
    pub ended: bool,
    /// Whether the first failure of a shard is told.
    pub failing: bool,
    /// In which words.
    #[serde(flatten)]
    pub kind: CallbackKind,
}

impl Callback {
    /// Reads `callback`; `None`: nobody is told.
    ///
    /// # Errors
    /// It is no address and no such map, or its secret is missing.
    pub fn of(spec: &Spec) -> Result<Option<Self>, FieldError> {
        let callback = match present(spec, CALLBACK) {
            None => return Ok(None),
            Some(Value::Object(map)) => Self::of_map(map)?,
            Some(url) => Self {
                url: url_of(CALLBACK, url)?,
                ended: true,
                failing: false,
                kind: CallbackKind::Fairlead,
            },
        };
        check_secret(spec)?;
        Ok(Some(callback))
    }

    fn of_map(map: &Map<String, Value>) -> Result<Self, FieldError> {
        const KEYS: [&str; 6] = ["url", "on", "kind", "job_id", "task_id", "context"];
        known_keys(CALLBACK, map, &KEYS, EXAMPLE)?;
        let Some(url) = present(map, "url") else {
            return refuse(CALLBACK, "url is missing".to_owned(), EXAMPLE);
        };
        let (ended, failing) = events(map)?;
        Ok(Self {
            url: url_of("callback.url", url)?,
            ended,
            failing,
            kind: kind(map)?,
        })
    }
}

fn url_of(field: &str, value: &Value) -> Result<String, FieldError> {
    let text = value.as_str().unwrap_or_default();
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let is_plain = text.len() <= URL_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic());
    if host.is_some_and(|host| !host.is_empty() && !host.contains('@')) && is_plain {
        return Ok(text.to_owned());
    }
    refuse(
        field,
        format!("{} is no address", shown(value)),
        "write http://HOST/PATH or https://HOST/PATH without a password, up to 2,048 bytes",
    )
}

/// `on`: one event or a list of them.
fn events(map: &Map<String, Value>) -> Result<(bool, bool), FieldError> {
    const FIELD: &str = "callback.on";
    let said = match present(map, "on") {
        None => return Ok((true, false)),
        Some(Value::Array(events)) => events.clone(),
        Some(one) => vec![one.clone()],
    };
    let (mut ended, mut failing) = (false, false);
    for event in &said {
        match event.as_str() {
            Some("ended") => ended = true,
            Some("failing") => failing = true,
            _ => {
                let problem = format!("{} is no event", shown(event));
                return refuse(FIELD, problem, "ended, failing, or both");
            }
        }
    }
    Ok((ended, failing))
}

fn kind(map: &Map<String, Value>) -> Result<CallbackKind, FieldError> {
    let word = |key: &str| {
        let field = format!("callback.{key}");
        match present(map, key) {
            Some(value) => checked(&field, value, Charset::Text, WORD_BYTES_MAX),
            None => refuse(
                &field,
                "it is missing".to_owned(),
                "azure needs job_id and task_id of the pipeline, github a context",
            ),
        }
    };
    match present(map, "kind").map(Value::as_str) {
        None | Some(Some("fairlead")) => Ok(CallbackKind::Fairlead),
        Some(Some("azure")) => Ok(CallbackKind::Azure {
            job_id: word("job_id")?,
            task_id: word("task_id")?,
        }),
        Some(Some("github")) => Ok(CallbackKind::Github {
            context: word("context")?,
        }),
        Some(_) => refuse(
            "callback.kind",
            "it is none of the known kinds".to_owned(),
            "fairlead, azure or github",
        ),
    }
}

/// The receiver must be able to tell that it was fairlead, so there is a secret: the key of signatures, or a token.
fn check_secret(spec: &Spec) -> Result<(), FieldError> {
    const FIELD: &str = "secrets.callback";
    if spec.contains_key("secrets_sealed") {
        // It was read before it was sealed.
        return Ok(());
    }
    let secrets = spec.get("secrets").and_then(Value::as_object);
    let secret = secrets.and_then(|secrets| secrets.get(CALLBACK));
    let text = secret.and_then(Value::as_str).unwrap_or_default();
    let is_good =
        (1..=SECRET_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    if is_good {
        return Ok(());
    }
    let problem = match secret {
        None => "it is missing",
        Some(_) => "it is no secret of 1 to 4,096 printable characters",
    };
    refuse(
        FIELD,
        problem.to_owned(),
        "give the key of the signatures (whsec_…), or the token that Azure or GitHub asks for",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(callback: &Value) -> Result<Option<Callback>, String> {
        let job = json!({"callback": callback, "secrets": {"callback": "whsec_MfKQ9r8"}});
        let job = job.as_object().cloned().unwrap_or_default();
        Callback::of(&job).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_or_a_map_says_who_is_told() {
        let plain = read(&json!("https://ci/hook")).unwrap().unwrap();
        assert_eq!((plain.ended, plain.failing), (true, false));
        let both = json!({"url": "http://ci:8080", "on": ["ended", "failing"]});
        let both = read(&both).unwrap().unwrap();
        assert!(both.ended && both.failing && both.kind == CallbackKind::Fairlead);
        let azure = json!({"url": "https://a", "kind": "azure", "job_id": "j", "task_id": "t"});
        let azure = read(&azure).unwrap().unwrap();
        let stored: Callback = serde_json::from_value(json!(azure)).unwrap();
        assert_eq!(stored, azure);
        assert_eq!(read(&json!(null)), Ok(None));
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (callback, word) in [
            (json!(7), "is no address"),
            (json!("ftp://ci"), "is no address"),
            (json!("https://user@ci"), "is no address"),
            (json!("https:///x"), "is no address"),
            (json!("https://ci/a b"), "is no address"),
            (json!({}), "url is missing"),
            (json!({"url": "https://ci", "om": "ended"}), "'om'"),
            (json!({"url": "https://ci", "on": "never"}), "callback.on"),
            (json!({"url": "https://ci", "kind": "x"}), "callback.kind"),
            (
                json!({"url": "https://ci", "kind": "azure"}),
                "callback.job_id",
            ),
            (
                json!({"url": "https://ci", "kind": "github"}),
                "callback.context",
            ),
        ] {
            let why = read(&callback).unwrap_err();
            assert!(why.contains(word), "{callback}: {why}");
        }
        let bare = json!({"callback": "https://ci"});
        let bare = bare.as_object().cloned().unwrap();
        let why = Callback::of(&bare).unwrap_err();
        assert_eq!(why.field, "secrets.callback");
    }
}
