//! How the lab differs from its file. Pure: it compares what was read, and asks nobody.

use fairlead_api::{
    AccountChange, AccountView, Bounds, HostClose, HostView, Limits, LimitsChange, QueueChange,
    QueueUsers, QueueView,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::read::{Account, Entry, Host, Lab};
use crate::{limits, table::harmless};

/// What becomes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Act {
    Add,
    Change,
    Remove,
}

/// A field that gets another value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FieldChange {
    field: &'static str,
    old: Value,
    new: Value,
}

/// The request that does it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    SetQueue(QueueChange),
    DeleteQueue,
    SetAccount(AccountChange),
    DeleteAccount,
    RegisterHost(Map<String, Value>),
    Cordon(HostClose),
    Uncordon,
}

/// One difference, and what removes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Change {
    pub(super) act: Act,
    pub(super) kind: &'static str,
    pub(super) name: String,
    fields: Vec<FieldChange>,
    #[serde(skip)]
    pub(super) request: Request,
}

impl Change {
    /// One line for people.
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

    /// Whether it makes an account, which gets a token.
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

/// Collects the fields of an entry that differ.
#[derive(Default)]
struct Fields {
    is_new: bool,
    found: Vec<FieldChange>,
}

impl Fields {
    /// Whether a field is to change. Of a new entry all that is said is shown.
    fn differs(&mut self, field: &'static str, old: impl Serialize, new: impl Serialize) -> bool {
        let (old, new) = (json!(old), json!(new));
        let differs = old != new;
        if differs || self.is_new {
            self.found.push(FieldChange { field, old, new });
        }
        differs || self.is_new
    }

    fn option<T: Serialize + Clone>(
        &mut self,
        field: &'static str,
        old: &T,
        new: Option<&T>,
    ) -> Option<T> {
        let new = new?;
        self.differs(field, old, new).then(|| new.clone())
    }

    fn limits(&mut self, old: &Limits, new: &LimitsChange) -> LimitsChange {
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
        }
    }

    fn change(self, kind: &'static str, name: &str, request: Request) -> Option<Change> {
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

fn removed(
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

/// A lab as it is.
#[derive(Debug, Default)]
pub(crate) struct Present {
    pub(super) queues: Vec<QueueView>,
    pub(super) accounts: Vec<AccountView>,
    pub(super) hosts: Vec<HostView>,
}

/// What is to be done, in this order: accounts first, since queues name them.
pub(crate) fn plan(lab: &Lab, present: &Present) -> Vec<Change> {
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
    changes.extend(removals(lab, present));
    changes
}

/// What a complete section does not name.
fn removals(lab: &Lab, present: &Present) -> Vec<Change> {
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
    let mut fields = Fields {
        is_new: known.is_none(),
        ..Fields::default()
    };
    let sorted = |hosts: &Vec<String>| {
        let mut hosts = hosts.clone();
        hosts.sort_unstable();
        hosts
    };
    let hosts = said.hosts.as_ref().map(sorted);
    let change = AccountChange {
        role: fields.option("role", &old.role, said.role.as_ref()),
        hosts: fields.option("hosts", &sorted(&old.hosts), hosts.as_ref()),
        vip: fields.option("vip", &old.vip, said.vip.as_ref()),
        limits: fields.limits(&old.limits, &said.limits),
        new_token: false,
    };
    fields.change("account", &entry.name, Request::SetAccount(change))
}

/// What is said of a queue's users, as the file says it: a built-in queue is nobody's own.
fn users_of(queue: &QueueView) -> Option<QueueUsers> {
    let is_unsaid = !queue.warning.is_empty();
    let built_in = (!is_unsaid).then_some(QueueUsers::Own);
    queue.users.clone().or(built_in)
}

fn queue(entry: &Entry<QueueChange>, known: Option<&QueueView>) -> Option<Change> {
    let said = &entry.wanted;
    let mut fields = Fields {
        is_new: known.is_none(),
        ..Fields::default()
    };
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

/// The registration of a host, and whether it is closed: two requests.
fn host(entry: &Entry<Host>, known: Option<&HostView>) -> Vec<Change> {
    let mut fields = Fields {
        is_new: known.is_none(),
        ..Fields::default()
    };
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
        .and_then(|wanted| cordon(&entry.name, wanted.as_deref(), known));
    registers.into_iter().chain(closed).collect()
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

/// A suspect host is opened by its health check, not by a file.
fn cordon(name: &str, wanted: Option<&str>, known: Option<&HostView>) -> Option<Change> {
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
mod tests {
    use fairlead_api::ClosedView;

    use super::*;

    fn queue_view() -> QueueView {
        let view = json!({
            "name": "nightly", "priority": 2, "weight": 100, "paused": false, "waiting": 0, "running": 0,
            "share_permille": 0, "set": true, "users": ["a", "b"], "limits": {"waiting": {"hard": 5}},
        });
        serde_json::from_value(view).unwrap()
    }

    fn entry<T>(name: &str, wanted: T) -> Entry<T> {
        Entry {
            name: name.to_owned(),
            line: 1,
            wanted,
        }
    }

    fn words(lab: &Lab, present: &Present) -> Vec<String> {
        plan(lab, present).iter().map(Change::words).collect()
    }

    #[test]
    fn only_what_differs_is_shown_and_sent() {
        let change: QueueChange = serde_json::from_value(
            json!({"priority": 2, "weight": 50, "users": ["a", "b"], "limits": {"waiting": {}}}),
        )
        .unwrap();
        let lab = Lab {
            queues: vec![
                entry("nightly", change),
                entry(
                    "new",
                    QueueChange {
                        weight: Some(3),
                        ..QueueChange::default()
                    },
                ),
            ],
            ..Lab::default()
        };
        let present = Present {
            queues: vec![queue_view()],
            ..Present::default()
        };
        assert_eq!(
            words(&lab, &present),
            [
                "~ queue nightly: weight 100 -> 50; limits.waiting hard=5 -> none",
                "+ queue new: weight 3"
            ]
        );
        let Request::SetQueue(sent) = &plan(&lab, &present)[0].request else {
            panic!()
        };
        assert_eq!(
            json!(sent),
            json!({"weight": 50, "limits": {"waiting": {}}})
        );
    }

    #[test]
    fn a_complete_section_removes_what_it_does_not_name() {
        let present = Present {
            queues: vec![queue_view()],
            accounts: vec![AccountView {
                my_account: "old".to_owned(),
                role: "user".to_owned(),
                ..AccountView::default()
            }],
            ..Present::default()
        };
        assert_eq!(words(&Lab::default(), &present), [""; 0]);
        let lab = Lab {
            complete: vec![("queues".to_owned(), 1), ("accounts".to_owned(), 1)],
            ..Lab::default()
        };
        assert_eq!(
            words(&lab, &present),
            [
                "- queue nightly: priority 2; weight 100",
                "- account old: role user"
            ]
        );
    }

    #[test]
    fn a_suspect_host_stays_suspect() {
        let mut view = HostView {
            hostname: "h".to_owned(),
            memory_mb: 1024,
            ..HostView::default()
        };
        let open = Host {
            cordon: Some(None),
            ..Host::default()
        };
        let lab = Lab {
            hosts: vec![entry("h", open)],
            ..Lab::default()
        };
        for (how, expected) in [
            ("suspect", vec![]),
            ("cordon", vec!["~ host h: cordon broken -> none"]),
        ] {
            view.closed = Some(ClosedView {
                how: how.to_owned(),
                reason: "broken".to_owned(),
                ..ClosedView::default()
            });
            let present = Present {
                hosts: vec![view.clone()],
                ..Present::default()
            };
            assert_eq!(words(&lab, &present), expected);
        }
    }
}
