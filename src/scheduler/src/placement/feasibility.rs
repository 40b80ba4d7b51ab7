//! Feasibility: tells at the submit whether any known host could ever run a job.

use std::collections::HashMap;

use fairlead_dispatch::{CPUS_UNCHECKED, HostProperties, Millis, Requirement};
use fairlead_job::TboxType;
use fairlead_store::JobState;

use crate::placement::PlacementFlow;
use fairlead_known::{
    feasibility::{REMEMBER_MS, SHAPES_MAX, Wants},
    hosts::Host,
    reservations::Reservation,
};
use fairlead_lifecycle::alarm::anywhere;

/// Most shapes of one submit for which all hosts are looked at; jobs of others are not warned of.
const LOOKS_MAX: usize = 100;

/// Why jobs of one submit could never run, or cannot for now, which also depends on whose they are.
#[derive(Debug, Default)]
pub(crate) struct Infeasible(
    HashMap<Wants, Option<String>>,
    HashMap<(Wants, String), Option<String>>,
);

impl PlacementFlow {
    /// Why none of the known hosts could ever run the job; `None`: one could, busy or not.
    pub(crate) fn never_runs(&self, state: &JobState, asked: &mut Infeasible) -> Option<String> {
        let (wants, now) = (Wants::of(state), self.ctx.clock.now());
        let is_fresh = |since: &Millis| now.0.saturating_sub(since.0) < REMEMBER_MS;
        if self
            .lab
            .feasibility
            .with(|fits| fits.get(&wants).is_some_and(is_fresh))
        {
            return None;
        }
        if let Some(known) = asked.0.get(&wants) {
            return known.clone();
        }
        if asked.0.len() >= LOOKS_MAX {
            return None;
        }
        let mut nearest = Nearest::default();
        self.lab
            .hosts
            .each(|name, host| nearest.look(&wants, name, host));
        for (name, pool) in self.lab.pools.all() {
            nearest.look(&wants, &name, &pool.template(&name));
        }
        let never = nearest.words(&wants);
        if never.is_none() {
            self.lab.feasibility.with(|fits| {
                if fits.len() >= SHAPES_MAX {
                    fits.clear();
                }
                fits.insert(wants.clone(), now);
            });
        }
        asked.0.insert(wants, never.clone());
        never
    }
}

impl PlacementFlow {
    /// That all hosts which could run the job are kept for others, with one of them; `None`: one is not.
    pub(crate) fn kept_from(&self, state: &JobState, asked: &mut Infeasible) -> Option<String> {
        let kept = self.reservations();
        if kept.is_empty() {
            return None;
        }
        let key = (Wants::of(state), state.account.clone());
        if let Some(known) = asked.1.get(&key) {
            return known.clone();
        }
        if asked.1.len() >= LOOKS_MAX {
            return None;
        }
        let words = self.kept_by(state, &key.0, &kept);
        asked.1.insert(key, words.clone());
        words
    }

    fn kept_by(
        &self,
        state: &JobState,
        wants: &Wants,
        kept: &[(String, Reservation)],
    ) -> Option<String> {
        let keeps_off = |(name, reservation): &&(String, Reservation)| {
            !reservation.serves(&state.account) && self.could(wants, name)
        };
        let (name, reservation) = kept.iter().find(keeps_off)?;
        let mut open = Nearest::default();
        self.lab.hosts.each(|name, host| {
            let found = kept.binary_search_by(|(kept, _)| kept.as_str().cmp(name));
            let reservation = found.ok().and_then(|at| kept.get(at));
            if reservation.is_none_or(|(_, known)| known.serves(&state.account)) {
                open.look(wants, name, host);
            }
        });
        (open.with_all == 0).then(|| {
            let words = reservation.words();
            format!("all hosts that could run the job are closed or reserved; host {name}: {words}")
        })
    }

    /// A job that is to be tried elsewhere may run anywhere if no other known, open host could run it.
    pub(crate) fn elsewhere(&self, before: &JobState, wanted: JobState) -> JobState {
        if wanted.not_on.is_empty() || wanted.not_on == before.not_on {
            return wanted;
        }
        if self.has_elsewhere(&wanted) {
            return wanted;
        }
        anywhere(&wanted, "no other known host could run it")
    }

    /// Whether a known, open host could run a job that it is not kept off.
    pub(crate) fn has_elsewhere(&self, state: &JobState) -> bool {
        let (wants, mut others) = (Wants::of(state), Nearest::default());
        self.lab.hosts.each(|name, host| {
            let is_kept = |reservation: Reservation| !reservation.serves(&state.account);
            let is_out = state.not_on.iter().any(|not| not == name)
                || self.lab.cordons.of(name).is_some()
                || self.reserved(name).is_some_and(is_kept);
            if !is_out {
                others.look(&wants, name, host);
            }
        });
        others.with_all > 0
    }

    /// That fewer known hosts could be nodes of a cluster than it has nodes which want a whole machine; `None`: enough
    /// could, or that none could is said of each node.
    pub(crate) fn too_few<'a>(&self, nodes: impl Iterator<Item = &'a JobState>) -> Option<String> {
        let mut alike: Vec<(Wants, usize)> = Vec::new();
        for wants in nodes
            .filter(|node| node.tbox_type == TboxType::Hw)
            .map(Wants::of)
        {
            match alike.iter_mut().find(|(known, _)| *known == wants) {
                Some((_, nodes)) => *nodes += 1,
                None => alike.push((wants, 1)),
            }
        }
        alike.into_iter().find_map(|(wants, nodes)| {
            let mut all = Nearest::default();
            self.lab.hosts.each(|name, host| all.look(&wants, name, host));
            let hosts = all.with_all;
            (1..nodes).contains(&hosts).then(|| {
                format!("{nodes} nodes of the cluster need a whole machine each; {hosts} of the known hosts could be one")
            })
        })
    }

    /// Whether this host could ever run the job, as far as is known of it.
    pub(crate) fn could_run(&self, state: &JobState, name: &str) -> bool {
        self.could(&Wants::of(state), name)
    }

    fn could(&self, wants: &Wants, name: &str) -> bool {
        let mut alone = Nearest::default();
        if let Some(host) = self.lab.hosts.get(name) {
            alone.look(wants, name, &host);
        }
        alone.with_all > 0
    }
}

/// Whether a machine like this one could run the job.
pub(crate) fn fits_template(state: &JobState, name: &str, template: &Host) -> bool {
    let mut alone = Nearest::default();
    alone.look(&Wants::of(state), name, template);
    alone.with_all > 0
}

/// All requirements that depend on the host, in the order in which it is said what even the best host lacks.
const ORDER: [Requirement; 8] = [
    Requirement::HostKey,
    Requirement::Architecture,
    Requirement::Memory,
    Requirement::Cpus,
    Requirement::Tags,
    Requirement::NotTags,
    Requirement::AnyOf,
    Requirement::Devices,
];

/// How many of these a host meets that is of the kind that the job wants.
const KIND: usize = 2;
/// How many a host meets that also has enough memory.
const WITH_MEMORY: usize = 3;

/// How far the best of all hosts comes.
#[derive(Debug, Default)]
struct Nearest {
    known: usize,
    /// Hosts that meet all requirements.
    with_all: usize,
    /// How many requirements the best host meets, in the order in which they are named.
    met: usize,
    /// Most memory of hosts that offer a key and have the architecture, MB.
    most_mb: u32,
    /// Most CPUs of those with enough memory.
    most_cpus: u32,
}

/// How a host offers the kind that a job needs; empty: it needs a certain host or group.
fn how(wants: &Wants) -> String {
    let kind = wants.keys.iter().find_map(|key| {
        let (kind, _) = key.split_once('.')?;
        matches!(kind, "dc" | "vm").then_some(kind)
    });
    kind.map_or_else(String::new, |kind| {
        format!("; a host offers {kind} jobs if its agent runs with --kind {kind}")
    })
}

impl Nearest {
    fn look(&mut self, wants: &Wants, name: &str, host: &Host) {
        let (keys, nobody) = (host.keys(name), String::new());
        // All hosts are looked at for a submit, and few jobs ask for tags.
        let tags = if wants.asks_for_tags() {
            host.all_tags()
        } else {
            Vec::new()
        };
        let devices = host.all_devices();
        let has = HostProperties {
            // What is wanted avoids no host.
            name: &nobody,
            arch: &host.arch,
            keys: &keys,
            tags: &tags,
            devices: &devices,
            accounts: &[],
            memory_mb: host.memory_mb,
            cpus: host.cpus.unwrap_or(CPUS_UNCHECKED),
        };
        let wanted = wants.requirements();
        let is_met = |requirement: &&Requirement| requirement.is_met(&wanted, &has);
        let met = ORDER.iter().take_while(is_met).count();
        self.known += 1;
        self.with_all += usize::from(met == ORDER.len());
        self.met = self.met.max(met);
        if met >= KIND {
            self.most_mb = self.most_mb.max(host.memory_mb);
        }
        if met >= WITH_MEMORY {
            self.most_cpus = self.most_cpus.max(host.cpus.unwrap_or(CPUS_UNCHECKED));
        }
    }

    /// What even the best one lacks.
    fn words(&self, wants: &Wants) -> Option<String> {
        let keys = wants.keys.join(" or ");
        if self.known == 0 {
            return Some(format!(
                "no host is known yet; the job waits for one that offers {keys}"
            ));
        }
        Some(match ORDER.get(self.met)? {
            Requirement::HostKey if self.known == 1 => {
                format!("the only known host does not offer {keys}{}", how(wants))
            }
            Requirement::HostKey => format!(
                "none of the {} known hosts offers {keys}{}",
                self.known,
                how(wants)
            ),
            Requirement::Architecture => {
                format!("no host that offers {keys} has arch {}", wants.arch)
            }
            Requirement::Memory => format!(
                "the job needs {} MB; the largest host that offers {keys} has {} MB",
                wants.memory_mb, self.most_mb
            ),
            Requirement::Cpus => format!(
                "the job needs {} CPUs; the largest host with enough memory has {}",
                wants.cpus, self.most_cpus
            ),
            Requirement::Tags => {
                let tags = wants.tags.join(", ");
                format!("no host with enough memory and CPUs has all of the tags {tags}")
            }
            Requirement::NotTags => {
                let avoided = wants.not_tags.join(", ");
                format!(
                    "every host with the tags of the job has one of {avoided}, which the job avoids"
                )
            }
            Requirement::AnyOf => {
                "no host with the tags of the job meets an alternative of any_of".to_owned()
            }
            Requirement::Devices => {
                let devices = wants.devices.join(", ");
                format!("no host with the tags of the job has all of the devices {devices}")
            }
            // They are no matter of the host.
            Requirement::Account | Requirement::OtherHost => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use fairlead_api::HostReserve;

    use super::*;
    use crate::testing::{flows, state};
    use fairlead_known::cordons::CordonKind;

    fn host() -> Host {
        Host {
            kinds: vec![TboxType::Dc],
            arch: "x86_64".to_owned(),
            memory_mb: 8_192,
            ..Host::default()
        }
    }

    #[tokio::test]
    async fn the_first_thing_that_nobody_has_is_named() {
        let (_data, flows) = flows().await;
        let never = |job: &JobState| flows.placement.never_runs(job, &mut Infeasible::default());
        let job = state(1);
        assert!(never(&job).is_some_and(|why| why.contains("no host is known yet")));
        let host = Host {
            tags: vec!["ssd".to_owned()],
            ..host()
        };
        flows
            .hosts
            .lab
            .hosts
            .update("h", |known| *known = host)
            .unwrap();
        assert_eq!(never(&job), None);
        let text = |text: &str| vec![text.to_owned()];
        let with = |change: fn(&mut JobState, Vec<String>), words: &str| {
            let mut job = job.clone();
            change(&mut job, text(words));
            job
        };
        let cases = [
            (
                with(|job, keys| job.host_keys = keys, "hw@a66"),
                "the only known host does not offer hw@a66",
            ),
            (
                with(|job, arch| job.arch = arch.concat(), "riscv64"),
                "arch riscv64",
            ),
            (with(|job, _| job.memory_mb = 9_000, ""), "has 8192 MB"),
            (with(|job, tags| job.tags = tags, "gpu"), "tags gpu"),
            (
                with(|job, devices| job.devices = devices, "nic"),
                "devices nic",
            ),
        ];
        for (job, why) in cases {
            let never = never(&job).unwrap_or_default();
            assert!(never.contains(why), "{never}");
        }
    }

    #[tokio::test]
    async fn a_job_is_tried_elsewhere_only_if_there_is_such_a_place() {
        let (_data, flows) = flows().await;
        for name in ["bad", "good"] {
            flows
                .hosts
                .lab
                .hosts
                .update(name, |known| *known = host())
                .unwrap();
        }
        let wanted = JobState {
            not_on: vec!["bad".to_owned()],
            reason: "attempt 1 ended".to_owned(),
            ..state(1)
        };
        let settled = || flows.placement.elsewhere(&state(1), wanted.clone());
        assert_eq!(settled().not_on, ["bad"]);
        flows
            .hosts
            .close_host("good", CordonKind::Cordon, "", "root")
            .await
            .unwrap();
        let settled = settled();
        assert!(settled.not_on.is_empty());
        assert!(
            settled
                .reason
                .starts_with("attempt 1 ended; no other known host"),
            "{}",
            settled.reason
        );
        assert_eq!(
            flows.placement.elsewhere(&wanted, wanted.clone()),
            wanted,
            "said once"
        );
    }

    #[tokio::test]
    async fn that_all_hosts_are_kept_for_others_is_said() {
        let (_data, flows) = flows().await;
        for name in ["g", "h"] {
            flows
                .hosts
                .lab
                .hosts
                .update(name, |known| *known = host())
                .unwrap();
        }
        let keep = async |name: &str| {
            let asked = HostReserve {
                accounts: vec!["ann".to_owned()],
                until: "+1h".to_owned(),
                reason: String::new(),
            };
            flows
                .hosts
                .reserve_host(name, &asked, "root")
                .await
                .unwrap();
        };
        keep("h").await;
        let kept_from = |job: &JobState| flows.placement.kept_from(job, &mut Infeasible::default());
        assert_eq!(kept_from(&state(1)), None, "host g is free");
        keep("g").await;
        let kept = kept_from(&state(1)).unwrap_or_default();
        assert!(
            kept.contains("host g: it is reserved for jobs of ann until"),
            "{kept}"
        );
        let anns = JobState {
            account: "ann".to_owned(),
            ..state(1)
        };
        assert_eq!(kept_from(&anns), None);
    }

    #[tokio::test]
    async fn a_submit_of_many_shapes_looks_at_all_hosts_only_so_often() {
        let (_data, flows) = flows().await;
        let mut asked = Infeasible::default();
        let warned = (1..=300).filter(|mb| {
            let job = JobState {
                memory_mb: *mb,
                ..state(1)
            };
            flows.placement.never_runs(&job, &mut asked).is_some()
        });
        assert_eq!(warned.count(), LOOKS_MAX);
    }
}
