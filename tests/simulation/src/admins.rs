//! Simulated admins: they reserve, cordon and reopen hosts, and limit accounts. Most seeds have none, and they have
//! their own randomness. So other seeds stay unchanged.

use std::sync::Arc;

use fairlead_scheduler::HealthCheck;
use fairlead_store::DocKind;
use serde_json::{Value, json};

use super::{chance::Chance, net::Message, process::site, timer::pause, world::World};

/// Random streams of the plan, and of admins before and during calm.
const PLAN_STREAM: u64 = 3;
const FAULTS_STREAM: u64 = 4;
const CALM_STREAM: u64 = 5;
/// Number of an admin's actions before calm, and during it.
const FAULTS_TIMES: u64 = 6;
const CALM_TIMES: u64 = 3;
/// Fraction (1 in N) of jobs that are retried on other hosts, in seeds with such jobs.
const ELSEWHERE_EVERY: u64 = 3;
/// Number of failures after which a host is suspect, in seeds with suspect hosts. The next constant is the fraction (1
/// in N) of their jobs that fail by the host's fault.
const SUSPECT_AFTER: u32 = 2;
const DISK_FAILS_EVERY: u64 = 4;

/// Features that only some seeds have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Hosts that are reserved for some accounts.
    Reserve,
    /// Hosts that are closed and reopened.
    Close,
    /// Limits of accounts and queues.
    Limit,
    /// Hosts that become suspect after failures, and are checked.
    Suspect,
    /// Jobs that are retried on another host.
    Elsewhere,
}

/// Features of a seed.
#[derive(Debug, Clone)]
pub(super) struct Plan(Vec<Use>);

impl Plan {
    pub(super) fn draw(seed: u64) -> Self {
        let chance = &mut Chance::new(seed, PLAN_STREAM);
        let all = [
            (Use::Reserve, 120),
            (Use::Close, 80),
            (Use::Limit, 120),
            (Use::Suspect, 120),
            (Use::Elsewhere, 250),
        ];
        let drawn = all.into_iter().filter(|(_, rate)| chance.hits(*rate));
        Self(drawn.map(|(it, _)| it).collect())
    }

    /// Returns the plan for labs whose hosts come and go, without retries on other hosts. Such a retry waits up to an
    /// hour for a host that is gone.
    pub(super) fn without_elsewhere(mut self) -> Self {
        self.0.retain(|it| *it != Use::Elsewhere);
        self
    }

    fn has(&self, it: Use) -> bool {
        self.0.contains(&it)
    }

    /// Returns true if admins act before calm.
    fn is_busy(&self) -> bool {
        let deeds = [Use::Reserve, Use::Close, Use::Limit];
        deeds.into_iter().any(|it| self.has(it))
    }

    /// Returns true if an account may be limited to a single running job. A cluster would then never run.
    pub(super) fn limits(&self) -> bool {
        self.has(Use::Limit)
    }

    /// Adds the fields for these features to a job with this number.
    pub(super) fn adds_to(&self, job: &mut Value, which: u64) {
        // The only other host may lack room for two nodes, and the cluster would wait for it for an hour.
        let is_alone = job.get("cluster").is_none();
        if is_alone && self.has(Use::Elsewhere) && which.is_multiple_of(ELSEWHERE_EVERY) {
            job["retry_elsewhere"] = true.into();
        }
        if self.has(Use::Suspect) && which.is_multiple_of(DISK_FAILS_EVERY) {
            job["disk_fails"] = 1.into();
        }
    }

    /// Returns the number of failures after which a host is suspect. 0: never.
    pub(super) fn suspect_after(&self) -> u32 {
        if self.has(Use::Suspect) {
            SUSPECT_AFTER
        } else {
            0
        }
    }

    /// Returns the health check of suspect hosts.
    pub(super) fn health_check(&self) -> Option<HealthCheck> {
        let job = json!({"suite": "sim-check", "run_ms": 100, "exit": 0, "memory": "64M"});
        let job = serde_json::from_value(job).ok()?;
        let check = HealthCheck::of(job, &site()).ok();
        check.filter(|_| self.has(Use::Suspect))
    }
}

/// An admin's request.
struct Deed {
    what: &'static str,
    path: String,
    body: Value,
    /// Host to reopen, and the time until then, ms.
    opens: Option<(String, u64)>,
}

fn deed(plan: &Plan, hosts: &[String], chance: &mut Chance) -> Option<Deed> {
    let all = [
        (Use::Reserve, "reserve"),
        (Use::Reserve, "unreserve"),
        (Use::Close, "cordon"),
        (Use::Limit, "limit"),
    ];
    let usual = all.iter().filter(|(it, _)| plan.has(*it));
    let usual: Vec<&str> = usual.map(|(_, what)| *what).collect();
    let what = chance.one_of(&usual, "");
    let host = hosts.get(chance.index(hosts.len()))?.clone();
    let whose = chance.one_of(
        &["accounts/ann", "accounts/bob", "queues/team"],
        "queues/team",
    );
    let accounts = [&["ann"][..], &["bob", "cid"], &["dee", "ann"]];
    let accounts = chance.one_of(&accounts, &["ann"]);
    let (seconds, most) = (chance.within(3..=15), chance.within(1..=3));
    let limits = [
        json!({"running": {"hard": most}}),
        json!({"running": {"soft": most}, "hours": {"soft": 0}}),
        json!({"waiting": {"hard": most * 3}, "running": {"hard": most}}),
        json!({"waiting": {}, "running": {}, "hours": {}}),
    ];
    let limits = limits.get(chance.index(limits.len()))?;
    let path = format!("/scheduler/v1/hosts/{host}/{what}");
    let (path, body, opens) = match what {
        "reserve" => (
            path,
            json!({"accounts": accounts, "until": format!("+{seconds}s")}),
            None,
        ),
        "unreserve" => (path, json!({}), None),
        "cordon" => (path, json!({}), Some((host, seconds * 1_000))),
        "limit" => (
            format!("/scheduler/v1/{whose}"),
            match whose {
                "queues/team" => json!({ "limits": limits, "users": "all" }),
                _ => json!({ "limits": limits }),
            },
            None,
        ),
        _ => return None,
    };
    Some(Deed {
        what,
        path,
        body,
        opens,
    })
}

impl World {
    /// Runs an admin before calm.
    pub(super) async fn administers(self: Arc<Self>) {
        let every_ms = self.scenario.fault_ms / FAULTS_TIMES;
        self.does(FAULTS_STREAM, FAULTS_TIMES, every_ms).await;
    }

    /// Runs an admin during calm.
    pub(super) async fn administers_in_calm(self: Arc<Self>) {
        self.does(CALM_STREAM, CALM_TIMES, 6_000).await;
    }

    async fn does(self: &Arc<Self>, stream: u64, times: u64, every_ms: u64) {
        let plan = &self.scenario.admins;
        if !plan.is_busy() {
            return;
        }
        let chance = &mut Chance::new(self.scenario.seed, stream);
        let hosts: Vec<String> = {
            let hosts = self.scenario.fixed().iter();
            hosts.map(|host| host.name.clone()).collect()
        };
        for _ in 0..times {
            pause(chance.within(0..=2 * every_ms)).await;
            let Some(deed) = deed(plan, &hosts, chance) else {
                return;
            };
            let what = format!("{} by {}", deed.what, deed.path);
            let message = Message::new(what, deed.path, &deed.body);
            self.person_asks(deed.what, &message).await;
            if let Some((host, for_ms)) = deed.opens {
                pause(for_ms).await;
                self.opens(&host).await;
            }
        }
    }

    /// Opens a host, whoever closed it.
    async fn opens(self: &Arc<Self>, host: &str) {
        self.check().is_opened(host);
        let path = format!("/scheduler/v1/hosts/{host}/uncordon");
        let message = Message::new(format!("uncordon {host}"), path, &json!({}));
        self.person_asks("uncordon", &message).await;
    }

    /// Opens all hosts that are closed now, until they are open.
    pub(super) async fn opens_hosts(self: &Arc<Self>) {
        let closed = |world: &Self| -> Vec<String> {
            let truth = world.truth();
            truth
                .docs(DocKind::Closure)
                .map(|doc| doc.id.clone())
                .collect()
        };
        for host in closed(self) {
            while closed(self).contains(&host) {
                self.opens(&host).await;
                pause(100).await;
            }
        }
    }
}
