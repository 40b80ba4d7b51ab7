//! Reads the configuration file, and compass-ci's account file if present. Unknown keys are errors that name the
//! nearest known one.

use std::{collections::BTreeMap, fs, io, os::unix::fs::MetadataExt, path::Path};

use fairlead_job::{Placed, Tree, nearest, read_placed};
use serde_json::Value;

use super::origin::{Origin, Setting};
use crate::{exit::Failure, setting_file::text_of};

/// All keys of the configuration file, with their descriptions.
pub(crate) const KEYS: &[(&str, &str)] = &[
    (
        "server",
        "URL of the scheduler, or a list of the URLs of its replicas",
    ),
    (
        "lab",
        "lab that is used without --lab, of a file in labs/ beside this one",
    ),
    ("account", "account of jobs that name none"),
    ("token", "token of the account; prefer token_file"),
    ("token_file", "file that contains only the token"),
    ("testbox", "testbox of submitted jobs that name none"),
    ("arch", "architecture of submitted jobs that name none"),
    (
        "include_dirs",
        "folders that are searched for included job files, after -I",
    ),
];

/// Values of a configuration file, as written.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    values: BTreeMap<String, Setting<Value>>,
}

type Document = BTreeMap<String, Placed>;

impl ConfigFile {
    /// Reads `path`. A missing file has no values, unless the user named it.
    pub(super) fn read(path: &Path, asked_for: bool) -> Result<Self, Failure> {
        let Some(text) = read_text(path, asked_for)? else {
            return Ok(Self::default());
        };
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let mut values = BTreeMap::new();
        for (key, value) in yaml(path, text)? {
            let line = value.line;
            if !KEYS.iter().any(|(known, _)| *known == key) {
                return Err(unknown(path, line, &key));
            }
            values.insert(
                key,
                Setting::new(value.value(), Origin::File(path.to_owned(), line)),
            );
        }
        Ok(Self { values })
    }

    /// Adds the values of a lab's file. Server and account then come from the lab alone.
    pub(super) fn with_lab(mut self, folder: &Path, name: &str) -> Result<Self, Failure> {
        let path = folder.join(format!("{name}.yaml"));
        if !path.is_file() {
            let known = labs_in(folder);
            let known = if known.is_empty() {
                "no lab is known".to_owned()
            } else {
                format!("known: {}", known.join(", "))
            };
            return Err(Failure::usage(
                format!(
                    "there is no lab '{name}': {} does not exist",
                    path.display()
                ),
                format!("{known}; add it: fairlead login --lab {name} --server URL"),
            ));
        }
        for key in ["server", "account", "token", "token_file"] {
            self.values.remove(key);
        }
        self.values.extend(Self::read(&path, true)?.values);
        Ok(self)
    }

    /// Returns a text. `None`: the key is absent, empty or null.
    pub(super) fn text(&self, key: &str) -> Result<Option<Setting<String>>, Failure> {
        let Some(found) = self.values.get(key) else {
            return Ok(None);
        };
        let text = match &found.value {
            Value::Null => return Ok(None),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            other => return Err(wrong_type(&found.origin, key, other, "a text")),
        };
        Ok((!text.is_empty()).then(|| Setting::new(text, found.origin.clone())))
    }

    /// Returns a list of texts. A single text is a list of one, and is split at commas if `commas` is set.
    pub(super) fn list(
        &self,
        key: &str,
        commas: bool,
    ) -> Result<Option<Setting<Vec<String>>>, Failure> {
        let Some(found) = self.values.get(key) else {
            return Ok(None);
        };
        let mut texts = Vec::new();
        let items = match &found.value {
            Value::Null => return Ok(None),
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for item in items {
            let Value::String(text) = item else {
                return Err(wrong_type(
                    &found.origin,
                    key,
                    item,
                    "a text or a list of texts",
                ));
            };
            if commas {
                texts.extend(divided(text));
            } else {
                texts.push(text.clone());
            }
        }
        Ok((!texts.is_empty()).then(|| Setting::new(texts, found.origin.clone())))
    }
}

/// Returns the labs that have a file here.
fn labs_in(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        name.strip_suffix(".yaml").map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns `my_account` and `my_token` of compass-ci's own account file. Its other keys are ignored, and so is an
/// unreadable file, because it belongs to another program.
pub(super) fn compass_ci(path: &Path) -> (Option<Setting<String>>, Option<Setting<String>>) {
    let Ok(Some(text)) = read_text(path, false) else {
        return (None, None);
    };
    let Ok(document) = yaml(path, &text) else {
        tracing::warn!(path = %path.display(), "the account file of compass-ci is not YAML and is ignored");
        return (None, None);
    };
    let get = |key: &str| {
        let found = document.get(key)?;
        let text = match found.word()? {
            Value::String(text) if !text.is_empty() => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(Setting::new(
            text,
            Origin::File(path.to_owned(), found.line),
        ))
    };
    (get("my_account"), get("my_token"))
}

/// Reads the token in a file: its only line.
pub(super) fn token_file(path: &Path, asked_for: bool) -> Result<Option<Setting<String>>, Failure> {
    let Some(text) = read_text(path, asked_for)? else {
        return Ok(None);
    };
    let token = text.trim();
    if token.is_empty() || token.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Failure::usage(
            format!(
                "{}: expected one line that contains only a token",
                path.display()
            ),
            "write the token that `fairlead account add` printed into it",
        ));
    }
    Ok(Some(Setting::new(
        token.to_owned(),
        Origin::File(path.to_owned(), 0),
    )))
}

/// Returns the name of the user that runs this process, for environments without `USER`, as in containers.
pub(super) fn user_of_process() -> Option<String> {
    let uid = fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id == uid).then(|| name.to_owned())
    });
    Some(name.unwrap_or_else(|| format!("uid{uid}")))
}

/// Parses the keys of a file, each with its value and line.
fn yaml(path: &Path, text: &str) -> Result<Document, Failure> {
    // The document is a map, or empty.
    match read_placed(&path.display().to_string(), text)?.tree {
        Tree::Map(fields) => Ok(fields.into_iter().collect()),
        Tree::Word(_) | Tree::List(_) => Ok(Document::new()),
    }
}

fn read_text(path: &Path, asked_for: bool) -> Result<Option<String>, Failure> {
    let problem = match fs::metadata(path) {
        Ok(about) if !about.is_file() => "is not a regular file".to_owned(),
        Ok(_) => match text_of(path) {
            Ok(text) => return Ok(Some(text)),
            Err(error) => error.to_string(),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound && !asked_for => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory && !asked_for => {
            return Ok(None);
        }
        Err(error) => error.to_string(),
    };
    Err(Failure::usage(
        format!("cannot read {}: {problem}", path.display()),
        "",
    ))
}

fn wrong_type(origin: &Origin, key: &str, value: &Value, expected: &str) -> Failure {
    Failure::usage(
        format!("{origin}: {key} is {value}, expected {expected}"),
        "",
    )
}

fn unknown(path: &Path, line: u32, key: &str) -> Failure {
    let known = KEYS.iter().map(|(known, _)| *known);
    let hint = nearest(key, known.clone()).map_or_else(
        || format!("known keys are {}", known.collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean '{near}'?"),
    );
    Failure::usage(
        format!(
            "{}:{line}: unknown key '{}'",
            path.display(),
            crate::table::harmless(key)
        ),
        hint,
    )
}

/// Splits a text at commas, and returns the trimmed parts that are not empty.
pub(super) fn divided(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, Failure> {
        ConfigFile::parse(Path::new("c.yaml"), text)
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_known() {
        let error = parse("account: a\nserfer: x\n").unwrap_err();
        assert_eq!(error.message, "c.yaml:2: unknown key 'serfer'");
        assert_eq!(error.hint, "did you mean 'server'?");
        assert!(
            parse("zzzzzzzz: 1\n")
                .unwrap_err()
                .hint
                .starts_with("known keys are server, ")
        );
    }

    #[test]
    fn a_list_may_be_one_text_with_commas() {
        for text in ["server: http://a, http://b", "server: [http://a, http://b]"] {
            let list = parse(text).unwrap().list("server", true).unwrap().unwrap();
            assert_eq!(list.value, ["http://a", "http://b"]);
            assert_eq!(list.origin.to_string(), "file c.yaml:1");
        }
    }

    #[test]
    fn wrong_types_and_broken_yaml_are_refused_with_their_place() {
        let error = parse("\naccount: [a]\n")
            .unwrap()
            .text("account")
            .unwrap_err();
        assert_eq!(
            error.message,
            "file c.yaml:2: account is [\"a\"], expected a text"
        );
        for text in ["- a\n", "a: [\n", "account: a\naccount: b\n"] {
            assert!(
                parse(text).unwrap_err().message.starts_with("c.yaml:"),
                "{text}"
            );
        }
    }

    #[test]
    fn nothing_is_not_a_value() {
        let file = parse("account:\nserver: []\ntoken: ''\n").unwrap();
        assert!(file.text("account").unwrap().is_none());
        assert!(file.list("server", true).unwrap().is_none());
        assert!(file.text("token").unwrap().is_none());
        assert!(parse("# only a remark\n").is_ok_and(|f| f.values.is_empty()));
    }
}
