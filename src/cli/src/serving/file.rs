//! Reads the TOML file. Knows lines, and nothing of what the keys mean.

use std::{collections::BTreeMap, path::Path};

use fairlead_job::nearest;
use toml::{Spanned, Value};

use super::keys::Key;
use crate::{exit::Failure, setting_file::text_of, table::harmless};

/// Values of one key in the file, each in the form of the flag, and the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) values: Vec<String>,
    pub(super) line: usize,
}

/// Reads the file's values by key.
pub(super) fn read(path: &Path, keys: &[Key]) -> Result<BTreeMap<String, Said>, Failure> {
    let problem = |why: String| {
        let message = format!("cannot read --config {}: {why}", path.display());
        Failure::usage(
            message,
            "check the path, and whether the user of fairlead may read the file",
        )
    };
    let text = text_of(path).map_err(|error| problem(error.to_string()))?;
    parse(path, &text, keys)
}

fn parse(path: &Path, text: &str, keys: &[Key]) -> Result<BTreeMap<String, Said>, Failure> {
    type Document = BTreeMap<Spanned<String>, Spanned<Value>>;
    let document: Document = toml::from_str(text).map_err(|error| {
        Failure::usage(
            format!("{}: {}", path.display(), error.to_string().trim_end()),
            "write KEY = VALUE lines (TOML); `fairlead config serve` lists the keys",
        )
    })?;
    let mut said = BTreeMap::new();
    for (name, value) in document {
        let before = text.get(..name.span().start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let place = format!("{}:{line}", path.display());
        let name = name.into_inner();
        if !keys.iter().any(|key| key.name == name) {
            return Err(unknown(&place, &name, keys));
        }
        let values = words(value.get_ref()).ok_or_else(|| {
            Failure::usage(
                format!(
                    "{place}: {name}: {} is not valid",
                    harmless(text.get(value.span()).unwrap_or_default())
                ),
                "expected a text, a whole number, true, false, or a list of texts",
            )
        })?;
        said.insert(name, Said { values, line });
    }
    Ok(said)
}

fn words(value: &Value) -> Option<Vec<String>> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    };
    match value {
        Value::Array(items) => items.iter().map(one).collect(),
        other => Some(vec![one(other)?]),
    }
}

fn unknown(place: &str, name: &str, keys: &[Key]) -> Failure {
    // A `_` in a key is a mistake for `-`.
    let meant = name.replace('_', "-");
    let hint = nearest(&meant, keys.iter().map(|key| key.name.as_str())).map_or_else(
        || "`fairlead config serve` lists the keys".to_owned(),
        |near| format!("did you mean '{near}'?"),
    );
    Failure::usage(format!("{place}: unknown key '{}'", harmless(name)), hint)
}
