//! Errors of submits and their jobs, but for those of a field.

use fairlead_job::{JobId, units::counted};

/// An error of a submit or of one of its jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("the store accepts no writes now")]
    NoWrites,

    // Whose it is.
    #[error("my_account: missing")]
    NoAccount,
    #[error("account '{asker}' may not submit for '{account}'")]
    ForOthers { asker: String, account: String },
    #[error("account '{0}' may not use queue 'vip'")]
    NotVip(String),
    #[error("account '{account}' may not use queue '{queue}'")]
    OthersQueue { account: String, queue: String },
    #[error("submit_id: '{0}' belongs to a submit of another account")]
    OthersSubmit(String),

    // What cannot run, or not as its author thinks.
    #[error("cluster: {nodes} nodes; {what}")]
    SeveralNodes { nodes: usize, what: &'static str },
    #[error("wait_on: unknown job {0}")]
    UnknownParent(JobId),
    #[error("inputs: {0} is unknown, or account '{1}' has not put it")]
    UnknownInput(String, String),
    #[error("inputs: {count} jobs of this submit are named '{name}'")]
    SeveralOfName { name: String, count: usize },
    /// Of a strict submit.
    #[error("no known host can run the job: {0}")]
    NoHost(String),
    #[error("reuse: suite '{0}' measures, so each of its jobs runs")]
    Measures(String),
    #[error("{field}: the operator does not allow webhooks to {receiver}")]
    NoReceiver {
        field: &'static str,
        receiver: String,
    },
    #[error("sched.devices: no known host has '{0}'")]
    NoDevice(String),
    /// Of a strict submit.
    #[error("queue: {0}")]
    OnlyLabel(String),
    /// Of a strict submit.
    #[error("{0}")]
    Misspelt(String),

    // Idempotency.
    #[error("idempotency_key: the jobs of one submit have different keys")]
    SeveralKeys,
    #[error("idempotency_key: an earlier submit used this key for other jobs")]
    KeyUsed,
    #[error("idempotency_key: this job was refused when the key was first used")]
    RefusedBefore,

    // Limits.
    #[error("max_run: {}; the limit is {most}", alike(*.present))]
    TooManyAlike { present: u64, most: u64 },
    #[error("{whose} has {} waiting; its limit is {most}", counted(*.present, "job", "jobs"))]
    TooManyWait {
        whose: String,
        present: u64,
        most: u64,
    },
    #[error("shards: {more} more; {whose} has {present} that wait or run, its limit is {most}")]
    TooManyShards {
        whose: String,
        more: u64,
        present: u64,
        most: u64,
    },
    #[error("group: '{group}' is closed; its job is {parent}")]
    GroupClosed { group: String, parent: JobId },
    #[error("group: '{group}' has {most} jobs, and no more are possible")]
    GroupFull { group: String, most: u16 },
    /// With its words, which tell the hours.
    #[error("{0}")]
    HoursSpent(String),
}

fn alike(present: u64) -> String {
    counted(
        present,
        "job with the same parameters waits, runs or has run",
        "jobs with the same parameters wait, run or have run",
    )
}
