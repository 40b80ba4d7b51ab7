//! Unfolds a document to its jobs: first counts all combinations, then makes one after the other.
//!
//! Each value knows the number of its alternatives. So the nth job is computed from n alone, like the digits of a
//! number. Only the jobs that are kept use memory.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};

use super::{
    at::At,
    error::{Files, JobFileError},
    eval::Scope,
    limits::{NESTING_MAX, VISITS_MAX},
    load::Document,
    template::Template,
    tree::{Entry, Kind, Node},
};
use crate::{Spec, Use, is_field};

/// Bytes that a node takes beside its text, roughly: for the estimate only.
const NODE_BYTES: u64 = 48;

/// How many jobs a document gives, and the bytes of its largest job, roughly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) jobs: u64,
    pub(crate) bytes: u64,
}

/// Returns true if the list at `path` stays a list.
fn is_kept(path: &[&str]) -> bool {
    match path
        .iter()
        .position(|key| !key.starts_with("if "))
        .map(|n| path.get(n..).unwrap_or_default())
    {
        Some([key]) => is_field(key, Use::Kept),
        Some(
            ["sched", "devices"]
            | ["retry" | "callback" | "notify", "on"]
            | ["crash", "end" | "note"]
            | ["shards", "by", _]
            | ["shards", "only"],
        ) => true,
        _ => false,
    }
}

/// Counts without making anything.
pub(crate) struct Counter<'a> {
    files: &'a Files,
    visits: u64,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(files: &'a Files) -> Self {
        Self { files, visits: 0 }
    }

    pub(crate) fn document(&mut self, document: &Document) -> Result<Size, JobFileError> {
        self.map(&document.entries, &mut Vec::new(), document.at)
    }

    fn visit(&mut self, at: At, depth: usize) -> Result<(), JobFileError> {
        self.visits += 1;
        if self.visits > VISITS_MAX {
            let message = format!(
                "more than {VISITS_MAX} values once aliases, documents and includes are followed"
            );
            return Err(self.files.error(
                at,
                "too_large",
                message,
                "use fewer aliases or documents",
            ));
        }
        if depth > NESTING_MAX {
            let message = format!("maps and lists nest deeper than {NESTING_MAX} levels");
            return Err(self
                .files
                .error(at, "too_deep", message, "flatten the file"));
        }
        Ok(())
    }

    fn map<'t>(
        &mut self,
        entries: &'t [Entry],
        path: &mut Vec<&'t str>,
        at: At,
    ) -> Result<Size, JobFileError> {
        let mut size = Size {
            jobs: 1,
            bytes: NODE_BYTES,
        };
        for entry in entries {
            let (part, keys) = match entry {
                Entry::One(key, node) => {
                    path.push(&key.text);
                    let part = self.node(node, path, path.len(), is_kept(path))?;
                    path.pop();
                    (part, length(&key.text))
                }
                Entry::Zip(zip) => {
                    self.visit(at, path.len())?;
                    let widest = zip
                        .rows
                        .iter()
                        .map(|row| row.iter().map(weight).fold(0, u64::saturating_add))
                        .max();
                    let part = Size {
                        jobs: count(zip.rows.len()),
                        bytes: widest.unwrap_or(0),
                    };
                    (part, zip.keys.iter().map(|k| length(&k.text)).sum())
                }
            };
            size.jobs = size.jobs.saturating_mul(part.jobs);
            size.bytes = size
                .bytes
                .saturating_add(part.bytes)
                .saturating_add(keys)
                .saturating_add(NODE_BYTES);
        }
        Ok(size)
    }

    fn node<'t>(
        &mut self,
        node: &'t Node,
        path: &mut Vec<&'t str>,
        depth: usize,
        kept: bool,
    ) -> Result<Size, JobFileError> {
        self.visit(node.at, depth)?;
        match &node.kind {
            Kind::Scalar(value) => Ok(Size {
                jobs: 1,
                bytes: weight(value),
            }),
            Kind::Template(template) => Ok(Size {
                jobs: 1,
                bytes: NODE_BYTES.saturating_add(count(template.bytes)),
            }),
            Kind::Map(entries) => self.map(entries, path, node.at),
            Kind::List(items) if kept => {
                let mut bytes = NODE_BYTES;
                for item in items {
                    bytes = bytes.saturating_add(self.kept(item, depth + 1)?);
                }
                Ok(Size { jobs: 1, bytes })
            }
            Kind::List(items) if items.is_empty() => {
                let message = format!("'{}' is an empty list, which leaves no job", path.join("."));
                Err(self.files.error(
                    node.at,
                    "empty_list",
                    message,
                    "remove the key, or give it a value",
                ))
            }
            Kind::List(items) => {
                let mut size = Size { jobs: 0, bytes: 0 };
                for item in items {
                    let part = self.node(item, path, depth + 1, false)?;
                    size.jobs = size.jobs.saturating_add(part.jobs);
                    size.bytes = size.bytes.max(part.bytes);
                }
                Ok(size)
            }
        }
    }

    /// The bytes of a value inside a list that stays a list: nothing expands there.
    fn kept(&mut self, node: &Node, depth: usize) -> Result<u64, JobFileError> {
        self.visit(node.at, depth)?;
        let mut bytes = NODE_BYTES;
        match &node.kind {
            Kind::Scalar(value) => return Ok(weight(value)),
            Kind::Template(template) => bytes = bytes.saturating_add(count(template.bytes)),
            Kind::List(items) => {
                for item in items {
                    bytes = bytes.saturating_add(self.kept(item, depth + 1)?);
                }
            }
            Kind::Map(entries) => {
                for entry in entries {
                    if let Entry::One(key, node) = entry {
                        bytes = bytes
                            .saturating_add(length(&key.text))
                            .saturating_add(self.kept(node, depth + 1)?);
                    }
                }
            }
        }
        Ok(bytes)
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn length(text: &str) -> u64 {
    count(text.len())
}

fn weight(value: &Value) -> u64 {
    NODE_BYTES + value.as_str().map_or(0, length)
}

/// A value with its alternatives counted. As deep as the tree, so at most [`NESTING_MAX`].
struct Alternatives {
    count: u64,
    kind: Shape,
}

enum Shape {
    Value(Value),
    Template(Arc<Template>, At),
    /// A list that stays one.
    Kept(Vec<Alternatives>),
    /// One of these; with each, how many alternatives there are up to it.
    Choice(Vec<(u64, Alternatives)>),
    Map(Vec<Line>),
}

enum Line {
    One(String, Alternatives),
    Zip(Vec<String>, Vec<Vec<Value>>),
}

/// All jobs of one document, made one at a time.
pub(crate) struct Matrix {
    all: Alternatives,
}

/// A template of a job that is not computed yet, and where its value goes.
struct Later<'m> {
    path: Vec<Step>,
    template: &'m Template,
    at: At,
}

#[derive(Clone)]
enum Step {
    Key(String),
    Item(usize),
}

/// Result of one combination.
pub(crate) enum Made {
    Job(Spec),
    /// A template gave nil here.
    Dropped(At),
}

impl Matrix {
    /// Prepares a document whose [`Size`] was found to be within limits.
    pub(crate) fn new(document: &Document) -> Self {
        Self {
            all: map(&document.entries, &mut Vec::new()),
        }
    }

    /// How many combinations there are.
    pub(crate) fn count(&self) -> u64 {
        self.all.count
    }

    /// Job number `n` of those that [`Counter::document`] counted; adds the bytes of computed texts, which
    /// were not known then.
    pub(crate) fn job(
        &self,
        n: u64,
        computed: &mut u64,
        files: &Files,
    ) -> Result<Made, JobFileError> {
        let mut later = Vec::new();
        let Value::Object(mut job) = self.all.pick(n, &mut Vec::new(), &mut later) else {
            return Ok(Made::Job(Map::new()));
        };
        let mut waiting: BTreeSet<String> = later.iter().map(|l| dotted(&l.path)).collect();
        for Later { path, template, at } in later {
            let value = Scope {
                job: &job,
                later: &waiting,
                budget: &files.patterns,
            }
            .value(template);
            let value = value.map_err(|no| files.error(no.at, "template_value", no.message, ""))?;
            let Some(value) = value else {
                return Ok(Made::Dropped(at));
            };
            *computed = computed.saturating_add(value.as_str().map_or(0, length));
            waiting.remove(&dotted(&path));
            put(&mut job, &path, value);
        }
        Ok(Made::Job(job))
    }
}

fn map<'t>(entries: &'t [Entry], path: &mut Vec<&'t str>) -> Alternatives {
    let mut lines = Vec::with_capacity(entries.len());
    let mut total: u64 = 1;
    for entry in entries {
        match entry {
            Entry::One(key, node) => {
                path.push(&key.text);
                let inner = alternatives(node, path, is_kept(path));
                path.pop();
                total = total.saturating_mul(inner.count);
                lines.push(Line::One(key.text.clone(), inner));
            }
            Entry::Zip(zip) => {
                total = total.saturating_mul(count(zip.rows.len()));
                lines.push(Line::Zip(
                    zip.keys.iter().map(|k| k.text.clone()).collect(),
                    zip.rows.clone(),
                ));
            }
        }
    }
    Alternatives {
        count: total,
        kind: Shape::Map(lines),
    }
}

fn alternatives<'t>(node: &'t Node, path: &mut Vec<&'t str>, kept: bool) -> Alternatives {
    match &node.kind {
        Kind::Scalar(value) => Alternatives {
            count: 1,
            kind: Shape::Value(value.clone()),
        },
        Kind::Template(template) => Alternatives {
            count: 1,
            kind: Shape::Template(Arc::clone(template), node.at),
        },
        Kind::Map(entries) => map(entries, path),
        Kind::List(items) if kept => {
            let items = items.iter().map(|item| kept_item(item)).collect();
            Alternatives {
                count: 1,
                kind: Shape::Kept(items),
            }
        }
        Kind::List(items) => {
            let mut total = 0u64;
            let mut choices = Vec::with_capacity(items.len());
            for item in items {
                let inner = alternatives(item, path, false);
                total = total.saturating_add(inner.count);
                choices.push((total, inner));
            }
            Alternatives {
                count: total,
                kind: Shape::Choice(choices),
            }
        }
    }
}

/// A value inside a list that stays a list.
fn kept_item(node: &Node) -> Alternatives {
    let kind = match &node.kind {
        Kind::Scalar(value) => Shape::Value(value.clone()),
        Kind::Template(template) => Shape::Template(Arc::clone(template), node.at),
        Kind::List(items) => Shape::Kept(items.iter().map(|i| kept_item(i)).collect()),
        Kind::Map(entries) => {
            let line = |entry: &Entry| match entry {
                Entry::One(key, node) => Some(Line::One(key.text.clone(), kept_item(node))),
                Entry::Zip(_) => None,
            };
            Shape::Map(entries.iter().filter_map(line).collect())
        }
    };
    Alternatives { count: 1, kind }
}

impl Alternatives {
    /// Alternative number `n`, below `count`.
    fn pick<'m>(&'m self, n: u64, path: &mut Vec<Step>, later: &mut Vec<Later<'m>>) -> Value {
        match &self.kind {
            Shape::Value(value) => value.clone(),
            Shape::Template(template, at) => {
                later.push(Later {
                    path: path.clone(),
                    template,
                    at: *at,
                });
                Value::Null
            }
            Shape::Kept(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (i, item) in items.iter().enumerate() {
                    path.push(Step::Item(i));
                    list.push(item.pick(0, path, later));
                    path.pop();
                }
                Value::Array(list)
            }
            Shape::Choice(choices) => {
                let i = choices.partition_point(|(end, _)| *end <= n);
                let Some((end, chosen)) = choices.get(i) else {
                    return Value::Null;
                };
                chosen.pick(n - (end - chosen.count), path, later)
            }
            Shape::Map(lines) => Value::Object(self.pick_map(lines, n, path, later)),
        }
    }

    fn pick_map<'m>(
        &self,
        lines: &'m [Line],
        n: u64,
        path: &mut Vec<Step>,
        later: &mut Vec<Later<'m>>,
    ) -> Spec {
        let mut job = Map::with_capacity(lines.len());
        let (mut rest, mut stride) = (n, self.count);
        for line in lines {
            // The first list turns slowest, as in loops inside each other. Counts are never 0.
            let size = match line {
                Line::One(_, inner) => inner.count,
                Line::Zip(_, rows) => count(rows.len()),
            };
            stride = stride.checked_div(size).unwrap_or(1).max(1);
            let digit = rest / stride;
            rest %= stride;
            match line {
                Line::One(key, inner) => {
                    path.push(Step::Key(key.clone()));
                    job.insert(key.clone(), inner.pick(digit, path, later));
                    path.pop();
                }
                Line::Zip(keys, rows) => {
                    let row = usize::try_from(digit).ok().and_then(|d| rows.get(d));
                    for (key, value) in keys.iter().zip(row.into_iter().flatten()) {
                        job.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        job
    }
}

fn dotted(path: &[Step]) -> String {
    let keys = path.iter().filter_map(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Item(_) => None,
    });
    keys.collect::<Vec<_>>().join(".")
}

/// Puts a computed value in its place, which [`Alternatives::pick`] made.
fn put(job: &mut Spec, path: &[Step], value: Value) {
    let Some((Step::Key(first), rest)) = path.split_first() else {
        return;
    };
    let mut place = job.get_mut(first);
    for step in rest {
        place = place.and_then(|inner| match step {
            Step::Key(key) => inner.get_mut(key),
            Step::Item(i) => inner.get_mut(*i),
        });
    }
    if let Some(place) = place {
        *place = value;
    }
}
