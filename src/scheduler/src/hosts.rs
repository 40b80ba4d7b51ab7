//! What is known of hosts: as registered, and as last heard.

use std::sync::Arc;

use dashmap::DashMap;
use fairlead_api::{ErrorCode, HostView};
use fairlead_dispatch::{About, Millis};
use fairlead_job::TboxType;
use fairlead_store::{DocKind, DocWrite, Expect, ItemError, JobStore, StoreError};
use serde_json::{Map, Value, json};

use crate::{
    accounts::{Who, check_name},
    closures::Closure,
    core::Core,
    explain::why_idle,
    refusal::{Refusal, excerpt},
    reservations::Reservation,
    writer::only,
};

/// Most hosts a replica keeps in mind.
const HOSTS_MAX: usize = 50_000;
/// Memory of a hw box that never said how much it has, MB.
pub(crate) const UNKNOWN_MEMORY_MB: u32 = 16 * 1024;

/// One host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    pub(crate) kinds: Vec<TboxType>,
    pub(crate) arch: String,
    pub(crate) group: String,
    pub(crate) memory_mb: u32,
    pub(crate) free_memory_mb: u32,
    pub(crate) tags: Vec<String>,
    pub(crate) devices: Vec<String>,
    pub(crate) cache_dirs: Vec<String>,
    /// How its agent keeps jobs apart, as it said.
    pub(crate) isolation: String,
    /// Which agent it is, as it said.
    pub(crate) instance: String,
    /// MAC addresses, lower case, colons.
    pub(crate) macs: Vec<String>,
    /// How many of its requests wait now.
    pub(crate) waiting: u32,
    /// Last heard of, by our own clock; `None` since this replica started.
    pub(crate) seen: Option<Millis>,
    /// The same for people.
    pub(crate) seen_ms: u64,
    /// What the engine was told of it last.
    pub(crate) about: Arc<About>,
    /// Whether the store is known to have it as it is here.
    pub(crate) stored: bool,
}

impl Host {
    /// Host keys that it offers.
    pub(crate) fn keys(&self, name: &str) -> Vec<String> {
        let mut keys = Vec::new();
        for kind in &self.kinds {
            let kind_name = kind.as_str();
            keys.push(format!("{kind_name}.{}", self.arch));
            if *kind == TboxType::Hw {
                keys.push(format!("hw@{name}"));
                if self.group != name {
                    keys.push(format!("hw@{}", self.group));
                }
            } else {
                keys.push(format!("{kind_name}.{}@{name}", self.arch));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn to_doc(&self) -> Value {
        json!({
            "kinds": self.kinds, "arch": self.arch, "group": self.group, "memory_mb": self.memory_mb,
            "tags": self.tags, "devices": self.devices, "mac_addr": self.macs, "seen_ms": self.seen_ms,
            "isolation": self.isolation,
        })
    }

    fn from_doc(body: &Value) -> Self {
        let list = |name: &str| -> Vec<String> {
            let items = body.get(name).and_then(Value::as_array);
            items
                .map(|items| {
                    items
                        .iter()
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default()
        };
        let text = |name: &str| {
            body.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            kinds: body
                .get("kinds")
                .cloned()
                .and_then(|kinds| serde_json::from_value(kinds).ok())
                .unwrap_or_default(),
            arch: text("arch"),
            group: text("group"),
            memory_mb: body
                .get("memory_mb")
                .and_then(Value::as_u64)
                .and_then(|mb| u32::try_from(mb).ok())
                .unwrap_or(0),
            tags: list("tags"),
            devices: list("devices"),
            macs: list("mac_addr"),
            isolation: text("isolation"),
            seen_ms: body.get("seen_ms").and_then(Value::as_u64).unwrap_or(0),
            ..Self::default()
        }
    }
}

/// The group of a host that names none: its name up to `--`.
pub(crate) fn group_of(name: &str) -> &str {
    name.split_once("--").map_or(name, |(group, _)| group)
}

/// All hosts.
#[derive(Debug, Default)]
pub(crate) struct Hosts(DashMap<String, Host>);

impl Hosts {
    /// Reads what is registered; what a host said here itself is newer.
    pub(crate) async fn load(&self, store: &dyn JobStore) -> Result<(), StoreError> {
        for doc in store.list_docs(DocKind::Host).await? {
            let registered = Host::from_doc(&doc.body);
            let heard_here = |known: &Host| known.seen_ms >= registered.seen_ms;
            if !self.0.get(&doc.id).is_some_and(|known| heard_here(&known)) {
                self.update_known(&doc.id, registered);
            }
        }
        Ok(())
    }

    /// What the engine is told of a host: the same reference as long as it is the same, so that the engine need
    /// not compare it.
    pub(crate) fn about(&self, name: &str, about: About) -> Arc<About> {
        let Some(mut known) = self.0.get_mut(name) else {
            return Arc::new(about);
        };
        if *known.about != about {
            known.about = Arc::new(about);
        }
        Arc::clone(&known.about)
    }

    /// What another replica knows of a host is news here.
    fn update_known(&self, name: &str, registered: Host) {
        let mut known = self.0.entry(name.to_owned()).or_default();
        *known = Host {
            waiting: known.waiting,
            seen: known.seen,
            about: std::mem::take(&mut known.about),
            stored: true,
            ..registered
        };
    }

    pub(crate) fn get(&self, name: &str) -> Option<Host> {
        self.0.get(name).map(|host| host.clone())
    }

    /// Refuses a host too many.
    pub(crate) fn check_room(&self, name: &str) -> Result<(), Refusal> {
        if self.0.len() < HOSTS_MAX || self.0.contains_key(name) {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorCode::TooMany,
            format!("{HOSTS_MAX} hosts are known already"),
            "start another lab, or delete hosts that are gone",
        ))
    }

    /// Changes what is known; makes it known if there is room.
    pub(crate) fn update<R>(
        &self,
        name: &str,
        work: impl FnOnce(&mut Host) -> R,
    ) -> Result<R, Refusal> {
        self.check_room(name)?;
        Ok(work(&mut self.0.entry(name.to_owned()).or_default()))
    }

    /// Counts a waiting request of it up (`true`) or down.
    pub(crate) fn count_waiting(&self, name: &str, up: bool) {
        if let Some(mut host) = self.0.get_mut(name) {
            host.waiting = if up {
                host.waiting.saturating_add(1)
            } else {
                host.waiting.saturating_sub(1)
            };
        }
    }

    /// The host with this MAC address.
    pub(crate) fn by_mac(&self, mac: &str) -> Option<String> {
        let mac = canonical_mac(mac);
        self.0
            .iter()
            .find(|host| host.macs.contains(&mac))
            .map(|host| host.key().clone())
    }

    /// Another host that has one of these addresses.
    fn owner_of(&self, macs: &[String], but: &str) -> Option<(String, String)> {
        self.0
            .iter()
            .filter(|host| host.key() != but)
            .find_map(|host| {
                let mac = macs.iter().find(|mac| host.macs.contains(mac))?;
                Some((mac.clone(), host.key().clone()))
            })
    }

    /// Looks at each of them.
    pub(crate) fn each(&self, mut look: impl FnMut(&str, &Host)) {
        let all = self.0.iter();
        all.for_each(|host| look(host.key(), host.value()));
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.0.iter().map(|host| host.key().clone()).collect();
        names.sort_unstable();
        names
    }
}

/// `52:54:00:12:34:56` for any common spelling.
fn canonical_mac(text: &str) -> String {
    text.to_ascii_lowercase().replace('-', ":")
}

impl Core {
    /// Stores what is known of a host. Best effort: a failure costs only the list after a restart.
    pub(crate) async fn store_host(&self, name: &str) -> Result<(), ItemError> {
        let Some(host) = self.hosts.get(name) else {
            return Ok(());
        };
        let write = DocWrite {
            id: name.to_owned(),
            expect: Expect::Any,
            body: Some(host.to_doc()),
        };
        only(self.store.put_docs(DocKind::Host, vec![write]).await)?;
        if let Some(mut host) = self.hosts.0.get_mut(name) {
            host.stored = true;
        }
        Ok(())
    }

    /// Stores a host that asks, unless it is: without that no other replica knows of it.
    pub(crate) async fn keep_stored(&self, name: &str) {
        if self.hosts.0.get(name).is_some_and(|host| host.stored) {
            return;
        }
        if let Err(error) = self.store_host(name).await {
            tracing::warn!(host = name, %error, "a host could not be stored; its next request tries again");
        }
    }

    /// Registers a host from compass-ci's host JSON (or ours): only what is given changes.
    pub(crate) async fn register_host(
        &self,
        name: &str,
        body: &Map<String, Value>,
        who: &Who,
    ) -> Result<HostView, Refusal> {
        let now_ms = self.clock.wall_ms();
        let mut wanted = self.hosts.get(name).unwrap_or_default();
        read_registration(&mut wanted, body)?;
        if let Some((mac, owner)) = self.hosts.owner_of(&wanted.macs, name)
            && !who.may_be_host(&owner)
        {
            // A box that boots is known by it.
            return Err(Refusal::new(
                ErrorCode::Forbidden,
                format!("mac_addr: {mac} is another host's"),
                "an admin can register it, or take it away from the other host",
            ));
        }
        if wanted.kinds.is_empty() {
            wanted.kinds = vec![TboxType::Hw];
        }
        if wanted.group.is_empty() {
            group_of(name).clone_into(&mut wanted.group);
        }
        if wanted.arch.is_empty() {
            wanted.arch.clone_from(&self.config.site.arch);
        }
        if wanted.memory_mb == 0 {
            wanted.memory_mb = UNKNOWN_MEMORY_MB;
        }
        wanted.seen_ms = now_ms;
        self.hosts.update(name, |host| *host = wanted)?;
        self.store_host(name).await?;
        self.host_view(name, true).await
    }

    /// Makes sure that there is this host, which another replica may have heard of a moment ago.
    pub(crate) async fn know_host(&self, name: &str) -> Result<(), Refusal> {
        check_name("hostname", name)?;
        if self.hosts.get(name).is_none() {
            let Some(doc) = self.store.get_doc(DocKind::Host, name).await? else {
                return Err(no_host(name));
            };
            self.hosts.update_known(name, Host::from_doc(&doc.body));
        }
        Ok(())
    }

    /// One host for people.
    pub(crate) async fn host_view(&self, name: &str, explain: bool) -> Result<HostView, Refusal> {
        let Some(host) = self.hosts.get(name) else {
            return Err(no_host(name));
        };
        let jobs: Vec<_> = self
            .live
            .of_host(name)
            .iter()
            .map(|live| live.stored.state.job_id.to_string())
            .collect();
        let silent_ms = host
            .seen
            .map_or(u64::MAX, |seen| self.clock.now().0.saturating_sub(seen.0));
        let closure = self.closures.of(name);
        let state = if let Some(closure) = &closure {
            closure.state(jobs.len())
        } else if host.waiting > 0 {
            "waiting"
        } else if !jobs.is_empty() {
            "busy"
        } else if silent_ms > self.config.lease_ms {
            "silent"
        } else {
            "idle"
        };
        let mut idle: Vec<String> = closure.iter().map(Closure::words).collect();
        if explain && jobs.is_empty() && closure.is_none() {
            idle = why_idle(self, name).await?;
        }
        Ok(HostView {
            hostname: name.to_owned(),
            kinds: host
                .kinds
                .iter()
                .map(|kind| kind.as_str().to_owned())
                .collect(),
            arch: host.arch,
            group: host.group,
            memory_mb: host.memory_mb,
            free_memory_mb: host.free_memory_mb,
            tags: host.tags,
            devices: host.devices,
            state: state.to_owned(),
            isolation: host.isolation,
            conflict: self.conflict(name),
            seen_ms: host.seen_ms,
            jobs,
            why_idle: idle,
            closed: closure.as_ref().map(Closure::view),
            reserved: self.reserved(name).map(Reservation::view),
        })
    }

    /// All hosts for people.
    pub(crate) async fn host_views(&self) -> Result<Vec<HostView>, Refusal> {
        let mut views = Vec::new();
        for name in self.hosts.names() {
            views.push(self.host_view(&name, false).await?);
        }
        Ok(views)
    }
}

fn no_host(name: &str) -> Refusal {
    Refusal::new(
        ErrorCode::NotFound,
        format!("no host '{name}'"),
        "list them with GET hosts; one that never asked for work is registered with POST hosts/:hostname",
    )
}

fn read_registration(host: &mut Host, body: &Map<String, Value>) -> Result<(), Refusal> {
    let bad = |field: &str, expected: &str| {
        Err(Refusal::new(
            ErrorCode::BadField,
            format!("{field}: not {expected}"),
            "see the operator's guide, hosts",
        ))
    };
    for (field, value) in body {
        match field.as_str() {
            "arch" | "tbox_group" | "group" => {
                let Some(text) = value
                    .as_str()
                    .filter(|text| !text.is_empty() && text.len() <= 128)
                else {
                    return bad(field, "a text of 1 to 128 bytes");
                };
                let target = if field == "arch" {
                    &mut host.arch
                } else {
                    &mut host.group
                };
                text.clone_into(target);
            }
            "memory" | "memory_mb" => {
                let mb = if field == "memory" {
                    fairlead_job::units::memory_mb(value).ok()
                } else {
                    value.as_u64().and_then(|mb| u32::try_from(mb).ok())
                };
                let Some(mb) = mb else {
                    return bad(field, "an amount of memory, as 64g or 65536");
                };
                host.memory_mb = mb;
                host.free_memory_mb = mb;
            }
            "mac_addr" | "mac" | "tags" | "devices" | "kinds" | "tbox_type" => {
                let Some(items) = text_list(value) else {
                    return bad(field, "a text or a list of texts, at most 64");
                };
                match field.as_str() {
                    "tags" => host.tags = items,
                    "devices" => host.devices = items,
                    "kinds" | "tbox_type" => host.kinds = kinds(&items)?,
                    _ => host.macs = items.iter().map(|mac| canonical_mac(mac)).collect(),
                }
            }
            // Host files describe much more; none of it matters to matching.
            _ => {}
        }
    }
    Ok(())
}

fn text_list(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(
            text.split([',', ' '])
                .filter(|s| !s.is_empty())
                .map(str::to_owned)
                .collect(),
        ),
        Value::Array(items) if items.len() <= 64 => items
            .iter()
            .map(|item| item.as_str().filter(|s| s.len() <= 128).map(str::to_owned))
            .collect(),
        _ => None,
    }
}

/// Reads kinds: `hw` alone, or `vm` and/or `dc`.
pub(crate) fn kinds(items: &[String]) -> Result<Vec<TboxType>, Refusal> {
    let mut kinds = Vec::new();
    for item in items {
        let known = [TboxType::Hw, TboxType::Vm, TboxType::Dc]
            .into_iter()
            .find(|kind| kind.as_str() == item);
        let Some(kind) = known else {
            let shown = excerpt(item);
            return Err(Refusal::new(
                ErrorCode::BadField,
                format!("kinds: '{shown}' is none"),
                "hw alone, or vm and/or dc",
            ));
        };
        kinds.push(kind);
    }
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        return Err(Refusal::new(
            ErrorCode::BadField,
            "kinds: empty",
            "hw alone, or vm and/or dc",
        ));
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use fairlead_store::faults::{Fault, FaultStore, On, Step};

    use super::*;
    use crate::{
        Clock, Config,
        testing::{core_over, embedded},
    };

    /// Other replicas never heard of it. Seed 5254.
    #[tokio::test]
    async fn a_host_whose_document_was_not_taken_is_stored_with_its_next_request() {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultStore::new(
            embedded(&data),
            [Step {
                on: On::PutDocs,
                fault: Fault::LostWithoutAnswer,
                times: 1,
            }],
        ));
        let config = Config::embedded(data.path().to_owned());
        let core = core_over(Arc::clone(&store) as _, config, Clock::system());
        core.hosts
            .update("h", |host| *host = Host::default())
            .unwrap();
        let there = async || store.get_doc(DocKind::Host, "h").await.unwrap();
        core.keep_stored("h").await;
        assert!(there().await.is_none());
        core.keep_stored("h").await;
        let first = there().await.unwrap();
        core.keep_stored("h").await;
        assert_eq!(there().await, Some(first), "written once");
    }

    #[test]
    fn a_host_offers_its_keys() {
        let host = Host {
            kinds: vec![TboxType::Hw],
            arch: "aarch64".into(),
            group: "taishan".into(),
            ..Host::default()
        };
        assert_eq!(
            host.keys("taishan--a66"),
            ["hw.aarch64", "hw@taishan", "hw@taishan--a66"]
        );
        let host = Host {
            kinds: vec![TboxType::Vm, TboxType::Dc],
            arch: "x86_64".into(),
            ..Host::default()
        };
        assert_eq!(
            host.keys("b1"),
            ["dc.x86_64", "dc.x86_64@b1", "vm.x86_64", "vm.x86_64@b1"]
        );
    }

    #[test]
    fn groups_come_from_names() {
        assert_eq!(
            group_of("taishan200-2280-2s48p-256g--a61"),
            "taishan200-2280-2s48p-256g"
        );
        assert_eq!(group_of("a61"), "a61");
    }
}
