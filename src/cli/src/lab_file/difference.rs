//! A difference between the lab and its file: its fields, its line for people, and the request that removes it.

use fairlead_api::{
    AccountChange, Bounds, HostClose, Limits, LimitsChange, QueueChange, RetentionChange,
    ReuseSettings, SubmitRules,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{limits, table::harmless};

/// Kind of a change of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Act {
    Add,
    Change,
    Remove,
}

/// A field that changes its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FieldChange {
    pub(super) field: &'static str,
    pub(super) old: Value,
    pub(super) new: Value,
}

/// Request that carries out a change.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    SetQueue(QueueChange),
    DeleteQueue,
    SetAccount(AccountChange),
    DeleteAccount,
    RegisterHost(Map<String, Value>),
    Cordon(HostClose),
    Uncordon,
    SetRetention(RetentionChange),
    /// Sets all rules at once, with the first change of one. The other changes are only shown.
    SetRules(Option<SubmitRules>),
    SetReuse(ReuseSettings),
}

/// One difference, and the request that removes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Change {
    pub(super) act: Act,
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) fields: Vec<FieldChange>,
    #[serde(skip)]
    pub(super) request: Request,
}

impl Change {
    /// Returns one line for people.
    pub(crate) fn words(&self) -> String {
        let sign = match self.act {
            Act::Add => '+',
            Act::Change => '~',
            Act::Remove => '-',
        };
        let field = |change: &FieldChange| {
            let (field, old, new) = (change.field, shown(&change.old), shown(&change.new));
            match self.act {
                Act::Add => format!("{field} {new}"),
                Act::Change => format!("{field} {old} -> {new}"),
                Act::Remove => format!("{field} {old}"),
            }
        };
        let fields: Vec<String> = self.fields.iter().map(field).collect();
        let colon = if fields.is_empty() { "" } else { ": " };
        format!(
            "{sign} {} {}{colon}{}",
            self.kind,
            harmless(&self.name),
            fields.join("; ")
        )
    }

    /// Returns true if it creates an account, which gets a token.
    pub(crate) fn is_new_account(&self) -> bool {
        self.act == Act::Add && self.kind == "account"
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    harmless(&text)
}

/// Collects the differing fields of an entry.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) is_new: bool,
    found: Vec<FieldChange>,
}

impl Fields {
    pub(super) fn of(is_new: bool) -> Self {
        Self {
            is_new,
            ..Self::default()
        }
    }

    /// Returns true if a field must change. For a new entry all given fields are shown.
    pub(super) fn differs(
        &mut self,
        field: &'static str,
        old: impl Serialize,
        new: impl Serialize,
    ) -> bool {
        let (old, new) = (json!(old), json!(new));
        let differs = old != new;
        if differs || self.is_new {
            self.found.push(FieldChange { field, old, new });
        }
        differs || self.is_new
    }

    pub(super) fn option<T: Serialize + Clone>(
        &mut self,
        field: &'static str,
        old: &T,
        new: Option<&T>,
    ) -> Option<T> {
        let new = new?;
        self.differs(field, old, new).then(|| new.clone())
    }

    pub(super) fn limits(&mut self, old: &Limits, new: &LimitsChange) -> LimitsChange {
        let mut one = |field, old: Bounds, new: Option<Bounds>| {
            let new = new?;
            let differs = self.differs(field, limits::words_of(old), limits::words_of(new));
            differs.then_some(new)
        };
        LimitsChange {
            waiting: one("limits.waiting", old.waiting, new.waiting),
            running: one("limits.running", old.running, new.running),
            hours: one("limits.hours", old.hours, new.hours),
            shards: one("limits.shards", old.shards, new.shards),
            content_mb: one("limits.content_mb", old.content_mb, new.content_mb),
            content_day_mb: one(
                "limits.content_day_mb",
                old.content_day_mb,
                new.content_day_mb,
            ),
            results_mb: one("limits.results_mb", old.results_mb, new.results_mb),
        }
    }

    pub(super) fn change(self, kind: &'static str, name: &str, request: Request) -> Option<Change> {
        let is_needed = self.is_new || !self.found.is_empty();
        is_needed.then(|| Change {
            act: if self.is_new { Act::Add } else { Act::Change },
            kind,
            name: name.to_owned(),
            fields: self.found,
            request,
        })
    }
}

/// Returns the removal of an entry, with the fields that matter to people.
pub(super) fn removed(
    kind: &'static str,
    name: &str,
    fields: Vec<(&'static str, Value)>,
    request: Request,
) -> Change {
    let gone = |(field, old)| FieldChange {
        field,
        old,
        new: Value::Null,
    };
    Change {
        act: Act::Remove,
        kind,
        name: name.to_owned(),
        fields: fields.into_iter().map(gone).collect(),
        request,
    }
}
