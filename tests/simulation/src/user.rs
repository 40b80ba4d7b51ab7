//! Simulated people: they submit, cancel, stop jobs and change weights, and retry without an answer.

use std::sync::Arc;

use fairlead_api::{ErrorCode, SubmitItem};
use fairlead_job::JobId;
use serde_json::{Value, json};

use super::{
    chance::Chance,
    needs,
    net::{Answer, Asker, Failed, Message},
    reuse,
    scenario::{HostPlan, Scenario, TAGS},
    timer::pause,
    world::World,
};

/// Time that people wait for an answer, ms.
const ANSWER_MS: u64 = 15_000;
/// Maximum number of tries of a request without an answer.
const TRIES: u32 = 4;
/// Maximum number of jobs in one submit.
const BATCH_MAX: u64 = 6;

/// Sequences of the first jobs of every 16: one job in eight is in a sequence.
const SEQUENCES: [&str; 2] = ["s", "t"];

/// Unknown queues that the first jobs of every 12 without a queue name: invented ones, and other accounts' own.
const INVENTED: [&str; 5] = ["x-1", "x-2", "x-3", "ann", "dee"];

/// Names of groups.
const GROUPS: [&str; 6] = ["g1", "g2", "g3", "g4", "g5", "g6"];
/// Position among every 16 jobs of the one that becomes a cluster of two nodes.
const CLUSTER: u64 = 5;

/// Returns true if each host that could run the job runs several at once.
fn has_room_for_two(scenario: &Scenario, job: &Value) -> bool {
    let could = |host: &&HostPlan| {
        let kinds = host.kinds.iter();
        job["arch"] == host.arch && kinds.into_iter().any(|kind| job["testbox"] == *kind)
    };
    let mut hosts = scenario.fixed().iter().filter(could);
    let takes_two = |host: &HostPlan| host.jobs_max > 1 && host.cpus.is_none_or(|cpus| cpus > 1);
    job.get("memory").is_some() && !scenario.admins.limits() && hosts.all(takes_two)
}

/// Makes a job a cluster of two nodes that one host has room for.
fn make_cluster(job: &mut Value) {
    let memory = job["memory"].as_str().unwrap_or_default();
    let memory_mb: u64 = memory.trim_end_matches('M').parse().unwrap_or(0);
    job["memory"] = format!("{}M", (memory_mb / 2).max(1)).into();
    if let Some(cpus) = job.get("need_cpus").and_then(Value::as_u64) {
        job["need_cpus"] = (cpus / 2).max(1).into();
    }
    job["cluster"] = "cs-s1-c1".into();
    job["cluster_wait"] = "20s".into();
}

/// Makes a job run in parts.
fn split(chance: &mut Chance, job: &mut Value) {
    let mut shards = json!({"count": chance.within(2..=6), "fail_fast": chance.hits(400)});
    if chance.hits(300) {
        shards["within"] = format!("{}s", chance.within(5..=90)).into();
    }
    job["shards"] = shards;
}

/// Makes a job join a group, perhaps under a name in it.
fn join(chance: &mut Chance, job: &mut Value) {
    let mut group = json!({
        "id": chance.one_of(&GROUPS, "g1"),
        "fail_fast": chance.hits(200),
        "within": format!("{}s", chance.within(5..=40)),
    });
    if chance.hits(500) {
        group["shard"] = format!("s{}", chance.within(1..=5)).into();
    }
    job["group"] = group;
}

/// Returns a job that at least one host can run.
pub(super) fn job(scenario: &Scenario, chance: &mut Chance) -> Value {
    let host = scenario.fixed().get(chance.index(scenario.fixed().len()));
    let mut job = json!({
        "suite": chance.one_of(&["sim-a", "sim-b", "sim-c"], "sim-a"),
        "my_account": chance.one_of(&["ann", "bob", "cid", "dee"], "ann"),
        "priority": i64::try_from(chance.within(0..=4)).unwrap_or(0) - 2,
        "run_ms": if chance.hits(100) { chance.within(5_000..=15_000) } else { chance.within(50..=3_000) },
        "exit": u64::from(chance.hits(150)),
        "stop_when_cut_off": chance.hits(350),
        "retry": chance.within(0..=3),
    });
    if let (Some(host), Some(job)) = (host, job.as_object_mut()) {
        place(host, chance, job);
        if scenario.has_needs() && chance.hits(150) {
            needs::take_all_of(host, job);
        }
        if scenario.is_younger() {
            choose_by_tags(host, chance, job);
        }
        times(chance, job);
        let queue = chance.one_of(&["", "", "", "vip", "idle", "team"], "");
        if !queue.is_empty() {
            job.insert("queue".to_owned(), queue.into());
        }
    }
    job
}

/// Adds times: earliest start, maximum wait, and latest end.
fn times(chance: &mut Chance, job: &mut serde_json::Map<String, Value>) {
    let times = [
        (100, "start_at", "+", 1..=12),
        (50, "queue_timeout", "", 5..=60),
        (30, "deadline", "+", 20..=90),
    ];
    for (rate, field, sign, seconds) in times {
        if chance.hits(rate) {
            let seconds = chance.within(seconds);
            job.insert(field.to_owned(), format!("{sign}{seconds}s").into());
        }
    }
}

/// Chooses hosts: this one, and perhaps others like it.
fn place(host: &HostPlan, chance: &mut Chance, job: &mut serde_json::Map<String, Value>) {
    let kind = chance.one_of(&host.kinds, "dc");
    let here = chance.hits(250);
    let testbox = match (kind, here) {
        ("hw", true) => host.name.clone(),
        (kind, _) => kind.to_owned(),
    };
    job.insert("testbox".to_owned(), testbox.into());
    job.insert("arch".to_owned(), host.arch.into());
    if kind != "hw" {
        if here {
            job.insert("target_machines".to_owned(), json!([host.name]));
        }
        let memory_mb = chance.within(64..=u64::from(host.memory_mb));
        job.insert("memory".to_owned(), format!("{memory_mb}M").into());
    }
    if let Some(cpus) = host.cpus.filter(|_| chance.hits(700)) {
        let needed = chance.within(1..=u64::from(cpus));
        job.insert("need_cpus".to_owned(), needed.into());
    }
    let some = |chance: &mut Chance, all: &[&'static str]| -> Vec<&'static str> {
        all.iter().copied().filter(|_| chance.hits(300)).collect()
    };
    let (tags, devices) = (some(chance, &host.tags), some(chance, &host.devices));
    if !tags.is_empty() {
        job.insert("tags".to_owned(), json!(tags));
    }
    if !devices.is_empty() {
        job.insert("sched.devices".to_owned(), json!(devices));
    }
}

/// Adds tags that the host lacks, alternatives and preferences. The host can still run the job, perhaps only after a
/// wait.
fn choose_by_tags(host: &HostPlan, chance: &mut Chance, job: &mut serde_json::Map<String, Value>) {
    let lacks = TAGS.iter().copied().filter(|tag| !host.tags.contains(tag));
    let lacked: Vec<&str> = lacks.filter(|_| chance.hits(400)).collect();
    let has: Vec<&str> = host
        .tags
        .iter()
        .copied()
        .filter(|_| chance.hits(500))
        .collect();
    let any = chance.one_of(&TAGS, "old");
    if chance.hits(300) && !lacked.is_empty() {
        job.insert("not_tags".to_owned(), json!(lacked));
    }
    if chance.hits(300) && !has.is_empty() {
        let of_host = json!({"tags": has, "not_tags": lacked});
        job.insert("any_of".to_owned(), json!([{"tags": [any]}, of_host]));
    }
    if chance.hits(200) {
        let after = format!("{}s", chance.within(1..=20));
        let last = json!({"after": after, "tags": has, "not_tags": lacked});
        // No host has this tag, so the job waits.
        job.remove("tags");
        job.remove("not_tags");
        job.insert("any_of".to_owned(), json!([{"tags": ["none"]}]));
        job.insert("else".to_owned(), last);
    }
    if chance.hits(300) {
        job.insert("prefer".to_owned(), json!([any, "none"]));
    }
}

impl World {
    /// Asks a random replica, then others, until there is a final answer.
    pub(super) async fn person_asks(
        self: &Arc<Self>,
        what: &str,
        message: &Message,
    ) -> Option<Answer> {
        for _ in 0..TRIES {
            let slot = self.chance().index(self.slots.len());
            let asked = self.ask(Asker::User, slot, message.clone(), ANSWER_MS);
            match asked.await {
                Ok(answer) => {
                    self.user_answered(what, &answer);
                    if !matches!(answer.status, 429 | 503) {
                        return Some(answer);
                    }
                    if answer.has_item(ErrorCode::Unknown) {
                        self.check().may_be_repeated(&message.what);
                    }
                }
                Err(Failed::Lost) => self.check().may_be_repeated(&message.what),
                Err(Failed::Refused) => {}
            }
            let rest_ms = self.chance().within(50..=1_000);
            pause(rest_ms).await;
        }
        None
    }

    /// Returns the job with this number of a submit.
    fn draws(&self, chance: &mut Chance, what: &str, number: u64) -> Value {
        let may_reuse = reuse::is_drawn(&self.scenario, chance);
        let mut job = if may_reuse {
            reuse::job(&self.scenario, chance)
        } else {
            job(&self.scenario, chance)
        };
        // Labels do not change the workload.
        job["labels"] = json!([what, number.to_string()]);
        // The choice uses no random numbers, so the courses of known seeds change only here.
        let which = number + what.bytes().map(u64::from).sum::<u64>();
        if let Some(name) = SEQUENCES.get(usize::try_from(which % 16).unwrap_or(0)) {
            if self.scenario.has_pairs() {
                job["concurrency"] = json!({"group": name, "limit": 2});
            } else {
                job["sequence"] = (*name).into();
            }
        } else if which % 16 == CLUSTER && !may_reuse && has_room_for_two(&self.scenario, &job) {
            make_cluster(&mut job);
        }
        if self.scenario.has_shards()
            && !may_reuse
            && job.get("cluster").is_none()
            && chance.hits(250)
        {
            split(chance, &mut job);
        }
        let is_plain = job.get("cluster").is_none() && job.get("shards").is_none();
        if self.scenario.has_groups() && is_plain && chance.hits(400) {
            join(chance, &mut job);
        }
        if job.get("queue").is_none_or(Value::is_null)
            && let Some(name) = INVENTED.get(usize::try_from(which % 12).unwrap_or(0))
        {
            job["queue"] = (*name).into();
        }
        self.scenario.admins.adds_to(&mut job, which);
        if self.scenario.has_needs() && job.get("group").is_none() {
            needs::link(chance, number, &mut job);
        }
        job
    }

    /// Submits `many` jobs in one request. The accepted ones are noted and returned.
    pub(super) async fn submit(self: &Arc<Self>, many: u64) -> Vec<JobId> {
        let what = self.check().next_submit();
        let jobs: Vec<Value> = {
            let mut chance = self.chance();
            let draw = |number| self.draws(&mut chance, &what, number);
            (0..many).map(draw).collect()
        };
        let message = Message::new(what, "/scheduler/v1/jobs/submit", &jobs);
        let Some(answer) = self.person_asks("submit", &message).await else {
            return Vec::new();
        };
        let items: Vec<SubmitItem> = answer.json().unwrap_or_default();
        let mut accepted = Vec::new();
        for item in items {
            match item.job_id.parse::<JobId>() {
                Ok(id) if item.code.is_empty() => {
                    self.note(format_args!("acknowledged {id}"));
                    self.check().submitted(id);
                    accepted.push(id);
                }
                _ => self.note(format_args!("refused: {} {}", item.code, item.message)),
            }
        }
        accepted
    }

    /// Runs one person, until calm.
    pub(super) async fn person(self: Arc<Self>, jobs: u64) {
        let (mut left, mut mine) = (jobs, Vec::new());
        let every_ms = (self.scenario.fault_ms / (left / 2).max(1)).max(1);
        loop {
            let rest_ms = self.chance().within(0..=every_ms * 2);
            tokio::select! {
                biased;
                () = self.calm.cancelled() => return,
                () = pause(rest_ms) => {}
            }
            let doing = self.chance().within(0..=9);
            match doing {
                0 => self.ends_one(&mine, "cancel").await,
                1 => self.ends_one(&mine, "terminate").await,
                2 => self.changes_weight().await,
                3 if self.scenario.has_groups() => self.closes_a_group().await,
                _ if left > 0 => {
                    let many = self.chance().within(1..=BATCH_MAX).min(left);
                    left -= many;
                    mine.extend(self.submit(many).await);
                }
                _ => {}
            }
        }
    }

    async fn ends_one(self: &Arc<Self>, mine: &[JobId], how: &str) {
        let index = self.chance().index(mine.len());
        if let Some(id) = mine.get(index) {
            let message = Message::new(
                format!("{how} {id}"),
                format!("/scheduler/v1/jobs/{id}/{how}"),
                &json!({}),
            );
            self.person_asks(how, &message).await;
        }
    }

    async fn closes_a_group(self: &Arc<Self>) {
        let (account, group) = {
            let mut chance = self.chance();
            let account = chance.one_of(&["ann", "bob", "cid", "dee"], "ann");
            (account, chance.one_of(&GROUPS, "g1"))
        };
        let path = format!("/scheduler/v1/groups/{group}/close?account={account}");
        let message = Message::new(format!("close {group} of {account}"), path, &json!({}));
        self.person_asks("close", &message).await;
    }

    async fn changes_weight(self: &Arc<Self>) {
        let (queue, weight) = {
            let mut chance = self.chance();
            let queue = chance.one_of(&["ann", "bob", "team"], "ann");
            (queue, chance.within(1..=50))
        };
        let path = format!("/scheduler/v1/queues/{queue}");
        let mut change = json!({ "weight": weight });
        if queue == "team" {
            change["users"] = "all".into();
        }
        let message = Message::new(format!("weight of {queue}"), path, &change);
        self.person_asks("queue", &message).await;
    }
}
