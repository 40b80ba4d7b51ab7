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

/// Time without a sign of life after which a host is gone, ms. Its jobs are lost earlier.
pub const GONE_MS: u64 = 120_000;
/// Maximum number of known hosts.
const HOSTS_MAX: usize = 50_000;

/// Memory limit for the tags, devices, facts and executors of a host, bytes. Cache folders get the remainder.
pub const SAID_BYTES_MAX: u64 = 64 << 10;
/// Memory overhead of one text of a list, bytes.
const TEXT_BYTES: u64 = 32;
/// Memory of a host without any texts, bytes.
const HOST_BYTES: u64 = 1 << 10;

/// Assumed memory of a hw box that never reported it, MB.
pub const UNKNOWN_MEMORY_MB: u32 = 16 * 1024;

/// One host. Its document has all that a starting replica must know.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    pub kinds: Vec<TboxType>,
    pub arch: String,
    pub group: String,
    pub memory_mb: u32,
    #[serde(skip)]
    pub free_memory_mb: u32,
    /// Number of CPUs. `None`: not reported, so not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    #[serde(skip)]
    pub free_cpus: Option<u32>,
    pub tags: Vec<String>,
    pub devices: Vec<String>,
    #[serde(skip)]
    pub cache_dirs: Vec<String>,
    /// Isolation of jobs, as the agent reported it.
    pub isolation: String,
    /// Executors for jobs, as the agent reported them.
    pub executors: Vec<ExecutorSaid>,
    /// Facts about the machine, by family, as the agent reported them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: Facts,
    /// Registration of the host, which counts in addition to the agent's report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
    /// Load, as reported last. `None`: not reported to this replica.
    #[serde(skip)]
    pub load: Option<HostLoad>,
    /// Agent instance, as reported.
    #[serde(skip)]
    pub instance: String,
    /// Account of the token with which it asked or was registered. Empty: an admin registered it, or the lab is open.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// Memory of this entry, charged to that account. `None`: it did not ask here.
    #[serde(skip)]
    pub charge: Option<Arc<Charge>>,
    /// MAC addresses, in lower case with colons.
    #[serde(rename = "mac_addr")]
    pub macs: Vec<String>,
    /// System that it last booted for a job, as a tag that jobs prefer. Empty: not known here.
    #[serde(skip)]
    pub booted: Option<String>,
    /// Number of its requests that wait now.
    #[serde(skip)]
    pub waiting: u32,
    /// Last sign of life, on this replica's clock. `None`: none since this replica started.
    #[serde(skip)]
    pub seen: Option<Millis>,
    /// Last sign of life for people, UTC epoch ms.
    pub seen_ms: u64,
    /// Time of its first request for work, UTC epoch ms. 0: none yet, or older than this field.
    #[serde(skip_serializing_if = "is_zero")]
    pub first_ms: u64,
    /// Description that the engine got last.
    #[serde(skip)]
    pub about: Arc<About>,
    /// True if the store has this same content.
    #[serde(skip)]
    pub stored: bool,
    /// Version of its document that was read or written here. `None`: none.
    #[serde(skip)]
    pub version: Option<Version>,
}

/// Facts from a registration that jobs may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Registered {
    /// True if it names the architecture. Otherwise the site's default holds until the machine reports its own.
    pub names_arch: bool,
    pub tags: Vec<String>,
    pub devices: Vec<String>,
    pub facts: Facts,
}

impl SmallDoc for Host {
    const KIND: DocKind = DocKind::Host;
}

/// Returns the memory of texts, bytes.
fn bytes_of<'t>(texts: impl IntoIterator<Item = &'t String>) -> u64 {
    let bytes = texts.into_iter().map(|text| text_bytes(text));
    bytes.sum()
}

fn text_bytes(text: &str) -> u64 {
    TEXT_BYTES.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX))
}

impl Registered {
    /// Fails if the registration takes too much memory.
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
    /// Fails if a host reports too much. Cache folders without room are ignored, because they only show where jobs run
    /// faster.
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

    /// Returns the memory of everything reported that jobs depend on, bytes.
    fn said_bytes(&self) -> u64 {
        let said = self.tags.iter().chain(&self.devices);
        let said = said.chain(self.facts.values().flatten());
        let executors = self.executors.iter();
        let executors = executors.flat_map(|one| [&one.name, &one.version, &one.problem]);
        bytes_of(said.chain(executors))
    }

    /// Returns the approximate memory of the host in this replica and the engine, bytes.
    pub fn bytes(&self) -> u64 {
        let said = self.said_bytes().saturating_add(bytes_of(&self.cache_dirs));
        copies(HOST_BYTES.saturating_add(said))
    }

    /// Returns the host keys that it offers.
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

    /// Returns true if the host was heard of lately. `now_ms`: UTC epoch ms.
    pub fn is_heard(&self, now_ms: u64) -> bool {
        self.waiting > 0 || self.seen_ms.saturating_add(GONE_MS) > now_ms
    }

    /// Returns the tags from its agent and its registration.
    pub fn given_tags(&self) -> Vec<String> {
        let registered = self.registered.iter().flat_map(|known| &known.tags);
        union(&self.tags, registered)
    }

    /// Returns the devices from its agent and its registration.
    pub fn all_devices(&self) -> Vec<String> {
        let registered = self.registered.iter().flat_map(|known| &known.devices);
        union(&self.devices, registered)
    }

    /// Returns its facts. A family that the agent does not report comes from the registration.
    pub fn all_facts(&self) -> Facts {
        let mut all = self.facts.clone();
        for (family, values) in self.registered.iter().flat_map(|known| &known.facts) {
            all.entry(family.clone()).or_insert_with(|| values.clone());
        }
        all
    }

    /// Returns true if it is loaded. Such a machine does not count as supply.
    pub fn is_loaded(&self) -> bool {
        self.load.is_some_and(|load| load.loaded)
    }

    /// Returns the memory available to jobs, MB. On a loaded host this is the memory that no job was promised, because
    /// it gets jobs only if all hosts are loaded.
    pub fn room_mb(&self) -> u32 {
        match self.load.filter(|load| load.loaded) {
            Some(load) => load.unpromised_memory_mb.min(self.memory_mb),
            None => self.free_memory_mb,
        }
    }

    /// Returns the tags that jobs may ask for: its own tags, and those of its facts.
    pub fn all_tags(&self) -> Vec<String> {
        let more = self.registered.iter().flat_map(|known| &known.facts);
        let more = more.filter(|(family, _)| !self.facts.contains_key(*family));
        let mut tags = self.given_tags();
        tags.extend(facts::tags(self.facts.iter().chain(more)));
        tags
    }
}

/// Returns the earlier of two times. 0 means none.
fn earlier(one: u64, other: u64) -> u64 {
    match one.min(other) {
        0 => one.max(other),
        first => first,
    }
}

/// Returns the union, each text once.
fn union<'t>(said: &[String], more: impl Iterator<Item = &'t String>) -> Vec<String> {
    let mut all = said.to_vec();
    for text in more {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
    all
}

/// Returns the default group of a host: its name up to `--`.
pub fn group_of(name: &str) -> &str {
    name.split_once("--").map_or(name, |(group, _)| group)
}

/// All hosts.
#[derive(Debug, Default)]
pub struct Hosts(pub DashMap<String, Host>);

impl Hosts {
    /// Returns the counts to request: jobs by host key, with a bound on names, because anybody can invent names.
    pub fn count_of(&self) -> CountOf {
        // The keys are sorted, so replicas that know the same hosts ask the same, and the store counts once.
        CountOf {
            names_max: usize::try_from(NAMES_MAX).ok(),
            host_keys: Some(self.all_keys().into_iter().collect()),
        }
    }

    /// Returns the host keys that any host offers.
    pub fn all_keys(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        self.each(|name, host| keys.extend(host.keys(name)));
        keys
    }

    /// Reads the registered hosts. A report that a host made here is newer and stays.
    ///
    /// Hosts that another replica forgot are forgotten here as well, unless they were heard of after `gone_ms` (UTC
    /// epoch ms). The exception exists because lists lag behind.
    pub async fn load(&self, docs: &SmallDocs, gone_ms: u64) -> Result<(), StoreError> {
        let listed = docs.list::<Host>().await?;
        let names: BTreeSet<&String> = listed.iter().map(|(name, _)| name).collect();
        let stays = |name: &String, host: &Host| {
            !host.stored || host.seen_ms >= gone_ms || host.waiting > 0 || names.contains(name)
        };
        self.0.retain(|name, host| stays(name, host));
        for (name, stored) in listed {
            // A heartbeat shows that a host lives, but does not describe it. Versions show the newer description.
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

    /// Returns the description of a host for the engine. An unchanged description keeps its reference, so the engine
    /// need not compare it.
    pub fn about(&self, name: &str, about: About) -> Arc<About> {
        let Some(mut known) = self.0.get_mut(name) else {
            return Arc::new(about);
        };
        if *known.about != about {
            known.about = Arc::new(about);
        }
        Arc::clone(&known.about)
    }

    /// Adopts the knowledge of another replica about a host.
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

    /// Fails if the host would exceed the limit of hosts.
    pub fn check_room(&self, name: &str) -> Result<(), HostError> {
        if self.0.len() < HOSTS_MAX || self.0.contains_key(name) {
            return Ok(());
        }
        Err(HostError::TooMany(HOSTS_MAX))
    }

    /// Fails if the host would exceed its account's limit of `max` hosts.
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

    /// Changes a host. An unknown host is added if there is room.
    pub fn update<R>(&self, name: &str, work: impl FnOnce(&mut Host) -> R) -> Result<R, HostError> {
        self.check_room(name)?;
        Ok(work(&mut self.0.entry(name.to_owned()).or_default()))
    }

    /// Counts one waiting request of the host up (`true`) or down.
    pub fn count_waiting(&self, name: &str, up: bool) {
        if let Some(mut host) = self.0.get_mut(name) {
            host.waiting = if up {
                host.waiting.saturating_add(1)
            } else {
                host.waiting.saturating_sub(1)
            };
        }
    }

    /// Returns the host with this MAC address.
    pub fn by_mac(&self, mac: &str) -> Option<String> {
        let mac = canonical_mac(mac);
        self.0
            .iter()
            .find(|host| host.macs.contains(&mac))
            .map(|host| host.key().clone())
    }

    /// Returns another host that has one of these addresses, and the address.
    pub fn owner_of(&self, macs: &[String], but: &str) -> Option<(String, String)> {
        self.0
            .iter()
            .filter(|host| host.key() != but)
            .find_map(|host| {
                let mac = macs.iter().find(|mac| host.macs.contains(mac))?;
                Some((mac.clone(), host.key().clone()))
            })
    }

    /// Returns the number of loaded hosts that are not gone.
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

    /// Calls `look` for each host.
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

/// Converts any common spelling of a MAC address to the form `52:54:00:12:34:56`.
pub fn canonical_mac(text: &str) -> String {
    text.to_ascii_lowercase().replace('-', ":")
}

/// Parses kinds: `hw` alone, or `vm` and/or `dc`.
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
