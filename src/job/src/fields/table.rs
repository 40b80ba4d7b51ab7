//! The fields of a job: one row for each, with its kind, its place in the reference, and where it counts.
//!
//! A key of a job file that has no row is a parameter of the job's program.

use std::{collections::HashMap, sync::LazyLock};

use crate::{COUNT_MAX, KeyPart};

/// Greatest value of `max_run`.
const MAX_RUN_MAX: i64 = 1_000_000;
/// Bounds of `priority`.
const PRIORITY_MAX: i64 = 100;
/// Most CPUs of a job.
pub(crate) const CPUS_MAX: i64 = 65_536;

/// The values that a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Printable text in one line.
    Name,
    /// Any text.
    Text,
    /// A list of names.
    Names,
    /// Yes or no.
    Switch,
    /// A whole number within these bounds.
    Whole(i64, i64),
    /// An amount of memory; a bare number is GB.
    Memory,
    /// A duration; a bare number is seconds.
    Duration,
    /// A time, or a duration from the submit on.
    Moment,
    /// A map with keys of its own.
    Map,
    /// As these words say.
    Words(&'static str),
    /// Its program reads it, or the scheduler writes it.
    Free,
}

/// Where a field counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is never a parameter of the job: it says who, which id, or a text.
    Hidden,
    /// It says where and how the job runs. It is a parameter only where it differs between the jobs of a set.
    Infrastructure,
    /// It distinguishes jobs that run different things, and is no parameter.
    Compared,
    /// People find jobs by it, and it is no parameter.
    Searched,
    /// Its map is no section of a program.
    Section,
    /// No script sees it.
    Withheld,
    /// A key with a value may be a slip of it.
    Misspelt,
    /// A key with a map may be a slip of it.
    MisspeltMap,
    /// Its list is one value, and does not expand to several jobs.
    Kept,
    /// It may get a new value after its author wrote it.
    Edited,
    /// It says when and how a timer repeats, and nothing of the job itself.
    Schedule,
    /// It names a machine, or a kind of machine.
    Place,
    /// It is demanded of the machine besides.
    Demand,
    /// All shards of a job have it in common.
    Common,
    /// It says something of a job with shards, and nothing of its shards.
    OfWhole,
    /// It says something of several jobs, so no job of a group has it.
    NoGroup,
    /// Each job of a group says it of itself alone.
    OwnInGroup,
    /// It says who is told of the job. Its secret has the same name.
    Told,
    /// It belongs to one submit. A job that runs again does not repeat it.
    OfSubmit,
}

/// A field of a job.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name in job files.
    pub name: &'static str,
    /// Its values.
    pub kind: Kind,
    /// Its meaning, for the reference; empty: the reference does not have it.
    pub help: &'static str,
    /// The value or the behavior without it, for the reference.
    pub default: &'static str,
    /// The field that it is another name of; its own name: of none.
    pub principal: &'static str,
    /// The part of the reuse key that it belongs to; `None`: no result depends on it.
    pub(crate) key: Option<KeyPart>,
    uses: &'static [Use],
}

impl Field {
    /// The field of this name.
    pub fn of(name: &str) -> Option<&'static Self> {
        static BY_NAME: LazyLock<HashMap<&str, &Field>> =
            LazyLock::new(|| FIELDS.iter().map(|field| (field.name, field)).collect());
        BY_NAME.get(name).copied()
    }

    /// Whether it counts there.
    pub fn is(&self, used: Use) -> bool {
        self.uses.contains(&used)
    }

    /// All its names, its own first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        names_of(self.name)
    }
}

/// The names of all fields that count there, in the order of the table.
pub fn fields(used: Use) -> impl Iterator<Item = &'static str> {
    let fields = FIELDS.iter().filter(move |field| field.is(used));
    fields.map(|field| field.name)
}

/// All names of a field, its own first.
pub(crate) fn names_of(field: &str) -> impl Iterator<Item = &'static str> {
    let names = FIELDS.iter().filter(move |other| other.principal == field);
    names.map(|other| other.name)
}

/// Whether a field of this name counts there.
pub fn is_field(name: &str, used: Use) -> bool {
    Field::of(name).is_some_and(|field| field.is(used))
}

macro_rules! key {
    (Nothing) => {
        None
    };
    ($part:ident) => {
        Some(KeyPart::$part)
    };
}

macro_rules! fields {
    ($($name:literal $(of $principal:literal)?, $kind:ident $(($($bound:expr),+))?, $key:ident, [$($used:ident),*] $(, $help:literal, $default:literal)?;)+) => {
        /// All fields, those of the reference first and in its order.
        pub const FIELDS: &[Field] = &[$(Field {
            name: $name,
            kind: Kind::$kind $(($($bound),+))?,
            help: concat!($($help)?),
            default: concat!($($default)?),
            principal: principal!($name $($principal)?),
            key: key!($key),
            uses: &[$(Use::$used),*],
        }),+];
    };
}

macro_rules! principal {
    ($name:literal) => {
        $name
    };
    ($name:literal $principal:literal) => {
        $principal
    };
}

// Name, kind, part of the reuse key, uses; meaning and default in the reference.
fields! {
    "suite", Name, Parameters, [Hidden, Compared, Misspelt],
        "Name of the test. A job needs `suite` or `script`.", "`script`";
    "script", Text, Script, [Hidden, Compared, Misspelt, OwnInGroup, Withheld],
        "Shell script, or any script with a `#!` line, that the testbox runs.", "The runner of the testbox runs the program sections.";
    "testbox", Name, Requirements, [Infrastructure, Compared, Misspelt, Place],
        "`hw`, `vm` or `dc` for any host of that kind; `vm-2p8g`; a group; or one machine `GROUP--NAME`.", "The default of the site.";
    "tbox_group", Name, Requirements, [Infrastructure, Misspelt, Place];
    "tbox_type", Words("`hw`, `vm` or `dc`"), Requirements, [Infrastructure, Misspelt, Place];
    "arch", Name, Requirements, [Infrastructure, Compared, Place],
        "`x86_64`, `aarch64` …", "The site's default, unless `testbox` names a machine.";
    "os_arch", Name, Image, [Infrastructure, Searched, Misspelt];
    "target_machines", Names, Requirements, [Infrastructure, Misspelt, Kept, Place],
        "Names of the machines that may run the job.", "All machines.";
    "need_cpus", Whole(1, CPUS_MAX), Requirements, [Infrastructure, Misspelt, Edited],
        "CPUs. `nr_cpu` means the same, and a positive `need_cpu` of lkp-tests.", "The CPUs of the testbox (`vm-2p8g`: 2), else 1.";
    "nr_cpu" of "need_cpus", Whole(1, CPUS_MAX), Requirements, [Infrastructure, Misspelt];
    "need_cpu" of "need_cpus", Free, Parameters, [];
    "cpus" of "need_cpus", Free, Parameters, [];
    "need_memory", Memory, Requirements, [Infrastructure, Misspelt, Edited],
        "Memory. `memory_minimum` and `memory` mean the same.", "The memory of the testbox, else the default of the site.";
    "memory_minimum" of "need_memory", Memory, Requirements, [Infrastructure, Misspelt];
    "memory" of "need_memory", Memory, Requirements, [Infrastructure, Misspelt];
    "tags", Names, Requirements, [Infrastructure, Kept, Edited, Demand],
        "Tags that the host must have.", "None.";
    "sched.devices", Names, Requirements, [Infrastructure, Misspelt, Demand],
        "Devices that the host must have. A submit refuses a device that no known host has.", "None.";
    "not_tags", Names, Requirements, [Infrastructure, Misspelt, Kept, Demand],
        "Tags that the host must not have.", "None.";
    "any_of", Words("list of maps"), Requirements, [Infrastructure, Kept, Demand],
        "Up to 4 alternatives, each with `tags`, `not_tags` or both. The host must meet one of them.", "None.";
    "else", Map, Requirements, [Infrastructure, Misspelt, Demand],
        "`{after: TIME, tags: […], not_tags: […]}`: one more alternative after this wait. Without tags, any host. It counts among the 4.",
        "None.";
    "prefer", Names, Nothing, [Infrastructure, Misspelt],
        "Tags of hosts that the job likes best. They decide among free hosts only.", "None.";
    "need_nodes", Whole(1, COUNT_MAX as i64), Requirements, [Infrastructure, Misspelt, Demand],
        "The least number of NUMA nodes.", "Any number.";
    "need_disks", Whole(1, COUNT_MAX as i64), Requirements, [Infrastructure, Misspelt, Demand],
        "The least number of disks.", "Any number.";
    "need_nics", Whole(1, COUNT_MAX as i64), Requirements, [Infrastructure, Misspelt, Demand],
        "The least number of network cards.", "Any number.";
    "docker_image", Name, Image, [Infrastructure, Searched, Misspelt],
        "Image of the container for a `dc` or `hw` job: a name in a registry, such as `debian:12` or `registry.example/team/image:tag`. It needs `/bin/sh`.",
        "The default of the testbox.";
    "vm_image", Name, Image, [Infrastructure, Searched, Misspelt],
        "Image of the virtual machine for a `vm` job, by its name on the testboxes.", "The default of the testbox.";
    "network", Words("`none` or `bridge`"), Requirements, [Infrastructure, Misspelt],
        "Networks that a container or a virtual machine can reach.", "`none`";
    "cache_dirs", Names, Nothing, [Infrastructure, Misspelt, Kept],
        "Hosts with this cache are preferred at first. Later any host may run the job.", "None.";
    "runtime", Duration, Parameters, [Infrastructure, Misspelt],
        "Expected time of the run. Without `timeout` the limit is an eighth longer, and at least 5 minutes.", "None.";
    "timeout", Duration, Nothing, [Infrastructure, Misspelt, Edited],
        "Longest run. `timeout_seconds` means the same.", "The default of the site: an hour.";
    "timeout_seconds" of "timeout", Duration, Nothing, [Infrastructure, Misspelt];
    "start_at", Moment, Nothing, [Misspelt, Common, OwnInGroup, OfSubmit],
        "Earliest start.", "At once.";
    "deadline", Moment, Nothing, [Misspelt, Edited, Common, OfSubmit],
        "Latest end.", "No latest end.";
    "queue_timeout", Duration, Nothing, [Misspelt],
        "Longest wait for a testbox, counted from when the job is ready.", "The default of the site: no limit.";
    "silence_timeout", Duration, Nothing, [Misspelt],
        "Longest time without output of the script.", "No limit.";
    "crash", Map, Parameters, [Infrastructure, MisspeltMap],
        "[Kernel crashes](#kernel-crashes) in the output that end the job, and those that are only noted: `{end: [panic, oops], note: [warning]}`.",
        "None.";
    "stage_timeouts", Map, Nothing, [Section, MisspeltMap],
        "Limits of other stages: `{boot: 20m, post_run: 1h}`.", "The defaults of the site.";
    "retry", Words("number or map"), Nothing, [Infrastructure, Section, Misspelt, MisspeltMap],
        "Number of retries, or `{max, on, backoff}`.", "One retry if the machine was lost.";
    "retry_elsewhere", Switch, Nothing, [Infrastructure, Misspelt],
        "`true`: avoid hosts where the job failed, if another host could run it.", "Any host.";
    "stop_when_cut_off", Switch, Nothing, [Infrastructure, Misspelt],
        "`true`: the testbox stops the job when it reaches no scheduler for a lease. Then the next attempt does not run beside it. A killed agent stops nothing.",
        "The job goes on.";
    "max_run", Whole(1, MAX_RUN_MAX), Nothing, [Infrastructure, Misspelt, Common, NoGroup],
        "Refuse a submit if N jobs with these parameters already exist.", "No limit.";
    "queue", Name, Nothing, [Infrastructure, Misspelt, Edited, Common],
        "A shared queue: `vip` (needs a right), `idle`, or one of `fairlead queues` that lists you. Any other name is a label, and your labels take turns.",
        "The queue of the account.";
    "priority", Whole(-PRIORITY_MAX, PRIORITY_MAX), Nothing, [Infrastructure, Misspelt, Edited],
        "Order among your own jobs. Higher values go first.", "0";
    "name", Name, Nothing, [Common, OfWhole, NoGroup],
        "Name of the job among those of its submit.", "None.";
    "needs", Names, Nothing, [Infrastructure, Misspelt, Kept, Common, OfWhole, NoGroup],
        "Names of jobs of the same submit that must succeed first.", "None.";
    "if", Words("`success` or `always`"), Nothing, [Common, OfWhole, NoGroup],
        "`always`: the jobs of `needs` only have to end.", "`success`";
    "wait_on", Map, Nothing, [Section, MisspeltMap, Common, OwnInGroup, OfSubmit],
        "Jobs of other submits that must come first.", "None.";
    "cluster", Name, Parameters, [Infrastructure, Misspelt, Common, NoGroup],
        "One job on several machines at once, with one job per node.", "The job runs alone.";
    "node_roles", Names, Requirements, [Infrastructure, Misspelt],
        "Roles of the nodes of a cluster whose name says no numbers.", "`server client`";
    "cluster_spec", Map, Parameters, [Infrastructure, Section, MisspeltMap],
        "The machines of a cluster, one by one, with their roles and fields.", "As `cluster` says.";
    "cluster_wait", Duration, Parameters, [Infrastructure, Misspelt],
        "Longest time that nodes with a testbox wait for the others.", "5 minutes.";
    "shards", Words("number or map"), Shards, [Infrastructure, Section, Misspelt, MisspeltMap, Common, OfWhole, NoGroup],
        "Run the job in N parts side by side, with one result: a number from 2 to 1,000, or `{count, within, fail_fast, list, by, only}`. [Shards](#shards)",
        "The job is whole.";
    "group", Words("name or map"), Nothing, [Hidden, Section, Misspelt, MisspeltMap],
        "Join a group as one of its shards: the name of the group, or `{id, shard, within, fail_fast}`. [Groups](#groups)",
        "The job stands by itself.";
    "callback", Words("address or map"), Nothing, [Infrastructure, Section, Misspelt, MisspeltMap, Common, OfWhole, Told],
        "[The program that is told](#callbacks-and-notices) of the job: an address, or `{url, on, kind}`. Needs `secrets: {callback: …}`.",
        "None.";
    "notify", Words("address or map"), Nothing, [Infrastructure, Section, Misspelt, MisspeltMap, Common, OfWhole, Told],
        "[The people who are told](#callbacks-and-notices) of the job: an address, or `{url, on, kind}`. `none`: nobody, whatever the account says.",
        "As the account says, else nobody.";
    "sequence", Text, Nothing, [Infrastructure, Misspelt, Common, OwnInGroup],
        "Jobs with the same `sequence` run one at a time.", "None.";
    "sequence_host", Words("`same`"), Nothing, [Infrastructure, Misspelt, OwnInGroup],
        "Keeps the jobs of a `sequence` on one host.", "Any host.";
    "concurrency", Words("name or map"), Nothing, [Infrastructure, Misspelt, Common, OwnInGroup],
        "Of the jobs of one name, some run beside each other: a name, or `{group, limit, per_minute, replace}`. [Sequences](user-explanation.md#sequences)",
        "`limit: 1`; with `per_minute` 500.";
    "inputs", Words("id, map or list"), Inputs, [Infrastructure, Section, Misspelt, MisspeltMap, Kept, OwnInGroup],
        "[Files by content](inputs-guide.md) that the job finds in `FAIRLEAD_INPUTS`: an id, `{id, folder}`, `{from: NAME}` for the outputs of a job of `needs`, or a list of up to 16 of these.",
        "None.";
    "outputs", Names, Parameters, [Infrastructure, Misspelt, Kept, OwnInGroup],
        "Files and folders below `FAIRLEAD_OUTPUTS` that are kept by content, up to 64 paths; `.` is all.", "None.";
    "reuse", Words("duration, map or `no`"), Nothing, [Infrastructure, Section, Misspelt, MisspeltMap, OfSubmit],
        "Take the result of an equal job that succeeded within this time, at most 366 days: `14d`, or `{within: 14d}`. `no`: run in any case.",
        "The default of the suite, else the job runs.";
    "on_shutdown", Words("`skip`, `continue` or `block`"), Nothing, [Infrastructure, Misspelt],
        "Action when `fairlead run` is stopped. `continue`: a running job goes on to its end. `block`: the job is run first.",
        "`skip`: the job is stopped.";
    "idempotency_key", Text, Nothing, [Hidden, Misspelt, Common, OfWhole, NoGroup, OfSubmit, Withheld],
        "A repeated submit with this key returns the ids of the first submit, for a day.", "None.";
    "secrets", Map, Parameters, [Hidden, Section, MisspeltMap, Common],
        "Values that are sealed in the store and never shown. The job finds them in `job.yaml`.", "None.";
    "my_account", Name, Nothing, [Hidden, Misspelt, Common],
        "The account that is charged.", "The configured account, else the account of the token, else `$USER`.";
    "every", Duration, Nothing, [Misspelt, Schedule],
        "Interval, counted from the submit: `30m`, `6h`, `1d`. At least a minute.", "None.";
    "cron", Text, Nothing, [Schedule],
        "Minute, hour, day, month, weekday: `\"0 2 * * *\"`, `\"*/15 8-18 * * mon-fri\"`, `@daily`. Day and weekday together mean either.",
        "None.";
    "timezone", Name, Nothing, [Misspelt, Schedule],
        "Time zone of `cron`: `Europe/Berlin`.", "`UTC`";
    "overlap", Words("`skip`, `queue` or `replace`"), Nothing, [Misspelt, Schedule],
        "Action while an earlier run goes on. `skip` omits the new run, `queue` puts it behind (at most 16), and `replace` stops the earlier run first.",
        "`skip`";
    "missed", Words("`once` or `skip`"), Nothing, [Misspelt, Schedule],
        "Action for due times over a minute ago, when no scheduler ran. `once` makes one run for all of them; `skip` makes none.",
        "`once`";
    "timer", Name, Nothing, [Hidden, Misspelt, NoGroup, OfSubmit],
        "Name of the timer.", "The name of the file.";
    // Fields of other programs, and fields that a scheduler writes.
    "boot_params", Free, Image, [Infrastructure, Section, Misspelt, Kept];
    "category", Name, Parameters, [Hidden, Misspelt];
    "cluster_id", Free, Nothing, [Hidden];
    "cluster_jobs", Free, Nothing, [Hidden];
    "crashkernel", Free, Parameters, [Section];
    "daemon", Free, Parameters, [Section];
    "group_id", Name, Nothing, [Hidden, Misspelt, Common];
    "hw", Free, Requirements, [Section];
    "id", Free, Nothing, [Hidden];
    "initrds_uri", Free, Image, [Infrastructure, Misspelt, Kept];
    "install_os_packages", Free, Image, [Section];
    "ipxe_kernel_params", Free, Image, [Misspelt];
    "job2sh", Free, Parameters, [Section];
    "job_id", Free, Nothing, [Hidden];
    "job_token", Free, Nothing, [Hidden];
    "kernel", Free, Image, [];
    "kernel_cmdline", Free, Image, [Infrastructure];
    "kernel_custom_params", Free, Image, [Misspelt];
    "kernel_rpms_url", Free, Image, [Infrastructure, Kept];
    "kernel_uri", Free, Image, [Infrastructure, Misspelt];
    "kernel_version", Free, Image, [];
    "lab", Free, Requirements, [Infrastructure];
    "labels", Free, Nothing, [Misspelt];
    "milestones", Free, Parameters, [Infrastructure, Kept];
    "modules_uri", Free, Image, [Infrastructure, Misspelt, Kept];
    "monitor", Free, Parameters, [Section];
    "monitors", Free, Parameters, [Section];
    "my_email", Free, Nothing, [Hidden, Misspelt];
    "my_name", Free, Nothing, [Hidden, Misspelt];
    "my_ssh_pubkey", Free, Nothing, [Hidden];
    "my_token", Free, Nothing, [Hidden, Misspelt, Common];
    "nr_node", Free, Requirements, [];
    "on_fail", Free, Parameters, [Section];
    "os", Free, Image, [Infrastructure, Searched];
    "os_mount", Free, Image, [Infrastructure];
    "os_version", Free, Image, [Infrastructure, Searched];
    "osv", Free, Image, [Infrastructure];
    "pkg_data", Free, Parameters, [Hidden, Section];
    "pp", Free, Parameters, [Section];
    "program", Free, Parameters, [Section];
    "project", Free, Nothing, [Misspelt];
    "rerun_of", Free, Nothing, [Hidden, Searched, OfSubmit];
    "result", Free, Parameters, [Section];
    "result_root", Free, Nothing, [Hidden];
    "rootfs", Free, Image, [Infrastructure];
    "sched", Free, Requirements, [Infrastructure, Section, MisspeltMap];
    "services", Free, Parameters, [Section];
    "setup", Free, Parameters, [Section];
    "shard", Free, Shards, [Infrastructure, OfSubmit];
    "shard_index", Free, Shards, [Infrastructure];
    "shard_of", Free, Nothing, [Infrastructure, OfSubmit];
    "shard_tests", Free, Shards, [Infrastructure];
    "shard_total", Free, Shards, [Infrastructure];
    "ss", Free, Parameters, [Section];
    "ssh_pub_key", Free, Nothing, [Hidden, Kept];
    "stats", Free, Parameters, [Section];
    "submit_id", Name, Nothing, [Hidden, Misspelt, Common, OwnInGroup, OfSubmit];
    "submit_rule", Free, Nothing, [Hidden, Section];
    "tbox", Free, Requirements, [];
    "testcase", Free, Parameters, [Hidden, Searched];
    "timer_due", Free, Nothing, [Hidden, OfSubmit];
    "upload_dirs", Free, Parameters, [Kept];
    "upload_fields", Free, Parameters, [Section];
    "vt", Free, Parameters, [Section];
    "wait_options", Free, Nothing, [Section, MisspeltMap];
    "waited", Free, Nothing, [Section, OfSubmit];
}

#[cfg(test)]
mod tests;
