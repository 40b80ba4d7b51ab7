//! Settings of the command line: `a.b=value`, and whole files, as defaults or as overrides.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    at::At,
    error::{Files, JobFileError, printable},
    limits::PATH_SEGMENTS_MAX,
    scalar, shapes,
    template::Texts,
    tree::{Entry, Key, Kind, Node},
    yaml,
};

/// A value for a key, or a file of them. Where it stands decides: before the job file it is a default,
/// after it an override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting(ValueOrFile);

#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueOrFile {
    Value { key: String, value: String },
    File(PathBuf),
}

/// Meaning of a setting.
pub(crate) enum Meaning<'a> {
    Entry(Entry),
    File(&'a Path),
}

impl Setting {
    /// Reads `key=value`. A dotted key is a path. The value is typed as YAML: `8` is a number, `[1, 2]` a
    /// list that expands, `'8'` text, nothing is null.
    ///
    /// # Errors
    /// When there is no `=`, no key, or the value is an unclosed list, map or quote.
    pub fn parse(text: &str) -> Result<Self, JobFileError> {
        let refuse = |message: String| {
            let hint = "write KEY=VALUE, for example nr_threads=8 or hackbench.mode=process";
            JobFileError::whole("setting", &format!("setting '{text}'"), message, hint)
        };
        let Some((key, value)) = text.split_once('=') else {
            return Err(refuse("a setting needs a '='".to_owned()));
        };
        let key = key.trim();
        if key.is_empty()
            || key.split('.').any(str::is_empty)
            || key.contains(char::is_control)
            || key == "<<"
        {
            return Err(refuse(format!("'{}' is not a key", printable(key, 60))));
        }
        if key.split('.').count() > PATH_SEGMENTS_MAX {
            return Err(refuse(format!(
                "a path of more than {PATH_SEGMENTS_MAX} keys"
            )));
        }
        let setting = Self(ValueOrFile::Value {
            key: key.to_owned(),
            value: value.trim().to_owned(),
        });
        setting
            .meaning(&mut Files::default())
            .map(|_| setting.clone())
    }

    /// A file of values, as `-i FILE` names it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(ValueOrFile::File(path.into()))
    }

    /// Returns its meaning. Places in it count as places of a file of its own.
    pub(crate) fn meaning(&self, files: &mut Files) -> Result<Meaning<'_>, JobFileError> {
        let (key, value) = match &self.0 {
            ValueOrFile::File(path) => return Ok(Meaning::File(path)),
            ValueOrFile::Value { key, value } => (key, value),
        };
        let file = files.add(&format!("setting '{key}'"), value);
        let at = At {
            file,
            line: 1,
            column: 1,
        };
        let node = if value.starts_with(['[', '{', '"', '\'']) && !value.starts_with("{{") {
            flow(value, file, files)?
        } else if value.contains("<%") || value.contains('\0') {
            let message = format!("'{}' holds ERB or a NUL character", printable(value, 60));
            return Err(files.error(at, "setting", message, "write the value itself"));
        } else {
            let kind = match scalar::plain(value) {
                serde_json::Value::String(text) if key != "script" => {
                    shapes::text_or_template(&text, at, files)?
                }
                other => Kind::Scalar(other),
            };
            Arc::new(Node { at, kind })
        };
        shapes::entry(
            Key {
                text: key.clone(),
                at,
            },
            node,
            files,
        )
        .map(Meaning::Entry)
    }
}

/// A value in YAML's brackets or quotes, read as the only value of a file.
fn flow(value: &str, file: u32, files: &Files) -> Result<Arc<Node>, JobFileError> {
    // One key on the same line keeps every place but the columns, which move back by its width.
    let documents = yaml::documents(&format!("v: {value}"), file, files, Texts::Templates)?;
    let found = match documents.as_slice() {
        [root] => match &root.kind {
            Kind::Map(entries) => match entries.as_slice() {
                [Entry::One(_, node)] => Some(Arc::clone(node)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    found.ok_or_else(|| {
        let at = At {
            file,
            line: 1,
            column: 1,
        };
        let message = format!("'{}' is not one value", printable(value, 60));
        files.error(at, "setting", message, "quote the value")
    })
}
