//! Parses YAML text to trees. Only this module knows the YAML parser.
//!
//! It works on the parser's events with its own stack, so nesting costs heap and never the thread's stack. Each rule
//! sees all that it needs: the style of a scalar, the place of a key, a tag, an alias.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::Value;

use super::{
    at::At,
    error::{Files, JobFileError, printable},
    limits::{KEYS_MAX, NESTING_MAX, NODES_MAX},
    mask, scalar,
    shapes::{entry, erb_tag, merge_under, text_or_template},
    template::Texts,
    tree::{Entry, Key, Kind, Node},
};

/// The documents of `text`, which is file number `file`. Empty documents are left out.
pub(crate) fn documents(
    text: &str,
    file: u32,
    files: &Files,
    texts: Texts,
) -> Result<Vec<Arc<Node>>, JobFileError> {
    let masked = mask::mask(text, file, files)?;
    let mut builder = Builder {
        file,
        files,
        texts,
        hidden: masked.hidden,
        stack: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        documents: Vec::new(),
    };
    let options = granit_parser::options! { emit_comments: false };
    for event in Parser::new_from_str_with_options(&masked.text, options) {
        let (event, span) = event.map_err(|error| {
            let mark = error.marker();
            builder.syntax(text, at(file, mark.line(), mark.col()), &error.info())
        })?;
        builder.event(event, span)?;
    }
    if let Some((&(line, column), _)) = builder.hidden.first_key_value() {
        let message = "a template in the middle of an unquoted text of several lines".to_owned();
        return Err(files.error(
            At { file, line, column },
            "template_syntax",
            message,
            "quote the text",
        ));
    }
    Ok(builder.documents)
}

fn at(file: u32, line: usize, column: usize) -> At {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    At {
        file,
        line: number(line.max(1)),
        column: number(column.saturating_add(1)),
    }
}

/// A collection that is not closed yet.
struct Frame {
    at: At,
    anchor: usize,
    /// Inside `script`: no templates.
    literal: bool,
    /// Levels of collections inside.
    height: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Arc<Node>>),
    Map {
        entries: Vec<Entry>,
        key: Option<Key>,
        seen: HashMap<String, At>,
    },
}

struct Builder<'a> {
    file: u32,
    files: &'a Files,
    texts: Texts,
    hidden: BTreeMap<(u32, u32), String>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, (Arc<Node>, usize)>,
    nodes: usize,
    documents: Vec<Arc<Node>>,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), JobFileError> {
        let place = at(self.file, span.start.line(), span.start.col());
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                // The parser gives '~' for what is not there at all.
                let text = if span.is_empty() && text == "~" {
                    ""
                } else {
                    &*text
                };
                self.scalar(text, style, anchor, tag.as_deref(), place)
            }
            Event::SequenceStart(_, anchor, tag) => self.open(
                place,
                anchor,
                tag.as_deref(),
                "seq",
                Inside::List(Vec::new()),
            ),
            Event::MappingStart(_, anchor, tag) => {
                let inside = Inside::Map {
                    entries: Vec::new(),
                    key: None,
                    seen: HashMap::new(),
                };
                self.open(place, anchor, tag.as_deref(), "map", inside)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => match self.anchors.get(&id).cloned() {
                Some((node, height)) => self.value(node, height, place),
                None => Err(self.error(
                    place,
                    "alias_cycle",
                    "an alias to a value that contains it".to_owned(),
                    "",
                )),
            },
            _ => Ok(()),
        }
    }

    fn error(&self, at: At, code: &'static str, message: String, hint: &str) -> JobFileError {
        self.files.error(at, code, message, hint)
    }

    /// Returns the parser's error. ERB often breaks YAML: then that is said instead.
    fn syntax(&self, text: &str, place: At, problem: &str) -> JobFileError {
        for (n, line) in text.lines().enumerate() {
            if let Some(offset) = erb_tag(line).filter(|_| !line.trim_start().starts_with('#')) {
                let column = line.get(..offset).unwrap_or_default().chars().count();
                return self.erb(at(self.file, n + 1, column));
            }
        }
        let message = format!("not YAML: {}", printable(problem, 200));
        self.error(
            place,
            "syntax",
            message,
            "check indentation, quotes and brackets near this place",
        )
    }

    fn erb(&self, at: At) -> JobFileError {
        let message = "ERB ('<% %>') is not supported: a job file does not run code".to_owned();
        self.error(
            at,
            "erb",
            message,
            "write the value, or pass it as KEY=VALUE after the file",
        )
    }

    fn count(&mut self, nodes: usize, place: At) -> Result<(), JobFileError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > NODES_MAX {
            let message = format!("more than {NODES_MAX} keys and values in one file");
            return Err(self.error(place, "too_large", message, "split the file"));
        }
        Ok(())
    }

    fn is_literal(&self) -> bool {
        let is_below_script = |frame: &Frame| {
            let is_script =
                matches!(&frame.inside, Inside::Map { key: Some(key), .. } if key.text == "script");
            frame.literal || is_script
        };
        self.texts == Texts::AsTheyStand || self.stack.last().is_some_and(is_below_script)
    }

    fn open(
        &mut self,
        place: At,
        anchor: usize,
        tag: Option<&Tag>,
        kind: &str,
        inside: Inside,
    ) -> Result<(), JobFileError> {
        self.count(1, place)?;
        if self.awaits_key() {
            let message = "a list or map where a key was expected".to_owned();
            return Err(self.error(
                place,
                "key",
                message,
                "keys are plain words; quote '{' and '['",
            ));
        }
        if let Some(tag) = tag.filter(|t| t.core_suffix() != Some(kind)) {
            return Err(self.unknown_tag(tag, place));
        }
        if self.stack.len() >= NESTING_MAX {
            return Err(self.too_deep(place));
        }
        let literal = self.is_literal();
        self.stack.push(Frame {
            at: place,
            anchor,
            literal,
            height: 0,
            inside,
        });
        Ok(())
    }

    fn too_deep(&self, place: At) -> JobFileError {
        let message = format!("maps and lists nest deeper than {NESTING_MAX} levels");
        self.error(place, "too_deep", message, "flatten the file")
    }

    fn unknown_tag(&self, tag: &Tag, place: At) -> JobFileError {
        let message = format!("tag '{}' is not supported", printable(&tag.original(), 60));
        self.error(place, "tag", message, "leave the tag out")
    }

    fn awaits_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                inside: Inside::Map { key: None, .. },
                ..
            })
        )
    }

    fn close(&mut self) -> Result<(), JobFileError> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        let is_top = self.stack.is_empty();
        let kind = match frame.inside {
            Inside::List(items) => Kind::List(items),
            Inside::Map { entries, .. } if is_top => Kind::Map(entries),
            Inside::Map { entries, .. } => Kind::Map(self.merged(entries)?),
        };
        let node = Arc::new(Node { at: frame.at, kind });
        let height = frame.height + 1;
        if frame.anchor > 0 {
            self.anchors
                .insert(frame.anchor, (Arc::clone(&node), height));
        }
        self.value(node, height, frame.at)
    }

    /// YAML's own merge key inside a document: the keys of `<<: *other` that are not set here.
    fn merged(&mut self, entries: Vec<Entry>) -> Result<Vec<Entry>, JobFileError> {
        let (merges, mut own): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|e| e.sets("<<"));
        for merge in &merges {
            let Entry::One(key, node) = merge else {
                continue;
            };
            let items = match &node.kind {
                Kind::List(items) => items.as_slice(),
                _ => std::slice::from_ref(node),
            };
            for item in items {
                let Kind::Map(under) = &item.kind else {
                    let message =
                        format!("'<<' inside a map takes a map, not {}", item.kind.word());
                    let hint = "a file is included at the top of a document";
                    return Err(self.error(key.at, "include_place", message, hint));
                };
                self.count(under.len().saturating_add(1), key.at)?;
                merge_under(&mut own, under);
                self.check_keys(own.len(), key.at)?;
            }
        }
        Ok(own)
    }

    fn check_keys(&self, keys: usize, place: At) -> Result<(), JobFileError> {
        if keys <= KEYS_MAX {
            return Ok(());
        }
        let message = format!("more than {KEYS_MAX} keys in one map");
        Err(self.error(place, "too_large", message, "split the map"))
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        place: At,
    ) -> Result<(), JobFileError> {
        self.count(1, place)?;
        if text.contains('\0') {
            let message = "a NUL character in text".to_owned();
            return Err(self.error(place, "nul", message, "no program can take such a value"));
        }
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let literal = is_block || self.is_literal();
        if if literal {
            erb_tag(text).is_some()
        } else {
            text.contains("<%")
        } {
            return Err(self.erb(place));
        }
        if self.awaits_key() {
            return self.key(text, style, place);
        }
        let kind = self.kind(text, style, tag, place, literal)?;
        let node = Arc::new(Node { at: place, kind });
        if anchor > 0 {
            self.anchors.insert(anchor, (Arc::clone(&node), 0));
        }
        self.value(node, 0, place)
    }

    fn kind(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        place: At,
        literal: bool,
    ) -> Result<Kind, JobFileError> {
        if let Some(raw) = self.hidden.remove(&(place.line, place.column)) {
            if literal {
                return Ok(Kind::Scalar(Value::String(raw)));
            }
            return text_or_template(&raw, place, self.files);
        }
        if let Some(tag) = tag {
            return self.tagged(text, tag, place).map(Kind::Scalar);
        }
        if style == ScalarStyle::Plain {
            let value = scalar::plain(text);
            if !value.is_string() {
                return Ok(Kind::Scalar(value));
            }
        }
        if literal {
            return Ok(Kind::Scalar(Value::String(text.to_owned())));
        }
        let quote = u32::from(style != ScalarStyle::Plain);
        text_or_template(
            text,
            At {
                column: place.column + quote,
                ..place
            },
            self.files,
        )
    }

    fn tagged(&self, text: &str, tag: &Tag, place: At) -> Result<Value, JobFileError> {
        let value = scalar::plain(text);
        let fits = match tag.core_suffix() {
            Some("str") => return Ok(Value::String(text.to_owned())),
            Some("int") => value.is_i64() || value.is_u64(),
            Some("float") if value.is_number() => {
                return Ok(value.as_f64().map_or(Value::Null, Value::from));
            }
            Some("bool") => value.is_boolean(),
            Some("null") => value.is_null(),
            Some("float") => false,
            _ => return Err(self.unknown_tag(tag, place)),
        };
        if fits {
            return Ok(value);
        }
        let message = format!(
            "'{}' does not match its tag '{}'",
            printable(text, 60),
            tag.original()
        );
        Err(self.error(place, "tag", message, "leave the tag out"))
    }

    fn key(&mut self, text: &str, style: ScalarStyle, place: At) -> Result<(), JobFileError> {
        if text.contains("{{") || self.hidden.contains_key(&(place.line, place.column)) {
            let message = "a template cannot be a key".to_owned();
            return Err(self.error(place, "template_key", message, "templates give values only"));
        }
        if text.is_empty() {
            return Err(self.error(place, "key", "an empty key".to_owned(), "name the key"));
        }
        let may_repeat = text == "<<" && style == ScalarStyle::Plain;
        let found = Key {
            text: text.to_owned(),
            at: place,
        };
        let Some(Frame {
            inside: Inside::Map { key, seen, entries },
            ..
        }) = self.stack.last_mut()
        else {
            return Ok(());
        };
        let keys = entries.len();
        let before = seen.insert(text.to_owned(), place).filter(|_| !may_repeat);
        *key = Some(found);
        match before {
            Some(before) => Err(self.duplicate(text, before, place)),
            None => self.check_keys(keys + 1, place),
        }
    }

    fn duplicate(&self, key: &str, before: At, place: At) -> JobFileError {
        let shown = printable(key, 60);
        let message = format!(
            "key '{shown}' is set twice, on line {} and on line {}",
            before.line, place.line
        );
        self.error(
            place,
            "duplicate_key",
            message,
            "remove one of them, or start another document with '---'",
        )
    }

    /// A complete value: the next item, the value of the waiting key, or a document.
    fn value(&mut self, node: Arc<Node>, height: usize, place: At) -> Result<(), JobFileError> {
        if self.stack.len() + height > NESTING_MAX {
            return Err(self.too_deep(place));
        }
        if self.awaits_key() {
            let message = "an alias where a key was expected".to_owned();
            return Err(self.error(place, "key", message, "write the key out"));
        }
        let files = self.files;
        let Some(frame) = self.stack.last_mut() else {
            return self.document(node);
        };
        frame.height = frame.height.max(height);
        let repeated = match &mut frame.inside {
            Inside::List(items) => {
                items.push(node);
                None
            }
            Inside::Map { entries, key, seen } => {
                let Some(key) = key.take() else {
                    return Ok(());
                };
                let place = key.at;
                let entry = entry(key, node, files)?;
                // A plain key was looked up when it was read; zipped ones are only known now.
                let mut repeated = None;
                if let Entry::Zip(zip) = &entry {
                    for key in &zip.keys {
                        let before = seen.insert(key.text.clone(), place);
                        repeated =
                            repeated.or(before.map(|before| (key.text.clone(), before, place)));
                    }
                }
                entries.push(entry);
                repeated
            }
        };
        match repeated {
            Some((key, before, place)) => Err(self.duplicate(&key, before, place)),
            None => Ok(()),
        }
    }

    fn document(&mut self, node: Arc<Node>) -> Result<(), JobFileError> {
        match &node.kind {
            Kind::Map(_) => self.documents.push(node),
            Kind::Scalar(Value::Null) => {}
            other => {
                let message = format!("{} where a map of keys was expected", other.word());
                return Err(self.error(
                    node.at,
                    "not_a_map",
                    message,
                    "a job file holds 'key: value' lines",
                ));
            }
        }
        Ok(())
    }
}
