//! Errors of submits and their jobs, but for those of a field.

use fairlead_job::{JobId, units::counted};

refusals! {
    /// An error of a submit or of one of its jobs.
    pub enum SubmitError {
        #[error("the store accepts no writes now")]
        NoWrites => Unavailable,
            "nothing was submitted; submit again in a few seconds; GET /scheduler/v1/health says what is wrong";

        // Account of the job.
        #[error("my_account: missing")]
        NoAccount => BadField,
            "set my_account in the job, or the account in the configuration: fairlead config";
        #[error("account '{asker}' may not submit for '{account}'")]
        ForOthers { asker: String, account: String } => Forbidden, "use your own, or ask an admin";
        #[error("account '{0}' may not use queue 'vip'")]
        NotVip(String) => Forbidden, "ask an admin: fairlead account add NAME --vip";
        #[error("account '{account}' may not use queue '{queue}'")]
        OthersQueue { account: String, queue: String } => Forbidden,
            "omit queue, or ask an admin: fairlead queues set NAME --users LIST";
        #[error("submit_id: '{0}' belongs to a submit of another account")]
        OthersSubmit(String) => Forbidden, "use your own, or ask an admin";

        // Jobs that cannot run, or not as their author intends.
        #[error("cluster: {nodes} nodes; {what}")]
        SeveralNodes { nodes: usize, what: &'static str } => BadField,
            "use cs-localhost to run all roles on one machine, or omit the cluster";
        #[error("wait_on: unknown job {0}")]
        UnknownParent(JobId) => BadField, "submit that job first";
        #[error("inputs: {0} is unknown, or account '{1}' has not put it")]
        UnknownInput(String, String) => BadField, "put it first: fairlead put DIR prints the id";
        #[error("inputs: {count} jobs of this submit are named '{name}'")]
        SeveralOfName { name: String, count: usize } => BadField,
            "give one of them a name of its own: a matrix makes several jobs of one name";
        /// Only in a strict submit.
        #[error("no known host can run the job: {0}")]
        NoHost(String) => BadField,
            "see the offers of hosts with GET hosts, or submit without strict to wait for one";
        #[error("reuse: suite '{0}' measures, so each of its jobs runs")]
        Measures(String) => BadField, "leave out 'reuse', or write reuse: no";
        #[error("{field}: the operator does not allow webhooks to {receiver}")]
        NoReceiver {
            field: &'static str,
            receiver: String,
        } => Forbidden, "the operator allows receivers with: fairlead serve --webhooks-to HOST";
        #[error("sched.devices: no known host has '{0}'")]
        NoDevice(String) => BadField,
            "see the devices of hosts: fairlead hosts NAME; or register the host that has it first";
        /// Only in a strict submit.
        #[error("queue: {0}")]
        OnlyLabel(String) => BadField,
            "omit queue, use one of: fairlead queues, or submit without strict";
        /// Only in a strict submit.
        #[error("{0}")]
        Misspelt(String) => BadField, "correct it; without strict it is a parameter of the job";

        // Idempotency.
        #[error("idempotency_key: the jobs of one submit have different keys")]
        SeveralKeys => BadField, "use one key per submit, or send the jobs in several submits";
        #[error("idempotency_key: an earlier submit used this key for other jobs")]
        KeyUsed => Conflict, "use a new key for each submit";
        #[error("idempotency_key: this job was refused when the key was first used")]
        RefusedBefore => Conflict, "use a new key to submit it";

        // Limits.
        #[error("max_run: {}; the limit is {most}", alike(*.present))]
        TooManyAlike { present: u64, most: u64 } => Quota,
            "use their results, or submit with a larger max_run or without it";
        #[error("{whose} has {} waiting; its limit is {most}", counted(*.present, "job", "jobs"))]
        TooManyWait {
            whose: String,
            present: u64,
            most: u64,
        } => Quota,
            "submit again when some of these jobs have started or are cancelled, or ask an admin for a higher limit";
        #[error("shards: {more} more; {whose} has {present} that wait or run, its limit is {most}")]
        TooManyShards {
            whose: String,
            more: u64,
            present: u64,
            most: u64,
        } => Quota,
            "submit again when some of them have ended, use fewer shards, or ask an admin for a higher limit";
        #[error("group: '{group}' is closed; its job is {parent}")]
        GroupClosed { group: String, parent: JobId } => Conflict,
            "open another group: use a new name";
        #[error("group: '{group}' has {most} jobs, and no more are possible")]
        GroupFull { group: String, most: u16 } => Quota, "open another group for the rest";
        /// Contains the message, which names the hours.
        #[error("{0}")]
        HoursSpent(String) => Quota,
            "submit again later, when some of these hours are over a day old, or ask an admin for a higher limit";
    }
}

fn alike(present: u64) -> String {
    counted(
        present,
        "job with the same parameters waits, runs or has run",
        "jobs with the same parameters wait, run or have run",
    )
}
