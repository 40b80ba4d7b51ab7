//! Updates the known hosts, as registered and as last heard.

use std::future::ready;

use fairlead_job::TboxType;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::hosts::{HostFlow, host_file::describe};
use fairlead_base::{
    errors::{HostError, PeopleError, Refusal, excerpt},
    names::check_name,
    roles::Role,
    storage::small_doc::DocError,
};
use fairlead_known::{
    accounts::Who,
    facts::{self, Facts},
    hosts::{Host, UNKNOWN_MEMORY_MB, canonical_mac, group_of, kinds},
    work_request::CPUS_MAX,
};

impl HostFlow {
    /// Stores what is known of a host. Best effort: a failure costs only the list after a restart.
    pub(crate) async fn store_host(&self, name: &str) -> Result<(), DocError> {
        let Some(host) = self.lab.hosts.get(name) else {
            return Ok(());
        };
        let next = |_| ready(Ok::<_, DocError>(host.clone()));
        let stored = self.ctx.docs.change(name, next).await?;
        if let Some(mut host) = self.lab.hosts.0.get_mut(name) {
            host.stored = true;
            host.version = host.version.max(Some(stored.version));
        }
        Ok(())
    }

    /// Stores a host that asks, unless it is: without that no other replica knows of it.
    pub(crate) async fn keep_stored(&self, name: &str) {
        if self.lab.hosts.0.get(name).is_some_and(|host| host.stored) {
            return;
        }
        if let Err(error) = self.store_host(name).await {
            tracing::warn!(host = name, %error, "the host could not be stored; its next request tries again");
        }
    }

    /// Refuses a group that the account does not name for its hosts. Jobs name a machine and a group alike: one that names
    /// none may use every group that is not the name of a host which it may not be.
    pub(crate) fn check_group(
        &self,
        who: &Who,
        host: &str,
        group: &str,
    ) -> Result<(), PeopleError> {
        // Each request of a host comes here: what is looked up is looked up last.
        let is_host =
            || self.lab.hosts.0.contains_key(group) || self.people.accounts.name_host(group);
        let is_named = group == host
            || group == group_of(host)
            || if who.groups.is_unsaid() {
                who.may_be_host(group) || !is_host()
            } else {
                who.groups.names(group)
            };
        if is_named {
            return Ok(());
        }
        Err(PeopleError::NotItsGroup {
            account: who.name.clone(),
            group: excerpt(group),
        })
    }

    /// Registers a host from compass-ci's host JSON (or ours): only what is given changes.
    pub(crate) async fn register_host(
        &self,
        name: &str,
        body: &Map<String, Value>,
        who: &Who,
    ) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        let mut wanted = self.lab.hosts.get(name).unwrap_or_default();
        read_registration(&mut wanted, body)?;
        // What an admin registers is nobody's.
        if who.role == Role::Testbox {
            self.check_room_of(&who.name, name)?;
            who.name.clone_into(&mut wanted.account);
        }
        self.check_group(who, name, &wanted.group)?;
        if let Some((mac, owner)) = self.lab.hosts.owner_of(&wanted.macs, name)
            && !who.may_be_host(&owner)
        {
            // A box that boots is known by it.
            return Err(HostError::MacTaken(mac).into());
        }
        if wanted.kinds.is_empty() {
            wanted.kinds = vec![TboxType::Hw];
        }
        if wanted.group.is_empty() {
            group_of(name).clone_into(&mut wanted.group);
        }
        if wanted.arch.is_empty() {
            wanted.arch.clone_from(&self.ctx.config.site.arch);
        }
        if wanted.memory_mb == 0 {
            wanted.memory_mb = UNKNOWN_MEMORY_MB;
            wanted.free_memory_mb = UNKNOWN_MEMORY_MB;
        }
        wanted.seen_ms = now_ms;
        wanted.macs.iter().for_each(|mac| self.unknown.forget(mac));
        self.lab.hosts.update(name, |host| *host = wanted)?;
        self.store_host(name).await?;
        Ok(())
    }

    /// Refuses a host too many of an account. In an open lab all are the operator's.
    pub(crate) fn check_room_of(&self, account: &str, name: &str) -> Result<(), HostError> {
        if !self.people.accounts.tokens_needed() {
            return Ok(());
        }
        let max = self.ctx.config.limits.hosts_of_account_max;
        self.lab.hosts.check_room_of(account, name, max)
    }

    /// Makes sure that there is this host, which another replica may have heard of a moment ago.
    pub(crate) async fn know_host(&self, name: &str) -> Result<(), Refusal> {
        check_name("hostname", name)?;
        if self.lab.hosts.get(name).is_none() {
            let Some(stored) = self.ctx.docs.read(name).await? else {
                return Err(HostError::Unknown(name.to_owned()).into());
            };
            self.lab
                .hosts
                .update_known(name, stored.version, stored.doc);
        }
        Ok(())
    }
}

fn bad<T>(field: &str, expected: &'static str) -> Result<T, HostError> {
    let field = field.to_owned();
    Err(HostError::BadRegistration { field, expected })
}

fn read_registration(host: &mut Host, body: &Map<String, Value>) -> Result<(), HostError> {
    let registered = host.registered.get_or_insert_default();
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
                    registered.names_arch = true;
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
            "cpus" | "nr_cpu" => {
                let cpus = value.as_u64().and_then(|cpus| u32::try_from(cpus).ok());
                let Some(cpus) = cpus.filter(|cpus| (1..=CPUS_MAX).contains(cpus)) else {
                    return bad(field, "a number of CPUs, 1 to 65,536");
                };
                host.cpus = Some(cpus);
                host.free_cpus = Some(cpus);
            }
            "mac_addr" | "mac" | "tags" | "devices" | "kinds" | "tbox_type" => {
                let Some(items) = text_list(value) else {
                    return bad(field, "a text or a list of texts, at most 64");
                };
                match field.as_str() {
                    "tags" => registered.tags = items,
                    "devices" => registered.devices = items,
                    "kinds" | "tbox_type" => host.kinds = kinds(&items)?,
                    _ => host.macs = items.iter().map(|mac| canonical_mac(mac)).collect(),
                }
            }
            "facts" => registered.facts = read_facts(value)?,
            // Host files describe much more; none of it matters to matching.
            _ => {}
        }
    }
    describe(registered, body);
    registered.check_said()
}

fn read_facts(value: &Value) -> Result<Facts, HostError> {
    let facts = Facts::deserialize(value).ok();
    match facts.filter(|facts| facts::check(facts).is_ok()) {
        Some(facts) => Ok(facts),
        None => bad("facts", "lists of texts by family, as {pci: ['8086:1521']}"),
    }
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

#[cfg(test)]
mod tests {
    use fairlead_fault_store::{Fault, FaultStore, On, Step};

    use super::*;
    use crate::{
        Access, Clock, Config,
        testing::{embedded, flows, flows_beside, flows_over},
    };
    use fairlead_known::account_doc::AccountDoc;
    use fairlead_known::work_request::WorkRequest;
    use fairlead_store::{DocKind, JobStore, Version};
    use std::sync::Arc;

    fn asks(host: &str, account: &str, (request, tags): (u64, usize)) -> WorkRequest {
        let tags: Vec<String> = (0..tags).map(|n| format!("tag-{n:028}")).collect();
        let request = serde_json::json!({
            "session": "s", "request": request, "kinds": ["dc"], "arch": "x86_64", "memory_mb": 9, "free_memory_mb": 9,
            "tags": tags,
        });
        let request = serde_json::from_value(request).unwrap();
        WorkRequest::of(host, request).unwrap().by(account)
    }

    #[tokio::test]
    async fn an_account_has_so_many_hosts_and_its_share_of_what_they_say() {
        let data = tempfile::tempdir().unwrap();
        let mut config = Config {
            access: Access::Tokens,
            ..Config::embedded(data.path().to_owned())
        };
        config.limits.hosts_of_account_max = 3;
        // Twice a kilobyte for each of four hosts, and twice 64 bytes for each tag.
        config.limits.hosts_bytes_max = 4 * 2_048 + 100 * 128;
        let flows = flows_over(embedded(&data), config, Clock::system());
        let mut requests = 1..;
        let mut met = async |host: &str, account: &str, tags| -> Result<(), Refusal> {
            let mut ask = asks(host, account, (requests.next().unwrap(), tags));
            flows.hosts.check_room_of(account, host)?;
            let turn = flows.hosts.take_turn(&ask).await?;
            flows.hosts.meet(&mut ask, &turn)
        };
        let code = |met: Result<(), Refusal>| met.unwrap_err().body().code.as_str();
        for host in ["h1", "h2"] {
            met(host, "boxes", 0).await.unwrap();
        }
        assert_eq!(code(met("h1", "boxes", 60).await), "too_many");
        met("h1", "boxes", 20).await.unwrap();
        // What it said before is said no more.
        met("h1", "boxes", 0).await.unwrap();
        met("h3", "boxes", 0).await.unwrap();
        assert_eq!(code(met("h4", "boxes", 0).await), "quota");
        met("h4", "others", 0).await.unwrap();
        met("h1", "boxes", 0).await.unwrap();
    }

    /// A testbox of `rack1-*` took jobs that were meant for one machine: it named its group so.
    #[tokio::test]
    async fn a_group_that_is_another_s_host_is_refused() {
        let (_data, flows) = flows().await;
        let account = |hosts: &str, groups: Option<&str>| AccountDoc {
            role: "testbox".to_owned(),
            hosts: Some(vec![hosts.to_owned()]),
            groups: groups.map(|groups| vec![groups.to_owned()]),
            ..AccountDoc::default()
        };
        let other = account("target-7", None);
        flows
            .people
            .accounts
            .wrote("other", Version::default(), other.clone());
        flows.hosts.lab.hosts.update("target-8", |_| {}).unwrap();
        let may = |who: &AccountDoc, host: &str, group: &str| {
            flows
                .hosts
                .check_group(&Who::of("it", who), host, group)
                .is_ok()
        };
        let rack = account("rack1-*", None);
        for (group, is_free) in [
            ("target-7", false),
            ("target-8", false),
            ("rack", true),
            ("rack1-2", true),
        ] {
            assert_eq!(may(&rack, "rack1-1", group), is_free, "{group}");
        }
        assert!(may(&other, "target-7", "target-7"));
        let named = account("rack1-*", Some("rack1*"));
        assert!(may(&named, "rack1-1", "rack1") && !may(&named, "rack1-1", "rack2"));
        assert!(may(&named, "rack2--1", "rack2"), "as its name says");
    }

    /// A replica that heard only its heartbeats kept the class of a host that had booted another kernel. Seed 120386.
    #[tokio::test]
    async fn a_heartbeat_hides_no_newer_description() {
        let (_data, flows) = flows().await;
        let beside = flows_beside(&flows);
        let says = async |kernel: &str| {
            let facts = Facts::from([("kernel".to_owned(), vec![kernel.to_owned()])]);
            flows
                .hosts
                .lab
                .hosts
                .update("h", |host| {
                    host.facts = facts;
                    host.seen_ms = flows.ctx.clock.wall_ms();
                })
                .unwrap();
            flows.hosts.store_host("h").await.unwrap();
        };
        let known = || beside.hosts.lab.hosts.get("h").unwrap().facts["kernel"].clone();
        says("6.1").await;
        beside.placement.load_hosts().await.unwrap();
        assert_eq!(known(), ["6.1"]);
        says("6.12").await;
        let later_ms = flows.ctx.clock.wall_ms() + 60_000;
        beside
            .hosts
            .lab
            .hosts
            .update("h", |host| host.seen_ms = later_ms)
            .unwrap();
        beside.placement.load_hosts().await.unwrap();
        assert_eq!(known(), ["6.12"]);
        assert_eq!(beside.hosts.lab.hosts.get("h").unwrap().seen_ms, later_ms);
    }

    /// Other replicas never heard of it. Seed 5254.
    #[tokio::test]
    async fn a_host_whose_document_was_not_taken_is_stored_with_its_next_request() {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultStore::new(
            embedded(&data),
            [Step {
                on: On::PutDocs,
                fault: Fault::LostWithoutAnswer,
                // All tries of one change.
                times: 8,
            }],
        ));
        let config = Config::embedded(data.path().to_owned());
        let flows = flows_over(Arc::clone(&store) as _, config, Clock::system());
        flows
            .hosts
            .lab
            .hosts
            .update("h", |host| *host = Host::default())
            .unwrap();
        let there = async || store.get_doc(DocKind::Host, "h").await.unwrap();
        flows.hosts.keep_stored("h").await;
        assert!(there().await.is_none());
        flows.hosts.keep_stored("h").await;
        let first = there().await.unwrap();
        flows.hosts.keep_stored("h").await;
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
