//! Evaluates a `{{ }}` for one combination.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value};

use super::{
    at::At,
    budget::Budget,
    error::printable,
    limits::{TEMPLATE_OPERAND_BYTES_MAX, TEMPLATE_RESULT_BYTES_MAX},
    pattern::Pattern,
    template::{Expr, Piece, Template},
};

/// Scope in which a template is computed.
pub(crate) struct Scope<'a> {
    /// The job, all its lists chosen.
    pub(crate) job: &'a Map<String, Value>,
    /// Paths of templates that are not computed yet, dotted.
    pub(crate) later: &'a BTreeSet<String>,
    /// Work left for its patterns.
    pub(crate) budget: &'a Budget,
}

/// Why a template has no value.
#[derive(Debug)]
pub(crate) struct NoValue {
    pub(crate) at: At,
    pub(crate) message: String,
}

/// Values are borrowed: looking at a large one costs nothing.
type Computed<'a> = Result<Cow<'a, Value>, NoValue>;

impl<'a> Scope<'a> {
    /// The value of a template; `None` is nil. A template that is the whole text keeps its type.
    pub(crate) fn value(&self, template: &'a Template) -> Result<Option<Value>, NoValue> {
        if let [Piece::Expr(expr, at)] = template.pieces.as_slice() {
            let value = self.scalar(expr, *at)?.into_owned();
            return Ok(Some(value).filter(|v| !v.is_null()));
        }
        let mut text = String::new();
        for piece in &template.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Expr(expr, at) => {
                    match self.scalar(expr, *at)?.as_ref() {
                        Value::Null => return Ok(None),
                        Value::String(part) => text.push_str(part),
                        other => text.push_str(&other.to_string()),
                    }
                    if text.len() > TEMPLATE_RESULT_BYTES_MAX {
                        let message = format!(
                            "the text becomes longer than {TEMPLATE_RESULT_BYTES_MAX} bytes"
                        );
                        return Err(NoValue { at: *at, message });
                    }
                }
            }
        }
        Ok(Some(Value::String(text)))
    }

    fn scalar(&self, expr: &'a Expr, at: At) -> Computed<'a> {
        let value = self.eval(expr)?;
        if value.is_array() || value.is_object() {
            let message =
                "the template gives a map or a list, and not text, a number or a bool".to_owned();
            return Err(NoValue { at, message });
        }
        Ok(value)
    }

    fn eval(&self, expr: &'a Expr) -> Computed<'a> {
        match expr {
            Expr::Literal(value) => Ok(Cow::Borrowed(value)),
            Expr::Path(path, at) => self.look_up(path, *at),
            Expr::Equal(left, right) => {
                let equal = same(&*self.eval(left)?, &*self.eval(right)?);
                Ok(Cow::Owned(Value::Bool(equal)))
            }
            Expr::Match(value, pattern, at) => self.matches(&*self.eval(value)?, pattern, *at),
            Expr::Or(all) => {
                let mut last = NIL;
                for expr in all {
                    last = self.eval(expr)?;
                    if truthy(&last) {
                        break;
                    }
                }
                Ok(last)
            }
            Expr::If(arms, otherwise) => {
                for (condition, value) in arms {
                    if truthy(&*self.eval(condition)?) {
                        return self.eval(value);
                    }
                }
                self.eval(otherwise)
            }
            Expr::Case(subject, arms, otherwise) => {
                let subject = self.eval(subject)?;
                for (alternatives, value) in arms {
                    for alternative in alternatives {
                        if same(&subject, &*self.eval(alternative)?) {
                            return self.eval(value);
                        }
                    }
                }
                self.eval(otherwise)
            }
        }
    }

    /// Computes if a pattern is found in a value as it is written. Nil holds nothing.
    fn matches(&self, value: &Value, pattern: &Pattern, at: At) -> Computed<'a> {
        let text = match value {
            Value::Null => return Ok(Cow::Owned(Value::Bool(false))),
            Value::String(text) => Cow::Borrowed(text.as_str()),
            Value::Bool(_) | Value::Number(_) => Cow::Owned(value.to_string()),
            Value::Array(_) | Value::Object(_) => {
                let message = "a map or a list where '=~' needs text, a number or a bool";
                return Err(NoValue {
                    at,
                    message: message.to_owned(),
                });
            }
        };
        match pattern.is_in(&text, self.budget) {
            Some(is_in) => Ok(Cow::Owned(Value::Bool(is_in))),
            None => Err(NoValue {
                at,
                message: format!(
                    "'=~' on '{}': the patterns of all jobs together take too long",
                    printable(&text, 60)
                ),
            }),
        }
    }

    /// The value at a path; nil when there is none. A path through text or a number is an error, because
    /// it is a method call such as `fs.upcase`.
    fn look_up(&self, path: &[String], at: At) -> Computed<'a> {
        let dotted = path.join(".");
        if self.later.contains(&dotted) {
            let message =
                format!("'{dotted}' is itself a template that is not computed before this one");
            return Err(NoValue { at, message });
        }
        let Some((first, rest)) = path.split_first() else {
            return Ok(NIL);
        };
        let Some(mut found) = self.job.get(first) else {
            return Ok(NIL);
        };
        for key in rest {
            found = match found {
                Value::Object(map) => match map.get(key) {
                    Some(inner) => inner,
                    None => return Ok(NIL),
                },
                Value::Null => return Ok(NIL),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    let message = format!("there is no '{key}' in '{dotted}': only maps have keys");
                    return Err(NoValue { at, message });
                }
            };
        }
        match found.as_str() {
            Some(text) if text.len() > TEMPLATE_OPERAND_BYTES_MAX => {
                let message =
                    format!("'{dotted}' is longer than {TEMPLATE_OPERAND_BYTES_MAX} bytes");
                Err(NoValue { at, message })
            }
            _ => Ok(Cow::Borrowed(found)),
        }
    }
}

const NIL: Cow<'_, Value> = Cow::Owned(Value::Null);

fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// Equal as values: numbers by size, all else by type and content. Maps and lists equal nothing.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(l), Value::Number(r)) => {
            l == r || (l.is_f64() != r.is_f64() && l.as_f64() == r.as_f64())
        }
        (Value::Array(_) | Value::Object(_), _) => false,
        _ => left == right,
    }
}
