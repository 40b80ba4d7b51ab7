//! A condition on a job, and whether the job meets it.

use std::{borrow::Cow, cmp::Ordering};

use regex::Regex;

use crate::{JobFields, Spec, params::flat};

/// Longest expression, bytes.
pub const EXPRESSION_BYTES_MAX: usize = 1000;
/// Levels of parentheses and `not` inside each other.
pub const DEPTH_MAX: usize = 32;

/// Prefix of the name of a parameter.
pub(super) const PARAMETER: &str = "param.";

/// Fields of a job that an expression may look at.
pub(super) const FIELDS: [&str; 8] = [
    "suite", "account", "queue", "testbox", "kind", "arch", "priority", "tags",
];

/// A condition.
#[derive(Debug, Clone)]
pub struct Expression(pub(super) Node);

#[derive(Debug, Clone)]
pub(super) enum Node {
    Equal(Field, String),
    Unequal(Field, String),
    Match(Field, Regex),
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    Known(&'static str),
    Parameter(String),
}

/// A job as expressions see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<'j> {
    pub(super) spec: &'j Spec,
    pub(super) fields: &'j JobFields,
    /// Submitting account.
    pub(super) account: &'j str,
}

impl Job<'_> {
    /// The values of a field; none: the job does not have it.
    fn values(&self, field: &Field) -> Vec<Cow<'_, str>> {
        let fields = self.fields;
        let one = match field {
            Field::Known("suite") => fields.suite.as_str().into(),
            Field::Known("account") => self.account.into(),
            Field::Known("queue") if fields.queue.is_empty() => self.account.into(),
            Field::Known("queue") => fields.queue.as_str().into(),
            Field::Known("testbox") => fields.testbox.as_str().into(),
            Field::Known("kind") => fields.tbox_type.as_str().into(),
            Field::Known("arch") => fields.arch.as_str().into(),
            Field::Known("priority") => fields.priority.to_string().into(),
            Field::Known(_) => {
                return fields.tags.iter().map(|tag| tag.as_str().into()).collect();
            }
            Field::Parameter(path) => {
                let first = path.split('.').next().unwrap_or_default();
                let all = flat(self.spec, |key| key == first).into_iter();
                let found = all.filter(|(key, _)| key == path);
                return found.map(|(_, value)| value.into()).collect();
            }
        };
        vec![one]
    }
}

impl Node {
    pub(super) fn holds(&self, job: Job<'_>) -> bool {
        let any = |field: &Field, is: &dyn Fn(&str) -> bool| {
            job.values(field).iter().any(|value| is(value))
        };
        match self {
            Self::Equal(field, value) => any(field, &|its| compare_values(its, value).is_eq()),
            Self::Unequal(field, value) => !any(field, &|its| compare_values(its, value).is_eq()),
            Self::Match(field, pattern) => any(field, &|its| pattern.is_match(its)),
            Self::All(nodes) => nodes.iter().all(|node| node.holds(job)),
            Self::Any(nodes) => nodes.iter().any(|node| node.holds(job)),
            Self::Not(node) => !node.holds(job),
        }
    }
}

impl Expression {
    /// Returns true if a job of this account meets it. Fields that a job lacks meet only `!=`.
    pub fn holds(&self, spec: &Spec, fields: &JobFields, account: &str) -> bool {
        self.0.holds(Job {
            spec,
            fields,
            account,
        })
    }
}

/// As numbers if both are, else as texts.
pub fn compare_values(left: &str, right: &str) -> Ordering {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left.total_cmp(&right),
        _ => left.cmp(right),
    }
}
