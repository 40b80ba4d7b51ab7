//! Small shapes inside YAML with their own meaning: templates in text, zipped keys, merge keys, and ERB, which is
//! refused.

use std::sync::Arc;

use serde_json::Value;

use super::{
    at::At,
    error::{Files, JobFileError, printable},
    scalar,
    template::Template,
    tree::{Entry, Key, Kind, Node, Zip},
};

/// The value of a text that is not in a block or script.
pub(crate) fn text_or_template(text: &str, at: At, files: &Files) -> Result<Kind, JobFileError> {
    Ok(match Template::parse(text, at, files)? {
        Some(template) => Kind::Template(Arc::new(template)),
        None => Kind::Scalar(Value::String(text.to_owned())),
    })
}

/// Adds the entries of `under` whose keys `own` does not set.
pub(crate) fn merge_under(own: &mut Vec<Entry>, under: &[Entry]) {
    for entry in under {
        if !entry
            .keys()
            .iter()
            .any(|k| own.iter().any(|e| e.sets(&k.text)))
        {
            own.push(entry.clone());
        }
    }
}

/// The offset of what is an ERB tag and not, say, a `<%s>` in a shell's printf.
pub(crate) fn erb_tag(text: &str) -> Option<usize> {
    let last_end = text.rfind("%>")?;
    let opens = |c: char| c.is_whitespace() || matches!(c, '=' | '-' | '#');
    let is_tag = |offset: usize| {
        offset + 2 < last_end
            && text
                .get(offset + 2..)
                .is_some_and(|rest| rest.starts_with(opens))
    };
    text.match_indices("<%")
        .map(|(offset, _)| offset)
        .find(|&offset| is_tag(offset))
}

/// The names of `a|b`; `None` for a key that is not zipped.
fn zip_names(key: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = key.split('|').map(str::trim).collect();
    let is_name = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    (names.len() > 1 && names.iter().all(is_name)).then_some(names)
}

/// A line of a map. `a|b: [x|y, ..]` is split here.
pub(crate) fn entry(key: Key, node: Arc<Node>, files: &Files) -> Result<Entry, JobFileError> {
    let Some(names) = zip_names(&key.text) else {
        return Ok(Entry::One(key, node));
    };
    let keys = names
        .iter()
        .map(|name| Key {
            text: (*name).to_owned(),
            at: key.at,
        })
        .collect();
    let items: &[Arc<Node>] = match &node.kind {
        Kind::List(items) => items,
        _ => std::slice::from_ref(&node),
    };
    let mut rows = Vec::with_capacity(items.len());
    for item in items {
        let refuse = |message: String| {
            files.error(
                item.at,
                "zip",
                message,
                "write each item as one value a key",
            )
        };
        let text = match &item.kind {
            Kind::Scalar(Value::String(text)) => text.clone(),
            Kind::Scalar(value) if !value.is_null() => value.to_string(),
            other => {
                return Err(refuse(format!(
                    "{} where '{}' needs text to split on '|'",
                    other.word(),
                    key.text
                )));
            }
        };
        let row: Vec<Value> = text.split('|').map(|part| unquoted(part.trim())).collect();
        if row.len() != names.len() {
            let shown = printable(&text, 60);
            let (keys, found) = (names.len(), row.len());
            return Err(refuse(format!(
                "'{}' has {keys} keys, but '{shown}' has {found} values",
                key.text
            )));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        let message = format!("'{}' has an empty list, which leaves no job", key.text);
        return Err(files.error(
            node.at,
            "empty_list",
            message,
            "remove the key, or give it a value",
        ));
    }
    Ok(Entry::Zip(Zip { keys, rows }))
}

/// One part of a zipped item: quotes make it text, else it is typed as YAML.
fn unquoted(part: &str) -> Value {
    for quote in ['\'', '"'] {
        if let Some(inside) = part.strip_prefix(quote).and_then(|p| p.strip_suffix(quote)) {
            return Value::String(inside.to_owned());
        }
    }
    scalar::plain(part)
}
