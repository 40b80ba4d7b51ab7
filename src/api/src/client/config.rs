//! Configuration of a client, and the parameters of its larger requests.

use std::time::Duration;

/// How to reach the replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Base URLs of the replicas, at least one, for example `http://127.0.0.1:3000`; without a scheme,
    /// `http` is meant. They are tried in this order, starting at the last one that answered.
    pub urls: Vec<String>,
    /// The token of the account or testbox, sent as `Authorization: Bearer`. `None`: nothing is sent.
    pub token: Option<String>,
    /// How long a connection may take to be made. Default 3 s.
    pub connect_timeout: Duration,
    /// How long an answer may take, or the next piece of a stream; long polls add their wait.
    /// Default 30 s.
    pub request_timeout: Duration,
    /// How long to go on trying over all URLs, with growing and random pauses. Zero: one try a URL.
    /// The first round over the URLs is always finished. Default 15 s.
    pub retry_for: Duration,
    /// While a long poll waits, and there are other replicas: how often this one is asked for a sign of life, and
    /// how long it may take to give one; without one the poll goes to the next replica. Default 3 s.
    pub sign_of_life: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            token: None,
            connect_timeout: Duration::from_secs(3),
            request_timeout: Duration::from_secs(30),
            retry_for: Duration::from_secs(15),
            sign_of_life: Duration::from_secs(3),
        }
    }
}

impl ClientConfig {
    /// The defaults, for these replicas.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// Which jobs to list. What is empty or `None` does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Stages, any of them.
    pub stage: Vec<String>,
    /// Healths, any of them.
    pub health: Vec<String>,
    /// Accounts, any of them.
    pub account: Vec<String>,
    /// Queues, any of them.
    pub queue: Vec<String>,
    /// Hosts, any of them.
    pub host: Vec<String>,
    /// Suites, any of them.
    pub suite: Vec<String>,
    /// Submits, any of them.
    pub submit_id: Vec<String>,
    /// Groups of jobs, any of them.
    pub group_id: Vec<String>,
    /// Groups of testboxes, any of them.
    pub tbox_group: Vec<String>,
    /// Sequences, any of them.
    pub sequence: Vec<String>,
    /// Words `key=value`: with one key any of the values, with several keys all.
    pub kv: Vec<String>,
    /// Whether each job lists its words.
    pub with_kv: bool,
    /// The crash signature; with `*` at its end: all that begin so.
    pub signature: Option<String>,
    /// `all`, `no_shards`, `no_parents` or `only_shards`; `None`: no shards, but with filters by stage, health
    /// or host.
    pub parts: Option<String>,
    /// Only shards of this job.
    pub shards_of: Option<String>,
    /// Submitted at this time or later, UTC epoch ms.
    pub since_ms: Option<u64>,
    /// Submitted before this time, UTC epoch ms.
    pub until_ms: Option<u64>,
    /// `stage`, `suite` or another field by which jobs are counted instead of listed; `None`: they are listed.
    pub group_by: Option<String>,
    /// `newest` or `oldest` first; `None`: as the server likes.
    pub order: Option<String>,
    /// `next` of the page before.
    pub after: Option<String>,
    /// How many at most; `None`: as the server likes.
    pub limit: Option<u32>,
}

impl JobQuery {
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let lists = [
            ("stage", &self.stage),
            ("health", &self.health),
            ("account", &self.account),
            ("queue", &self.queue),
            ("host", &self.host),
            ("suite", &self.suite),
            ("submit_id", &self.submit_id),
            ("group_id", &self.group_id),
            ("tbox_group", &self.tbox_group),
            ("sequence", &self.sequence),
        ];
        let mut pairs: Vec<_> = lists
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| (name, values.join(",")))
            .collect();
        pairs.extend(self.kv.iter().map(|word| ("kv", word.clone())));
        push(&mut pairs, "with_kv", self.with_kv.then_some(true));
        push(&mut pairs, "signature", self.signature.as_ref());
        push(&mut pairs, "parts", self.parts.as_ref());
        push(&mut pairs, "shards_of", self.shards_of.as_ref());
        push(&mut pairs, "since_ms", self.since_ms);
        push(&mut pairs, "until_ms", self.until_ms);
        push(&mut pairs, "group_by", self.group_by.as_ref());
        push(&mut pairs, "order", self.order.as_ref());
        push(&mut pairs, "after", self.after.as_ref());
        push(&mut pairs, "limit", self.limit);
        pairs
    }
}

/// What a testbox, or a person for its job, reports. What is empty or `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobUpdate {
    /// Which try; a report about another try than the present is refused with 409.
    pub attempt: Option<u16>,
    /// The token from the grant, where the caller has no account.
    pub job_token: Option<String>,
    /// How far it is.
    pub job_stage: Option<String>,
    /// How it ended.
    pub job_health: Option<String>,
    /// The step inside the stage, free text.
    pub job_step: Option<String>,
    /// Whether its results are in.
    pub job_data_readiness: Option<String>,
    /// Named points that the run has reached.
    pub milestones: Vec<String>,
    /// Exit code of the workload.
    pub exit_code: Option<i32>,
    /// Under which address its peers reach this testbox.
    pub address: Option<String>,
    /// Why it is as it is, one sentence.
    pub reason: Option<String>,
    /// Whether the job shall be tried on another host, if it is tried again.
    pub avoid_host: bool,
    /// The title of the kernel crash that it printed.
    pub crash_signature: Option<String>,
    /// The most memory that it had at one time, MB.
    pub peak_memory_mb: Option<u32>,
    /// CPU time of all of its processes, milliseconds.
    pub cpu_ms: Option<u32>,
    /// The id of its outputs, which were put before.
    pub outputs: Option<String>,
    /// What the image holds that it ran in, as the host tells its images.
    pub image_digest: Option<String>,
    /// Whether `results.json` is among its results, so that somebody counts its test cases.
    pub has_cases: bool,
    /// Puts the end off by this much, seconds.
    pub renew_seconds: Option<u64>,
}

impl JobUpdate {
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        push(&mut pairs, "attempt", self.attempt);
        push(&mut pairs, "job_stage", self.job_stage.as_ref());
        push(&mut pairs, "job_health", self.job_health.as_ref());
        push(&mut pairs, "job_step", self.job_step.as_ref());
        push(&mut pairs, "outputs", self.outputs.as_ref());
        push(&mut pairs, "image_digest", self.image_digest.as_ref());
        push(&mut pairs, "has_cases", self.has_cases.then_some(1));
        push(
            &mut pairs,
            "job_data_readiness",
            self.job_data_readiness.as_ref(),
        );
        if !self.milestones.is_empty() {
            pairs.push(("milestones", self.milestones.join(",")));
        }
        push(&mut pairs, "exit_code", self.exit_code);
        push(&mut pairs, "address", self.address.as_ref());
        push(&mut pairs, "reason", self.reason.as_ref());
        push(&mut pairs, "avoid_host", self.avoid_host.then_some(1));
        push(&mut pairs, "crash_signature", self.crash_signature.as_ref());
        push(&mut pairs, "peak_memory_mb", self.peak_memory_mb);
        push(&mut pairs, "cpu_ms", self.cpu_ms);
        push(&mut pairs, "renew_seconds", self.renew_seconds);
        pairs
    }
}

pub(super) fn push(
    pairs: &mut Vec<(&'static str, String)>,
    name: &'static str,
    value: Option<impl ToString>,
) {
    if let Some(value) = value {
        pairs.push((name, value.to_string()));
    }
}
