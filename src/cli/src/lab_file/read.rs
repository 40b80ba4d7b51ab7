//! Reads a lab file, and checks it as far as the file alone allows.

use std::{collections::BTreeSet, path::Path};

use fairlead_api::{
    AccountChange, Bounds, LimitsChange, QueueChange, QueueUsers, RetentionChange, SubmitRule,
};
use fairlead_job::{RULES_MAX, Rule, check_name};
use serde_json::{Map, Value, json};

use super::tree::{At, Node, Tree};
use crate::{amounts, exit::Failure, limits, reuse_settings::ReuseChange, table::harmless};

mod reuse;

/// All sections of a lab file.
const SECTIONS: [&str; 7] = [
    "complete",
    "queues",
    "accounts",
    "hosts",
    "retention",
    "rules",
    "reuse",
];
/// Sections that a file may declare complete.
const COMPLETE: [&str; 2] = ["queues", "accounts"];
const QUEUE: [&str; 6] = [
    "priority",
    "weight",
    "paused",
    "background_share",
    "users",
    "limits",
];
const ACCOUNT: [&str; 7] = [
    "create",
    "role",
    "vip",
    "share_results",
    "hosts",
    "groups",
    "limits",
];
const ROLES: [&str; 3] = ["admin", "user", "testbox"];
const HOST: [&str; 8] = [
    "arch", "group", "kinds", "memory", "cpus", "tags", "devices", "cordon",
];
const RULE: [&str; 3] = ["name", "if", "then"];
const LIMITS: [&str; 7] = [
    "waiting",
    "running",
    "hours",
    "shards",
    "content_mb",
    "content_day_mb",
    "results_mb",
];
/// Limits without a soft limit.
const HARD_ONLY: [&str; 4] = ["shards", "content_mb", "content_day_mb", "results_mb"];
/// Names of keys that would hold a secret.
const SECRETS: [&str; 4] = ["token", "my_token", "token_hash", "new_token"];

/// Maximum number of entries in one section.
const ENTRIES_MAX: usize = 10_000;
/// Maximum retention of jobs, months. The scheduler has the same constant.
const KEEP_MONTHS_MAX: u64 = 1_000;
/// Maximum value of a limit. The scheduler has the same constant.
const LIMIT_MAX: u64 = 1_000_000_000;
/// Maximum background share, per mille. The scheduler has the same constant.
const BACKGROUND_MAX: u16 = 500;
/// Maximum length of the reason of a closed host, characters. The scheduler has the same constant.
const REASON_MAX: usize = 300;

/// An entry of a section.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry<T> {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) wanted: T,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Account {
    pub(super) create: bool,
    pub(super) change: AccountChange,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Host {
    /// Fields of its registration, as the scheduler shows them.
    pub(super) fields: Map<String, Value>,
    pub(super) cordon: Option<Cordon>,
}

/// State of a host for new jobs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cordon {
    Open,
    /// Closed, with the reason.
    Closed(String),
}

/// Contents of a lab file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WantedLab {
    pub(super) queues: Vec<Entry<QueueChange>>,
    pub(super) accounts: Vec<Entry<Account>>,
    pub(super) hosts: Vec<Entry<Host>>,
    pub(super) retention: Option<RetentionChange>,
    /// All submit rules. `None`: not in the file.
    pub(super) rules: Option<Vec<SubmitRule>>,
    /// Settings of reuse. `None`: not in the file.
    pub(super) reuse: Option<ReuseChange>,
    /// Sections that are declared complete, each with its line.
    pub(super) complete: Vec<(String, u32)>,
}

impl WantedLab {
    /// Returns the line on which a section is declared complete.
    pub(super) fn is_complete(&self, section: &str) -> Option<u32> {
        let mut all = self.complete.iter();
        all.find(|(name, _)| name == section).map(|(_, line)| *line)
    }

    pub(super) fn has_accounts(&self) -> bool {
        !self.accounts.is_empty() || self.is_complete("accounts").is_some()
    }
}

/// Reads a lab file.
pub(crate) fn read(path: &Path) -> Result<WantedLab, Failure> {
    let at = At(path);
    lab(at, &at.read()?)
}

fn lab(at: At<'_>, file: &Node) -> Result<WantedLab, Failure> {
    let mut lab = WantedLab::default();
    for (section, node) in at.fields("lab file", file)? {
        match section.as_str() {
            "complete" => lab.complete = complete(at, node)?,
            "queues" => lab.queues = entries(at, "queues", "queue", node, queue)?,
            "accounts" => lab.accounts = entries(at, "accounts", "my_account", node, account)?,
            "hosts" => lab.hosts = entries(at, "hosts", "hostname", node, host)?,
            "retention" => lab.retention = retention(at, node)?,
            "rules" => lab.rules = Some(rules(at, node)?),
            "reuse" => lab.reuse = Some(reuse::read(at, node)?),
            other => return Err(at.unknown(other, node, &SECTIONS)),
        }
    }
    Ok(lab)
}

fn complete(at: At<'_>, node: &Node) -> Result<Vec<(String, u32)>, Failure> {
    let names = at.texts("complete", node)?;
    for name in &names {
        if !COMPLETE.contains(&name.as_str()) {
            return Err(at.refuse(
                node.line,
                format!("complete: '{}' is not valid", harmless(name)),
                format!(
                    "expected {}; hosts come and go by themselves: fairlead hosts forget",
                    COMPLETE.join(" or ")
                ),
            ));
        }
    }
    Ok(names.into_iter().map(|name| (name, node.line)).collect())
}

/// Reads the entries of a section, by name.
fn entries<T>(
    at: At<'_>,
    section: &str,
    kind: &str,
    node: &Node,
    read: impl Fn(At<'_>, &str, &Node) -> Result<T, Failure>,
) -> Result<Vec<Entry<T>>, Failure> {
    let fields = at.fields(section, node)?;
    if fields.len() > ENTRIES_MAX {
        return Err(at.refuse(
            node.line,
            format!(
                "{section} has {} entries; the limit is {ENTRIES_MAX}",
                fields.len()
            ),
            "divide the file",
        ));
    }
    let entry = |(name, node): &(String, Node)| {
        check_name(kind, name)
            .map_err(|error| at.refuse(node.line, format!("{section}: {error}"), error.hint))?;
        Ok(Entry {
            name: name.clone(),
            line: node.line,
            wanted: read(at, name, node)?,
        })
    };
    fields.iter().map(entry).collect()
}

fn queue(at: At<'_>, name: &str, node: &Node) -> Result<QueueChange, Failure> {
    let mut change = QueueChange::default();
    for (key, value) in at.fields(name, node)? {
        match key.as_str() {
            "priority" => change.priority = narrow(at.number(key, value, 0..=9)?),
            "weight" => change.weight = narrow(at.number(key, value, 1..=10_000)?),
            "paused" => change.paused = Some(at.yes_or_no(key, value)?),
            "background_share" => change.background_permille = Some(share(at, key, value)?),
            "users" => change.users = Some(users(at, key, value)?),
            "limits" => change.limits = limits_of(at, value)?,
            other => return Err(at.unknown(other, value, &QUEUE)),
        }
    }
    if change == QueueChange::default() {
        let hint = format!("give it one of {}", QUEUE.join(", "));
        return Err(at.refuse(node.line, format!("queue '{name}' says nothing"), hint));
    }
    Ok(change)
}

fn narrow<T: TryFrom<u64>>(number: u64) -> Option<T> {
    T::try_from(number).ok()
}

fn share(at: At<'_>, key: &str, node: &Node) -> Result<u16, Failure> {
    let expected = "a share such as 5% or 2.5%, at most 50%";
    let text = at.text(key, node, expected)?;
    let share = amounts::permille(&text).ok();
    let share = share.filter(|share| *share <= BACKGROUND_MAX);
    share.ok_or_else(|| at.bad(key, node, expected))
}

fn users(at: At<'_>, key: &str, node: &Node) -> Result<QueueUsers, Failure> {
    match node.word().and_then(Value::as_str) {
        Some("own") => return Ok(QueueUsers::Own),
        Some("all") => return Ok(QueueUsers::All),
        _ => {}
    }
    let names: BTreeSet<String> = at.texts(key, node)?.into_iter().collect();
    for name in &names {
        check_name(key, name)
            .map_err(|error| at.refuse(node.line, error.to_string(), error.hint))?;
    }
    if names.is_empty() {
        return Err(at.bad(key, node, "own, all or a list of accounts"));
    }
    Ok(QueueUsers::Named(names.into_iter().collect()))
}

fn limits_of(at: At<'_>, node: &Node) -> Result<LimitsChange, Failure> {
    let mut change = LimitsChange::default();
    for (key, value) in at.fields("limits", node)? {
        let place = match key.as_str() {
            "waiting" => &mut change.waiting,
            "running" => &mut change.running,
            "hours" => &mut change.hours,
            "shards" => &mut change.shards,
            "content_mb" => &mut change.content_mb,
            "content_day_mb" => &mut change.content_day_mb,
            "results_mb" => &mut change.results_mb,
            other => return Err(at.unknown(other, value, &LIMITS)),
        };
        let bounds = bounds(at, key, value)?;
        if HARD_ONLY.contains(&key.as_str()) && bounds.soft.is_some() {
            return Err(at.bad(key, value, "a hard limit alone: it has no soft one"));
        }
        *place = Some(bounds);
    }
    Ok(change)
}

/// Parses `100`, `none`, `soft=5,hard=9`, or `{soft: 5, hard: 9}`.
fn bounds(at: At<'_>, key: &str, node: &Node) -> Result<Bounds, Failure> {
    let expected = "N, none, or {soft: N, hard: M} with N at most M and M at most 1000000000";
    let bad = || at.bad(key, node, expected);
    let bounds = match &node.tree {
        Tree::Map(fields) => {
            let mut bounds = Bounds::default();
            for (kind, value) in fields {
                let number = Some(at.number(kind, value, 0..=LIMIT_MAX)?);
                match kind.as_str() {
                    "soft" => bounds.soft = number,
                    "hard" => bounds.hard = number,
                    other => return Err(at.unknown(other, value, &["soft", "hard"])),
                }
            }
            bounds
        }
        Tree::Word(Value::String(text)) => limits::bounds(text).map_err(|_| bad())?,
        Tree::Word(value) => Bounds {
            hard: Some(value.as_u64().ok_or_else(bad)?),
            soft: None,
        },
        Tree::List(_) => return Err(bad()),
    };
    let is_over = bounds.soft.max(bounds.hard).is_some_and(|n| n > LIMIT_MAX);
    let is_upside_down = matches!((bounds.soft, bounds.hard), (Some(s), Some(h)) if s > h);
    if is_over || is_upside_down {
        return Err(bad());
    }
    Ok(bounds)
}

fn account(at: At<'_>, name: &str, node: &Node) -> Result<Account, Failure> {
    let mut account = Account::default();
    let change = &mut account.change;
    for (key, value) in at.fields(name, node)? {
        match key.as_str() {
            "create" => account.create = at.yes_or_no(key, value)?,
            "role" => {
                let role = at.text(key, value, "admin, user or testbox")?;
                if !ROLES.contains(&role.as_str()) {
                    return Err(at.bad(key, value, "admin, user or testbox"));
                }
                change.role = Some(role);
            }
            "vip" => change.vip = Some(at.yes_or_no(key, value)?),
            "share_results" => change.share_results = Some(at.yes_or_no(key, value)?),
            "hosts" => change.hosts = Some(at.texts(key, value)?),
            "groups" => change.groups = Some(at.texts(key, value)?),
            "limits" => change.limits = limits_of(at, value)?,
            secret if SECRETS.contains(&secret) => {
                let message = format!("account '{name}': a lab file holds no tokens");
                let hint = "remove the key; `fairlead apply` shows the token of a new account, or writes it with --tokens DIR";
                return Err(at.refuse(value.line, message, hint));
            }
            other => return Err(at.unknown(other, value, &ACCOUNT)),
        }
    }
    Ok(account)
}

fn host(at: At<'_>, name: &str, node: &Node) -> Result<Host, Failure> {
    let mut host = Host::default();
    for (key, value) in at.fields(name, node)? {
        let (field, said) = match key.as_str() {
            "arch" | "group" => (key.as_str(), json!(at.text(key, value, "a text")?)),
            "kinds" => {
                let kinds = at.texts(key, value)?;
                if kinds
                    .iter()
                    .any(|kind| !["hw", "vm", "dc"].contains(&kind.as_str()))
                {
                    return Err(at.bad(key, value, "hw, vm or dc, or a list of them"));
                }
                (key.as_str(), sorted(kinds))
            }
            "tags" | "devices" => (key.as_str(), sorted(at.texts(key, value)?)),
            "memory" => {
                let amount = node_memory(value);
                let expected = "an amount of memory, for example 64g";
                (
                    "memory_mb",
                    json!(amount.ok_or_else(|| at.bad(key, value, expected))?),
                )
            }
            "cpus" => (key.as_str(), json!(at.number(key, value, 1..=65_536)?)),
            "cordon" => {
                host.cordon = Some(cordon(at, value)?);
                continue;
            }
            other => return Err(at.unknown(other, value, &HOST)),
        };
        host.fields.insert(field.to_owned(), said);
    }
    Ok(host)
}

fn retention(at: At<'_>, node: &Node) -> Result<Option<RetentionChange>, Failure> {
    let mut change = None;
    for (key, value) in at.fields("retention", node)? {
        let keep_months = match (key.as_str(), value.word().and_then(Value::as_str)) {
            ("keep_months", Some("none")) => None,
            ("keep_months", _) => narrow(at.number(key, value, 0..=KEEP_MONTHS_MAX)?),
            (other, _) => return Err(at.unknown(other, value, &["keep_months"])),
        };
        change = Some(RetentionChange { keep_months });
    }
    Ok(change)
}

/// Reads the rules as a list, because their order matters: the first rule that a job meets changes it.
fn rules(at: At<'_>, node: &Node) -> Result<Vec<SubmitRule>, Failure> {
    let items = match &node.tree {
        Tree::List(items) => items.as_slice(),
        Tree::Word(Value::Null) => &[],
        Tree::Word(_) | Tree::Map(_) => {
            return Err(at.bad("rules", node, "a list of {name, if, then}"));
        }
    };
    if items.len() > RULES_MAX {
        let message = format!("{} rules; the limit is {RULES_MAX}", items.len());
        return Err(at.refuse(node.line, message, "join conditions with or"));
    }
    let mut rules: Vec<SubmitRule> = Vec::new();
    for item in items {
        let rule = rule(at, item)?;
        if rules.iter().any(|other| other.name == rule.name) {
            let message = format!("rule '{}' is there twice", rule.name);
            return Err(at.refuse(item.line, message, "give each rule a name of its own"));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn rule(at: At<'_>, node: &Node) -> Result<SubmitRule, Failure> {
    let mut rule = SubmitRule::default();
    let mut line = node.line;
    for (key, value) in at.fields("rules", node)? {
        match key.as_str() {
            "name" => rule.name = at.text(key, value, "a name")?,
            "if" => {
                line = value.line;
                rule.condition = at.text(key, value, "an expression in quotes")?;
            }
            "then" => match value.value() {
                Value::Object(then) => rule.then = then,
                _ => return Err(at.bad(key, value, "a map of fields, such as {queue: nightly}")),
            },
            other => return Err(at.unknown(other, value, &RULE)),
        }
    }
    for (key, is_missing) in [
        ("name", rule.name.is_empty()),
        ("if", rule.condition.is_empty()),
    ] {
        if is_missing {
            let hint = "write {name: NAME, if: EXPRESSION, then: {queue: QUEUE}}";
            return Err(at.refuse(node.line, format!("a rule without {key}"), hint));
        }
    }
    Rule::read(&rule.name, &rule.condition, &rule.then)
        .map_err(|error| at.refuse(line, &error.message, error.hint))?;
    Ok(rule)
}

fn sorted(texts: Vec<String>) -> Value {
    let texts: BTreeSet<String> = texts.into_iter().collect();
    json!(texts)
}

fn node_memory(node: &Node) -> Option<u32> {
    fairlead_job::units::memory_mb(node.word()?).ok()
}

/// Reads a cordon: a reason, or false.
fn cordon(at: At<'_>, node: &Node) -> Result<Cordon, Failure> {
    let expected = "false, or the reason in at most 300 characters";
    match node.word() {
        Some(Value::Bool(false)) => Ok(Cordon::Open),
        Some(Value::String(reason)) if (1..=REASON_MAX).contains(&reason.chars().count()) => {
            Ok(Cordon::Closed(reason.clone()))
        }
        _ => Err(at.bad("cordon", node, expected)),
    }
}

#[cfg(test)]
mod tests;
