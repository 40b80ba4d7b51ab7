//! Reads values of the lab file, and refuses with their lines.

use std::{fmt, path::Path};

pub(super) use fairlead_job::{Placed as Node, Tree};
use fairlead_job::{nearest, read_placed};
use serde_json::Value;

use crate::{exit::Failure, setting_file::text_of, table::harmless};

/// File being read, named in errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'f>(pub(super) &'f Path);

impl At<'_> {
    /// Reads the whole file.
    pub(super) fn read(self) -> Result<Node, Failure> {
        let path = self.0;
        let problem = |why: String| {
            Failure::usage(
                format!("cannot read {}: {why}", path.display()),
                "name a lab file, or write one: docs/operator-guide.md shows an example",
            )
        };
        let text = text_of(path).map_err(|error| problem(error.to_string()))?;
        self.parse(&text)
    }

    pub(super) fn parse(self, text: &str) -> Result<Node, Failure> {
        read_placed(&self.0.display().to_string(), text).map_err(Failure::from)
    }

    pub(super) fn refuse(
        self,
        line: u32,
        message: impl fmt::Display,
        hint: impl Into<String>,
    ) -> Failure {
        let message = format!("{}:{line}: {message}", self.0.display());
        Failure::usage(message, hint)
    }

    /// Returns the error for an invalid value of a key.
    pub(super) fn bad(self, key: &str, node: &Node, expected: &str) -> Failure {
        let value = harmless(&shown(node));
        self.refuse(
            node.line,
            format!("{key}: {value} is not valid"),
            format!("expected {expected}"),
        )
    }

    /// Returns the fields of a map. An empty value has no fields.
    pub(super) fn fields<'n>(
        self,
        key: &str,
        node: &'n Node,
    ) -> Result<&'n [(String, Node)], Failure> {
        match &node.tree {
            Tree::Map(fields) => Ok(fields),
            Tree::Word(Value::Null) => Ok(&[]),
            Tree::Word(_) | Tree::List(_) => Err(self.bad(key, node, "a map")),
        }
    }

    pub(super) fn unknown(self, key: &str, node: &Node, known: &[&str]) -> Failure {
        let hint = nearest(key, known.iter().copied()).map_or_else(
            || format!("known keys are {}", known.join(", ")),
            |near| format!("did you mean '{near}'?"),
        );
        let message = format!("unknown key '{}'", harmless(key));
        self.refuse(node.line, message, hint)
    }

    pub(super) fn number(
        self,
        key: &str,
        node: &Node,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, Failure> {
        let expected = format!("a whole number, {} to {}", range.start(), range.end());
        let number = node.word().and_then(Value::as_u64);
        let number = number.filter(|number| range.contains(number));
        number.ok_or_else(|| self.bad(key, node, &expected))
    }

    pub(super) fn text(self, key: &str, node: &Node, expected: &str) -> Result<String, Failure> {
        match node.word() {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            _ => Err(self.bad(key, node, expected)),
        }
    }

    pub(super) fn yes_or_no(self, key: &str, node: &Node) -> Result<bool, Failure> {
        let value = node.word().and_then(Value::as_bool);
        value.ok_or_else(|| self.bad(key, node, "true or false"))
    }

    /// Reads a list of texts. A single text is a list of one.
    pub(super) fn texts(self, key: &str, node: &Node) -> Result<Vec<String>, Failure> {
        let expected = "a text or a list of texts";
        match &node.tree {
            Tree::List(items) => items
                .iter()
                .map(|item| self.text(key, item, expected))
                .collect(),
            Tree::Word(_) => Ok(vec![self.text(key, node, expected)?]),
            Tree::Map(_) => Err(self.bad(key, node, expected)),
        }
    }
}

/// Returns a value for an error message.
fn shown(node: &Node) -> String {
    match &node.tree {
        Tree::Word(Value::String(text)) => format!("'{text}'"),
        Tree::Word(Value::Null) => "nothing".to_owned(),
        Tree::Word(value) => value.to_string(),
        Tree::List(_) => "a list".to_owned(),
        Tree::Map(_) => "a map".to_owned(),
    }
}
