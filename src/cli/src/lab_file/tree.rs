//! YAML as a tree whose nodes know their lines, and the errors that name them.

use std::{fmt, path::Path};

use fairlead_job::nearest;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::{exit::Failure, setting_file::text_of, table::harmless};

/// One value of the file, and its line.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) tree: Tree,
}

#[derive(Debug, Clone)]
pub(super) enum Tree {
    /// Also nothing at all, which is `null`.
    Word(Value),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl From<Spanned<Tree>> for Node {
    fn from(read: Spanned<Tree>) -> Self {
        Self {
            line: read.referenced.line(),
            tree: read.value,
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, a list or a map")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Word(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Word(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Word(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Word(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Word(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Word(Value::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Tree>>()? {
            list.push(item.into());
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = fields.next_entry::<Spanned<String>, Spanned<Tree>>()? {
            // The line of its key: a value may begin below it.
            let node = Node {
                line: key.referenced.line(),
                tree: value.value,
            };
            map.push((key.value, node));
        }
        Ok(Tree::Map(map))
    }
}

/// A file, for its errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'f>(pub(super) &'f Path);

impl At<'_> {
    /// The whole file.
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
        let read: Spanned<Tree> = serde_saphyr::from_str(text).map_err(|error| {
            Failure::usage(
                format!("{}: {}", self.0.display(), error.to_string().trim_end()),
                "write one YAML map with the sections of the lab",
            )
        })?;
        Ok(read.into())
    }

    pub(super) fn refuse(
        self,
        line: u64,
        message: impl fmt::Display,
        hint: impl Into<String>,
    ) -> Failure {
        let message = format!("{}:{line}: {message}", self.0.display());
        Failure::usage(message, hint)
    }

    /// A value that is none of those that a key takes.
    pub(super) fn bad(self, key: &str, node: &Node, expected: &str) -> Failure {
        let value = harmless(&node.shown());
        self.refuse(
            node.line,
            format!("{key}: {value} is not valid"),
            format!("expected {expected}"),
        )
    }

    /// The fields of a map; of nothing there are none.
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

    /// A list of texts; one text is a list of one.
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

impl Node {
    pub(super) fn word(&self) -> Option<&Value> {
        match &self.tree {
            Tree::Word(value) => Some(value),
            Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// The same as JSON.
    pub(super) fn value(&self) -> Value {
        match &self.tree {
            Tree::Word(value) => value.clone(),
            Tree::List(items) => items.iter().map(Self::value).collect(),
            Tree::Map(fields) => {
                let fields = fields.iter().map(|(key, node)| (key.clone(), node.value()));
                Value::Object(fields.collect())
            }
        }
    }

    fn shown(&self) -> String {
        match &self.tree {
            Tree::Word(Value::String(text)) => format!("'{text}'"),
            Tree::Word(Value::Null) => "nothing".to_owned(),
            Tree::Word(value) => value.to_string(),
            Tree::List(_) => "a list".to_owned(),
            Tree::Map(_) => "a map".to_owned(),
        }
    }
}
