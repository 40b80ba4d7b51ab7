//! The value and the meaning of each parameter of a query.

use crate::COUNTED_BY;

/// What a parameter may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParameterKind {
    /// Words with commas between.
    Words,
    /// Texts, each in a parameter of its own.
    Repeated,
    /// A text.
    Text,
    /// A whole number.
    Whole {
        /// The least.
        least: u64,
        /// The most; none: 64 bits.
        most: Option<u64>,
    },
    /// `true` or `false`.
    Switch,
    /// One of these.
    OneOf(&'static [&'static str]),
}

/// What a parameter means, whatever route reads it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: ParameterKind,
    pub(crate) does: &'static str,
}

const fn words(name: &'static str, does: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ParameterKind::Words,
        does,
    }
}

const fn text(name: &'static str, does: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ParameterKind::Text,
        does,
    }
}

const fn whole(name: &'static str, least: u64, most: Option<u64>, does: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ParameterKind::Whole { least, most },
        does,
    }
}

const fn switch(name: &'static str, does: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ParameterKind::Switch,
        does,
    }
}

const fn one_of(
    name: &'static str,
    names: &'static [&'static str],
    does: &'static str,
) -> Parameter {
    Parameter {
        name,
        kind: ParameterKind::OneOf(names),
        does,
    }
}

/// Every parameter of a query. One name has one meaning.
pub(crate) const PARAMETERS: &[Parameter] = &[
    text(
        "token",
        "The token of who asks. Prefer the header, because logs keep addresses.",
    ),
    text(
        "my_account",
        "Who asks, in an open lab. In a list of jobs the old name of account.",
    ),
    words(
        "stage",
        "Stages of jobs. With ! before each: all but those.",
    ),
    words("job_stage", "Old name of stage."),
    words(
        "health",
        "Healths of jobs. With ! before each: all but those.",
    ),
    words("job_health", "Old name of health."),
    words(
        "account",
        "Accounts. Of a timer, a group, or an input or output: the account that owns it.",
    ),
    words("queue", "Queues, or labels in own queues."),
    words("host", "Hosts that have or had the job."),
    words("host_machine", "Old name of host."),
    words("suite", "Suites."),
    words("submit_id", "Submits."),
    words("sequence", "Sequences."),
    words("group_id", "Groups of jobs."),
    words("tbox_group", "Groups of hosts."),
    Parameter {
        name: "kv",
        kind: ParameterKind::Repeated,
        does: "A parameter of the job, key=value. Repeated: with one key any of the values, with several keys all.",
    },
    switch(
        "with_kv",
        "Whether each job lists its words key=value. Default false.",
    ),
    text(
        "signature",
        "The title of a kernel crash; * at its end stands for any text.",
    ),
    one_of(
        "parts",
        &["all", "no_shards", "no_parents", "only_shards"],
        "Which of jobs with shards are listed.",
    ),
    text("shards_of", "The job whose shards are listed."),
    whole(
        "since_ms",
        0,
        None,
        "Submitted, or used, at this time or later, UTC epoch ms. Of a report of use by default a week ago.",
    ),
    whole(
        "until_ms",
        0,
        None,
        "Submitted, or used, before this time, UTC epoch ms.",
    ),
    one_of(
        "group_by",
        &COUNTED_BY,
        "By what the jobs are counted instead of listed. Shards count, and their parents do not, unless parts says it.",
    ),
    one_of(
        "order",
        &["newest", "oldest"],
        "Which come first. Default newest.",
    ),
    text(
        "after",
        "The place behind which the page begins: next of the page before. Of an event stream: the id of the last event.",
    ),
    whole(
        "before",
        0,
        None,
        "Decisions with smaller numbers than this one. Default 0: from the newest on.",
    ),
    whole(
        "limit",
        0,
        Some(1000),
        "Most entries of the page; 0 counts only.",
    ),
    one_of(
        "by",
        &["account", "queue", "host", "suite", "class"],
        "Names of which kind are counted; class: priorities of queues, 0 to 9. Default account.",
    ),
    switch(
        "strict",
        "Refuses jobs that no known host could ever run. Default false.",
    ),
    switch(
        "dry_run",
        "Checks the jobs, applies the submit rules, and stores nothing. Default false.",
    ),
    text(
        "idempotency_key",
        "Names this submit. A repeated submit with the same key gets the same answer.",
    ),
    text("job_id", "The job that a file belongs to."),
    text(
        "job_token",
        "The token of the job. Prefer the header Job-Token.",
    ),
    whole(
        "attempt",
        1,
        Some(65_535),
        "Which try of the job. Default: the present one.",
    ),
    text("id", "The input or output that a chunk is of."),
    text(
        "put",
        "The put that a chunk or a manifest belongs to: 1 to 64 letters, digits, - and _.",
    ),
    text(
        "name",
        "What the owner calls an input, at most 128 bytes. Of a plot: whose, a name of the kind `by`. Default: nothing, and all.",
    ),
    words("who", "Who acted: accounts, hosts or replicas."),
    words(
        "what",
        "Which acts, such as job.cancel; * at the end stands for any text.",
    ),
    switch(
        "incidents",
        "Only what happened to the lab: faults, losses, starts and stops of replicas, pauses and drains. Default false. With true, since_ms is by default 12 hours ago.",
    ),
    words("subject", "To which jobs, queues, hosts or accounts."),
    words("fields", "The fields that are wanted. Default: all."),
    one_of(
        "format",
        &["html", "json"],
        "What is answered, whatever the header Accept says.",
    ),
    whole("offset", 0, None, "The byte to begin with. Default 0."),
    switch(
        "follow",
        "Whether the answer goes on until the attempt ends. Default false.",
    ),
    text("test", "The whole name of a test."),
    words("tags", "Tags that a host must have, all of them."),
    text(
        "report_metrics",
        "Sent by compass-ci's hosts; nothing follows from it.",
    ),
    text("secrets_key", "The key that opens the job's secrets."),
];
