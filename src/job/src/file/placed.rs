//! Files of settings: one YAML document as it stands, whose values know their lines. Nothing is included or expanded.

use std::sync::Arc;

use serde_json::Value;

use super::{
    error::{Files, JobFileError},
    template::Texts,
    tree::{Entry, Kind, Node},
    yaml,
};

/// A value of a file, and its line: that of its key, if it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// From 1.
    pub line: u32,
    /// The value.
    pub tree: Tree,
}

/// Kind of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// Text, number, bool or null; an empty file is null.
    Word(Value),
    /// A list.
    List(Vec<Placed>),
    /// A map, in the order of the file.
    Map(Vec<(String, Placed)>),
}

impl Placed {
    /// Text, number, bool or null; `None`: a list or a map.
    pub fn word(&self) -> Option<&Value> {
        match &self.tree {
            Tree::Word(value) => Some(value),
            Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// The same as JSON.
    pub fn value(&self) -> Value {
        match &self.tree {
            Tree::Word(value) => value.clone(),
            Tree::List(items) => items.iter().map(Self::value).collect(),
            Tree::Map(fields) => {
                let fields = fields.iter().map(|(key, node)| (key.clone(), node.value()));
                Value::Object(fields.collect())
            }
        }
    }
}

/// Reads `text`: one map, or nothing. `name` is that of the file, for errors.
///
/// # Errors
/// Fails with the problem of the text and its place; `not_plain`: several documents, zipped keys or an include.
pub fn read_placed(name: &str, text: &str) -> Result<Placed, JobFileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut files = Files::default();
    let file = files.add(name, text);
    let documents = yaml::documents(text, file, &files, Texts::AsTheyStand)?;
    match documents.as_slice() {
        [] => Ok(Placed {
            line: 1,
            tree: Tree::Word(Value::Null),
        }),
        [document] => placed(document, document.at.line, &files),
        [_, second, ..] => Err(files.error(
            second.at,
            "not_plain",
            format!("{} documents where one was expected", documents.len()),
            "remove the lines '---'",
        )),
    }
}

/// The parser bounds how deep nodes lie in each other.
fn placed(node: &Arc<Node>, line: u32, files: &Files) -> Result<Placed, JobFileError> {
    let tree = match &node.kind {
        Kind::Scalar(value) => Tree::Word(value.clone()),
        Kind::Template(_) => {
            let message = "a template where a plain text was expected".to_owned();
            return Err(files.error(node.at, "not_plain", message, "write the text itself"));
        }
        Kind::List(items) => {
            let items = items.iter().map(|item| placed(item, item.at.line, files));
            Tree::List(items.collect::<Result<_, _>>()?)
        }
        Kind::Map(entries) => {
            let fields = entries.iter().map(|entry| match entry {
                Entry::One(key, node) if key.text != "<<" => {
                    Ok((key.text.clone(), placed(node, key.at.line, files)?))
                }
                entry => Err(not_plain(entry, files)),
            });
            Tree::Map(fields.collect::<Result<_, _>>()?)
        }
    };
    Ok(Placed { line, tree })
}

fn not_plain(entry: &Entry, files: &Files) -> JobFileError {
    let at = entry.keys().first().map(|key| key.at);
    files.error(
        at.unwrap_or_default(),
        "not_plain",
        "zipped keys or an include where a plain key was expected".to_owned(),
        "write one map with plain keys and values",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_the_lines_of_their_keys() {
        let read = read_placed("lab.yaml", "a: 1\nb:\n  - x\n  - c: '{{ y }}'\n").unwrap();
        let value = serde_json::json!({"a": 1, "b": ["x", {"c": "{{ y }}"}]});
        assert_eq!(read.value(), value);
        let Tree::Map(fields) = &read.tree else {
            panic!("{read:?}");
        };
        let lines: Vec<u32> = fields.iter().map(|(_, node)| node.line).collect();
        assert_eq!(lines, [1, 2]);
        let Tree::List(items) = &fields[1].1.tree else {
            panic!("{read:?}");
        };
        assert_eq!([items[0].line, items[1].line], [3, 4]);
        assert_eq!(
            read_placed("f", "# nothing\n").unwrap().value(),
            Value::Null
        );
    }

    #[test]
    fn what_is_not_one_plain_map_is_refused_with_its_place() {
        for (text, code, line) in [
            ("a: 1\n---\nb: 1\n", "not_plain", 3),
            ("a: 1\n<<: other.yaml\n", "not_plain", 2),
            ("a|b: [1|2]\n", "not_plain", 1),
            ("- a\n", "not_a_map", 1),
            ("a: 1\na: 2\n", "duplicate_key", 2),
            ("a: [1\n", "syntax", 1),
        ] {
            let error = read_placed("lab.yaml", text).unwrap_err();
            assert_eq!((error.code, error.line), (code, line), "{text}: {error}");
        }
    }
}
