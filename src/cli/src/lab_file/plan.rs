//! How the lab differs from its file. Pure: it compares what was read, and asks nobody.

use fairlead_api::{
    AccountChange, AccountView, HostClose, HostView, QueueChange, QueueUsers, QueueView,
    ReuseSettings, SubmitRule, SubmitRules, SuiteReuse,
};
use serde_json::{Map, json};

use super::{
    difference::{Change, Fields, Request, removed},
    read::{Account, Cordon, Entry, Host, WantedLab},
};
use crate::reuse_settings::{ReuseChange, words_of};

/// Present state of a lab.
#[derive(Debug, Default)]
pub(crate) struct Present {
    pub(super) queues: Vec<QueueView>,
    pub(super) accounts: Vec<AccountView>,
    pub(super) hosts: Vec<HostView>,
    pub(super) rules: Vec<SubmitRule>,
    pub(super) keep_months: Option<u32>,
    pub(super) reuse: ReuseSettings,
}

/// Returns the changes in their order. Accounts come first, because queues name them.
pub(crate) fn plan(lab: &WantedLab, present: &Present) -> Vec<Change> {
    let accounts = lab.accounts.iter().filter_map(|entry| {
        let mut known = present.accounts.iter();
        account(
            entry,
            known.find(|account| account.my_account == entry.name),
        )
    });
    let queues = lab.queues.iter().filter_map(|entry| {
        let mut known = present.queues.iter().filter(|queue| queue.set);
        queue(entry, known.find(|queue| queue.name == entry.name))
    });
    let hosts = lab.hosts.iter().flat_map(|entry| {
        let mut known = present.hosts.iter();
        host(entry, known.find(|host| host.hostname == entry.name))
    });
    let mut changes: Vec<Change> = accounts.chain(queues).chain(hosts).collect();
    if let Some(wanted) = &lab.retention {
        let request = Request::SetRetention(wanted.clone());
        let mut fields = Fields::default();
        fields.differs("keep_months", present.keep_months, wanted.keep_months);
        changes.extend(fields.change("retention", "jobs", request));
    }
    if let Some(wanted) = &lab.rules {
        changes.extend(rules(wanted, &present.rules));
    }
    if let Some(wanted) = &lab.reuse {
        changes.extend(reuse(wanted, &present.reuse));
    }
    changes.extend(removals(lab, present));
    changes
}

/// Returns the removals of entries that a complete section does not name.
fn removals(lab: &WantedLab, present: &Present) -> Vec<Change> {
    let mut changes = Vec::new();
    if lab.is_complete("queues").is_some() {
        let is_said = |queue: &&QueueView| lab.queues.iter().any(|e| e.name == queue.name);
        let gone = present.queues.iter().filter(|queue| queue.set);
        changes.extend(gone.filter(|queue| !is_said(queue)).map(|queue| {
            let fields = vec![
                ("priority", json!(queue.priority)),
                ("weight", json!(queue.weight)),
            ];
            removed("queue", &queue.name, fields, Request::DeleteQueue)
        }));
    }
    if lab.is_complete("accounts").is_some() {
        let is_said =
            |account: &&AccountView| lab.accounts.iter().any(|e| e.name == account.my_account);
        let gone = present.accounts.iter();
        changes.extend(gone.filter(|account| !is_said(account)).map(|account| {
            let fields = vec![("role", json!(account.role))];
            removed(
                "account",
                &account.my_account,
                fields,
                Request::DeleteAccount,
            )
        }));
    }
    changes
}

fn account(entry: &Entry<Account>, known: Option<&AccountView>) -> Option<Change> {
    let blank = AccountView::default();
    let (said, old) = (&entry.wanted.change, known.unwrap_or(&blank));
    let mut fields = Fields::of(known.is_none());
    let sorted = |names: &Vec<String>| {
        let mut names = names.clone();
        names.sort_unstable();
        names
    };
    let hosts = said.hosts.as_ref().map(sorted);
    let groups = said.groups.as_ref().map(sorted);
    let change = AccountChange {
        role: fields.option("role", &old.role, said.role.as_ref()),
        hosts: fields.option("hosts", &sorted(&old.hosts), hosts.as_ref()),
        groups: fields.option("groups", &sorted(&old.groups), groups.as_ref()),
        vip: fields.option("vip", &old.vip, said.vip.as_ref()),
        share_results: fields.option(
            "share_results",
            &old.share_results,
            said.share_results.as_ref(),
        ),
        limits: fields.limits(&old.limits, &said.limits),
        ..AccountChange::default()
    };
    fields.change("account", &entry.name, Request::SetAccount(change))
}

/// Returns a queue's users in the form of the file. A built-in queue never has users of its own.
fn users_of(queue: &QueueView) -> Option<QueueUsers> {
    let is_unsaid = !queue.warning.is_empty();
    let built_in = (!is_unsaid).then_some(QueueUsers::Own);
    queue.users.clone().or(built_in)
}

fn queue(entry: &Entry<QueueChange>, known: Option<&QueueView>) -> Option<Change> {
    let said = &entry.wanted;
    let mut fields = Fields::of(known.is_none());
    let old_limits = known.map(|queue| queue.limits).unwrap_or_default();
    let priority = known.map(|queue| queue.priority);
    let weight = known.map(|queue| queue.weight);
    let paused = known.map(|queue| queue.paused);
    let share = known.map(|queue| queue.background_permille);
    let users = known.and_then(users_of);
    let percent = |share: u16| format!("{}.{}%", share / 10, share % 10);
    let mut change = QueueChange {
        priority: said
            .priority
            .filter(|new| fields.differs("priority", priority, new)),
        weight: said
            .weight
            .filter(|new| fields.differs("weight", weight, new)),
        paused: said
            .paused
            .filter(|new| fields.differs("paused", paused, new)),
        ..QueueChange::default()
    };
    change.background_permille = said
        .background_permille
        .filter(|new| fields.differs("background_share", share.map(percent), percent(*new)));
    change.users = said
        .users
        .clone()
        .filter(|new| fields.differs("users", users, new));
    change.limits = fields.limits(&old_limits, &said.limits);
    fields.change("queue", &entry.name, Request::SetQueue(change))
}

/// Returns the changes of a host: its registration and its cordon, which are two requests.
fn host(entry: &Entry<Host>, known: Option<&HostView>) -> Vec<Change> {
    let mut fields = Fields::of(known.is_none());
    let registered = known
        .and_then(|host| host.registered.clone())
        .unwrap_or_default();
    let mut body = Map::new();
    for (field, new) in &entry.wanted.fields {
        let sorted = |texts: &[String]| {
            let mut texts = texts.to_vec();
            texts.sort_unstable();
            json!(texts)
        };
        let old = known.map(|host| match field.as_str() {
            "arch" => ("arch", json!(host.arch)),
            "group" => ("group", json!(host.group)),
            "kinds" => ("kinds", sorted(&host.kinds)),
            "memory_mb" => ("memory_mb", json!(host.memory_mb)),
            "cpus" => ("cpus", json!(host.cpus)),
            "tags" => ("tags", sorted(&registered.tags)),
            _ => ("devices", sorted(&registered.devices)),
        });
        let name = name_of(field);
        if fields.differs(name, old.map(|(_, old)| old), new) {
            body.insert(field.clone(), new.clone());
        }
    }
    let registers = fields.change("host", &entry.name, Request::RegisterHost(body));
    let closed = entry
        .wanted
        .cordon
        .as_ref()
        .and_then(|wanted| cordon(&entry.name, wanted, known));
    registers.into_iter().chain(closed).collect()
}

/// Returns the changes of the rules. They are one ordered list, so one request replaces all of them.
fn rules(wanted: &[SubmitRule], known: &[SubmitRule]) -> Vec<Change> {
    let place = |rules: &[SubmitRule], name: &str| {
        let place = rules.iter().position(|rule| rule.name == name);
        place.map(|place| place + 1)
    };
    let mut changes: Vec<Change> = Vec::new();
    for rule in wanted {
        let old = known.iter().find(|old| old.name == rule.name);
        let mut fields = Fields::of(old.is_none());
        let (at, was) = (place(wanted, &rule.name), place(known, &rule.name));
        // A rule that only moved up because another one was removed keeps its order.
        let before = |rules: &[SubmitRule], among: &[SubmitRule]| -> Vec<String> {
            let names = rules.iter().map(|rule| rule.name.clone());
            let names = names.take_while(|name| *name != rule.name);
            names.filter(|name| place(among, name).is_some()).collect()
        };
        let has_moved = old.is_some() && before(wanted, known) != before(known, wanted);
        if old.is_none() || has_moved {
            fields.differs("place", was, at);
        }
        fields.differs("if", old.map(|old| &old.condition), &rule.condition);
        fields.differs("then", old.map(|old| &old.then), &rule.then);
        changes.extend(fields.change("rule", &rule.name, Request::SetRules(None)));
    }
    let gone = known
        .iter()
        .filter(|old| place(wanted, &old.name).is_none());
    changes.extend(gone.map(|old| {
        let fields = vec![("if", json!(old.condition)), ("then", json!(old.then))];
        removed("rule", &old.name, fields, Request::SetRules(None))
    }));
    if let Some(first) = changes.first_mut() {
        first.request = Request::SetRules(Some(SubmitRules {
            rules: wanted.to_vec(),
        }));
    }
    changes
}

/// Returns the change of reuse. One request replaces all settings, so it also contains those that the file does not
/// name.
fn reuse(wanted: &ReuseChange, known: &ReuseSettings) -> Option<Change> {
    let after = wanted.of(known);
    let words = |suites: &[SuiteReuse]| suites.iter().map(words_of).collect::<Vec<_>>();
    let mut fields = Fields::default();
    fields.differs("salt", &known.salt, &after.salt);
    fields.differs("audit_percent", known.audit_percent, after.audit_percent);
    fields.differs("performance", &known.performance, &after.performance);
    fields.differs("suites", words(&known.suites), words(&after.suites));
    fields.change("reuse", "results", Request::SetReuse(after))
}

fn name_of(field: &str) -> &'static str {
    let known = [
        "arch",
        "group",
        "kinds",
        "memory_mb",
        "cpus",
        "tags",
        "devices",
    ];
    known.into_iter().find(|name| *name == field).unwrap_or("")
}

/// Returns the change of a cordon. A suspect host is opened by its health check, not by a file.
fn cordon(name: &str, wanted: &Cordon, known: Option<&HostView>) -> Option<Change> {
    let wanted = match wanted {
        Cordon::Open => None,
        Cordon::Closed(reason) => Some(reason.as_str()),
    };
    let closed = known.and_then(|host| host.closed.as_ref());
    let closed = closed.filter(|closed| closed.how != "suspect");
    let old = closed.map(|closed| closed.reason.as_str());
    if old == wanted {
        return None;
    }
    let request = wanted.map_or(Request::Uncordon, |reason| {
        Request::Cordon(HostClose {
            reason: reason.to_owned(),
            drain: closed.is_some_and(|closed| closed.how == "drain"),
        })
    });
    let mut fields = Fields::default();
    fields.differs("cordon", old, wanted);
    fields.change("host", name, request)
}

#[cfg(test)]
mod tests;
