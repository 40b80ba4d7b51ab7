//! Hosts, as registered and as last heard.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use dashmap::DashMap;
use fairlead_api::{ExecutorSaid, HostLoad};
use fairlead_dispatch::{About, Millis, NAMES_MAX};
use fairlead_job::TboxType;
use fairlead_store::{CountOf, DocKind, StoreError, Version};
use serde::{Deserialize, Serialize};

use crate::facts::{self, Facts};
use fairlead_base::{
    budget::{Charge, copies},
    errors::{HostError, excerpt},
    storage::{
        doc_fields::is_zero,
        small_doc::{SmallDoc, SmallDocs},
    },
};

/// A host that was heard of so lately is not gone, ms. Jobs of one that is gone are lost sooner.
pub const GONE_MS: u64 = 120_000;
/// Most hosts a replica keeps in mind.
const HOSTS_MAX: usize = 50_000;

/// Most that the tags, devices, facts and executors of a host take, bytes. Cache folders get what is left of it.
pub const SAID_BYTES_MAX: u64 = 64 << 10;
/// What one text of a list takes beside itself, bytes.
const TEXT_BYTES: u64 = 32;
/// What a host takes that says nothing, bytes.
const HOST_BYTES: u64 = 1 << 10;

/// Memory of a hw box that never said how much it has, MB.
pub const UNKNOWN_MEMORY_MB: u32 = 16 * 1024;

/// One host. Its document has what a replica that starts must know.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    pub kinds: Vec<TboxType>,
    pub arch: String,
    pub group: String,
    pub memory_mb: u32,
    #[serde(skip)]
    pub free_memory_mb: u32,
    /// None: it did not say, so they are not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    #[serde(skip)]
    pub free_cpus: Option<u32>,
    pub tags: Vec<String>,
    pub devices: Vec<String>,
    #[serde(skip)]
    pub cache_dirs: Vec<String>,
    /// How its agent keeps jobs apart, as it said.
    pub isolation: String,
    /// What it can run jobs in, as it said.
    pub executors: Vec<ExecutorSaid>,
    /// What the machine is, by family, as it said.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: Facts,
    /// What was registered for it, which counts beside what it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
    /// How loaded it is, as it said last. None: not said here.
    #[serde(skip)]
    pub load: Option<HostLoad>,
    /// Which agent it is, as it said.
    #[serde(skip)]
    pub instance: String,
    /// Whose token it had when it asked or was registered; empty: an admin registered it, or an open lab has no tokens.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// What it takes here, charged to that account. None: it did not ask here.
    #[serde(skip)]
    pub charge: Option<Arc<Charge>>,
    /// MAC addresses, lower case, colons.
    #[serde(rename = "mac_addr")]
    pub macs: Vec<String>,
    /// The system that it booted last for a job, as a tag that jobs for it prefer; empty: not known here.
    #[serde(skip)]
    pub booted: Option<String>,
    /// How many of its requests wait now.
    #[serde(skip)]
    pub waiting: u32,
    /// Last heard of, by our own clock; `None` since this replica started.
    #[serde(skip)]
    pub seen: Option<Millis>,
    /// The same for people.
    pub seen_ms: u64,
    /// When it first asked for work, UTC epoch ms; 0: not yet, or before that was noted.
    #[serde(skip_serializing_if = "is_zero")]
    pub first_ms: u64,
    /// What the engine was told of it last.
    #[serde(skip)]
    pub about: Arc<About>,
    /// Whether the store is known to have it as it is here.
    #[serde(skip)]
    pub stored: bool,
    /// The version of its document that was taken in or written here; `None`: none was.
    #[serde(skip)]
    pub version: Option<Version>,
}

/// What a registration says that jobs may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Registered {
    /// Whether it names the architecture; else that of the site is assumed until the machine says.
    pub names_arch: bool,
    pub tags: Vec<String>,
    pub devices: Vec<String>,
    pub facts: Facts,
}

impl SmallDoc for Host {
    const KIND: DocKind = DocKind::Host;
}

/// What texts take in memory, bytes.
fn bytes_of<'t>(texts: impl IntoIterator<Item = &'t String>) -> u64 {
    let bytes = texts.into_iter().map(|text| text_bytes(text));
    bytes.sum()
}

fn text_bytes(text: &str) -> u64 {
    TEXT_BYTES.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX))
}

impl Registered {
    /// Refuses what takes too much memory.
    pub fn check_said(&self) -> Result<(), HostError> {
        let said = self.tags.iter().chain(&self.devices);
        let given = bytes_of(said.chain(self.facts.values().flatten()));
        within(given)
    }
}

fn within(given: u64) -> Result<(), HostError> {
    let max = SAID_BYTES_MAX;
    if given > max {
        return Err(HostError::SaysTooMuch { given, max });
    }
    Ok(())
}

impl Host {
    /// Refuses a host that says too much, and passes over cache folders for which there is no room: they only say where
    /// jobs run faster.
    pub fn check_said(&mut self) -> Result<(), HostError> {
        let given = self.said_bytes();
        within(given)?;
        let mut room = SAID_BYTES_MAX.saturating_sub(given);
        let fits = |folder: &&String| match room.checked_sub(text_bytes(folder)) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        let fitting = self.cache_dirs.iter().take_while(fits).count();
        self.cache_dirs.truncate(fitting);
        Ok(())
    }

    /// What it says that no job may miss, as it takes memory, bytes.
    fn said_bytes(&self) -> u64 {
        let said = self.tags.iter().chain(&self.devices);
        let said = said.chain(self.facts.values().flatten());
        let executors = self.executors.iter();
        let executors = executors.flat_map(|one| [&one.name, &one.version, &one.problem]);
        bytes_of(said.chain(executors))
    }

    /// What it takes in memory, here and in the engine, bytes, roughly.
    pub fn bytes(&self) -> u64 {
        let said = self.said_bytes().saturating_add(bytes_of(&self.cache_dirs));
        copies(HOST_BYTES.saturating_add(said))
    }

    /// Host keys that it offers.
    pub fn keys(&self, name: &str) -> Vec<String> {
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

    /// Whether it was heard of lately. `now_ms`: UTC epoch ms.
    pub fn is_heard(&self, now_ms: u64) -> bool {
        self.waiting > 0 || self.seen_ms.saturating_add(GONE_MS) > now_ms
    }

    /// The tags that it was given, by its agent and its registration.
    pub fn given_tags(&self) -> Vec<String> {
        let registered = self.registered.iter().flat_map(|known| &known.tags);
        union(&self.tags, registered)
    }

    /// Its devices, as it and its registration say.
    pub fn all_devices(&self) -> Vec<String> {
        let registered = self.registered.iter().flat_map(|known| &known.devices);
        union(&self.devices, registered)
    }

    /// Its facts: where it says nothing of a family, what is registered.
    pub fn all_facts(&self) -> Facts {
        let mut all = self.facts.clone();
        for (family, values) in self.registered.iter().flat_map(|known| &known.facts) {
            all.entry(family.clone()).or_insert_with(|| values.clone());
        }
        all
    }

    /// Whether it is loaded: such a machine is no supply, whatever is free there.
    pub fn is_loaded(&self) -> bool {
        self.load.is_some_and(|load| load.loaded)
    }

    /// Memory that jobs may take there, MB. Of a loaded host, what no job was promised: it gets jobs only where all are
    /// loaded, and then there is nothing better.
    pub fn room_mb(&self) -> u32 {
        match self.load.filter(|load| load.loaded) {
            Some(load) => load.unpromised_memory_mb.min(self.memory_mb),
            None => self.free_memory_mb,
        }
    }

    /// Tags that jobs may ask for: those that it was given, and those of its facts.
    pub fn all_tags(&self) -> Vec<String> {
        let more = self.registered.iter().flat_map(|known| &known.facts);
        let more = more.filter(|(family, _)| !self.facts.contains_key(*family));
        let mut tags = self.given_tags();
        tags.extend(facts::tags(self.facts.iter().chain(more)));
        tags
    }
}

/// The earlier one of two times, of which 0 is none.
fn earlier(one: u64, other: u64) -> u64 {
    match one.min(other) {
        0 => one.max(other),
        first => first,
    }
}

/// Both, each text once.
fn union<'t>(said: &[String], more: impl Iterator<Item = &'t String>) -> Vec<String> {
    let mut all = said.to_vec();
    for text in more {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
    all
}

/// The group of a host that names none: its name up to `--`.
pub fn group_of(name: &str) -> &str {
    name.split_once("--").map_or(name, |(group, _)| group)
}

/// All hosts.
#[derive(Debug, Default)]
pub struct Hosts(pub DashMap<String, Host>);

impl Hosts {
    /// What is counted: names that somebody invents are not, beyond a bound.
    pub fn count_of(&self) -> CountOf {
        // Sorted: replicas that know the same hosts ask the same, and the store counts once.
        CountOf {
            names_max: usize::try_from(NAMES_MAX).ok(),
            host_keys: Some(self.all_keys().into_iter().collect()),
        }
    }

    /// The host keys that any host offers.
    pub fn all_keys(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        self.each(|name, host| keys.extend(host.keys(name)));
        keys
    }

    /// Reads what is registered; what a host said here itself is newer.
    ///
    /// A host that another replica forgot is forgotten here, too: none that was heard of after `gone_ms`, UTC epoch ms,
    /// for a list lags behind.
    pub async fn load(&self, docs: &SmallDocs, gone_ms: u64) -> Result<(), StoreError> {
        let listed = docs.list::<Host>().await?;
        let names: BTreeSet<&String> = listed.iter().map(|(name, _)| name).collect();
        let stays = |name: &String, host: &Host| {
            !host.stored || host.seen_ms >= gone_ms || host.waiting > 0 || names.contains(name)
        };
        self.0.retain(|name, host| stays(name, host));
        for (name, stored) in listed {
            // A heartbeat says that a host lives, and not what it is. Versions tell which description is newer.
            let is_known = |known: &Host| match known.version {
                Some(version) => version >= stored.version,
                None => known.seen_ms >= stored.doc.seen_ms,
            };
            if !self.0.get(&name).is_some_and(|known| is_known(&known)) {
                self.update_known(&name, stored.version, stored.doc);
            }
        }
        Ok(())
    }

    /// What the engine is told of a host: the same reference as long as it is the same, so that the engine need
    /// not compare it.
    pub fn about(&self, name: &str, about: About) -> Arc<About> {
        let Some(mut known) = self.0.get_mut(name) else {
            return Arc::new(about);
        };
        if *known.about != about {
            known.about = Arc::new(about);
        }
        Arc::clone(&known.about)
    }

    /// What another replica knows of a host is news here.
    pub fn update_known(&self, name: &str, version: Version, registered: Host) {
        let mut known = self.0.entry(name.to_owned()).or_default();
        *known = Host {
            waiting: known.waiting,
            booted: known.booted.take(),
            seen: known.seen,
            load: known.load,
            about: std::mem::take(&mut known.about),
            charge: known.charge.take(),
            stored: true,
            version: Some(version),
            seen_ms: known.seen_ms.max(registered.seen_ms),
            first_ms: earlier(known.first_ms, registered.first_ms),
            ..registered
        };
    }

    pub fn get(&self, name: &str) -> Option<Host> {
        self.0.get(name).map(|host| host.clone())
    }

    /// Refuses a host too many.
    pub fn check_room(&self, name: &str) -> Result<(), HostError> {
        if self.0.len() < HOSTS_MAX || self.0.contains_key(name) {
            return Ok(());
        }
        Err(HostError::TooMany(HOSTS_MAX))
    }

    /// Refuses a host too many of an account that may have so many.
    pub fn check_room_of(&self, account: &str, name: &str, max: usize) -> Result<(), HostError> {
        if self.0.contains_key(name) {
            return Ok(());
        }
        let its = self.0.iter().filter(|host| host.account == account);
        if its.count() < max {
            return Ok(());
        }
        let account = account.to_owned();
        Err(HostError::TooManyOfAccount { account, max })
    }

    /// Changes what is known; makes it known if there is room.
    pub fn update<R>(&self, name: &str, work: impl FnOnce(&mut Host) -> R) -> Result<R, HostError> {
        self.check_room(name)?;
        Ok(work(&mut self.0.entry(name.to_owned()).or_default()))
    }

    /// Counts a waiting request of it up (`true`) or down.
    pub fn count_waiting(&self, name: &str, up: bool) {
        if let Some(mut host) = self.0.get_mut(name) {
            host.waiting = if up {
                host.waiting.saturating_add(1)
            } else {
                host.waiting.saturating_sub(1)
            };
        }
    }

    /// The host with this MAC address.
    pub fn by_mac(&self, mac: &str) -> Option<String> {
        let mac = canonical_mac(mac);
        self.0
            .iter()
            .find(|host| host.macs.contains(&mac))
            .map(|host| host.key().clone())
    }

    /// Another host that has one of these addresses.
    pub fn owner_of(&self, macs: &[String], but: &str) -> Option<(String, String)> {
        self.0
            .iter()
            .filter(|host| host.key() != but)
            .find_map(|host| {
                let mac = macs.iter().find(|mac| host.macs.contains(mac))?;
                Some((mac.clone(), host.key().clone()))
            })
    }

    /// How many of them are loaded, of those that are not gone.
    pub fn count_loaded(&self, now: Millis) -> usize {
        let is_here = |host: &Host| {
            let heard = |seen: Millis| now.0.saturating_sub(seen.0) <= GONE_MS;
            host.seen.is_some_and(heard)
        };
        let loaded = self
            .0
            .iter()
            .filter(|host| host.is_loaded() && is_here(host));
        loaded.count()
    }

    /// Looks at each of them.
    pub fn each(&self, mut look: impl FnMut(&str, &Host)) {
        let all = self.0.iter();
        all.for_each(|host| look(host.key(), host.value()));
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.0.iter().map(|host| host.key().clone()).collect();
        names.sort_unstable();
        names
    }
}

/// `52:54:00:12:34:56` for any common spelling.
pub fn canonical_mac(text: &str) -> String {
    text.to_ascii_lowercase().replace('-', ":")
}

/// Reads kinds: `hw` alone, or `vm` and/or `dc`.
pub fn kinds(items: &[String]) -> Result<Vec<TboxType>, HostError> {
    let mut kinds = Vec::new();
    for item in items {
        let known = [TboxType::Hw, TboxType::Vm, TboxType::Dc]
            .into_iter()
            .find(|kind| kind.as_str() == item);
        let Some(kind) = known else {
            return Err(HostError::UnknownKind(excerpt(item)));
        };
        kinds.push(kind);
    }
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        return Err(HostError::NoKinds);
    }
    Ok(kinds)
}
