//! The fields of one job: typed, checked, with the site's defaults filled in.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Callback, Crashes, FieldError, Group, Guest, Input, Needs, Notify, OnShutdown, Retry, Reuse,
    Sequence, Shards, SiteDefaults, Spec, Stage, TboxType, Times, WaitOn, When,
    fields::{
        alternatives::{self, Alternative, Otherwise, WantedTags},
        content,
        key::idempotency_key,
        limits::{SILENCE_TIMEOUT, limit_s, stage_limits_s, timeout_s},
        place::Place,
        read::{
            CACHE_DIR_BYTES_MAX, Charset, LIST_ITEMS_MAX, NAME_BYTES_MAX, check_name, name, names,
            number, present, refuse, yes,
        },
        retry::retry,
        when::when,
    },
    units::shown,
};

/// Most labels of a job that searches know.
const LABELS_MAX: usize = 32;
/// The longest of them, bytes.
const LABEL_BYTES_MAX: usize = 128;

/// How the tag of a machine begins that booted this system last.
pub const BOOTED: &str = "booted:";

/// The fields of a job that fairlead acts on. All others are its program's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFields {
    /// Test suite; `script` when the job has only a script.
    pub suite: String,
    /// `category`, empty when not said.
    pub category: String,
    /// Account that submits and is charged: `my_account`; empty when not said (the caller fills it in).
    pub account: String,
    /// The queue asked for; empty means the account's own.
    pub queue: String,
    /// Priority inside the account, -100 to 100, higher first, default 0.
    pub priority: i16,
    /// The testbox asked for, in full.
    pub testbox: String,
    /// The group of it.
    pub tbox_group: String,
    /// Its kind.
    pub tbox_type: TboxType,
    /// The architecture that a host must have; empty when any will do (a named machine or group).
    pub arch: String,
    /// Machines that it may run on; empty means any.
    pub target_machines: Vec<String>,
    /// The host keys under which hosts find it, sorted, never empty. One match is enough.
    pub host_keys: Vec<String>,
    /// Memory that it takes from a vm/dc host, or that a hw machine must have, in MB; hw: 0 when not said.
    pub memory_mb: u32,
    /// Of a vm job, the part of `memory_mb` that its guest gets, in MB; 0: it has no guest.
    pub guest_memory_mb: u32,
    /// CPUs that it takes from a vm/dc host, or that a hw machine must have, 1 to 65,536. Default 1.
    pub cpus: u32,
    /// Tags that the host must have, also for its image, sorted, without repeats.
    pub tags: Vec<String>,
    /// Tags that the host must not have, sorted, without repeats.
    pub not_tags: Vec<String>,
    /// Alternatives, of which the host must meet one; empty: nothing more is asked. At most 4.
    pub any_of: Vec<Alternative>,
    /// One more alternative, once it has waited for a while.
    pub otherwise: Option<Otherwise>,
    /// Tags of hosts that it likes best, in the job's order, without repeats.
    pub prefer: Vec<String>,
    /// Devices that the host must have, sorted, without repeats.
    pub devices: Vec<String>,
    /// Cache directories that it would like to find, in the job's order, without repeats.
    pub cache_dirs: Vec<String>,
    /// Time limit of stage running, in seconds, at least 1.
    pub timeout_s: u64,
    /// Limits of other stages where the job or the site sets one, in seconds, at least 1.
    pub stage_limits_s: BTreeMap<Stage, u64>,
    /// How long it may be ready and wait for a testbox, in seconds; 0: for ever.
    pub queue_timeout_s: u64,
    /// Not before.
    pub start: Option<When>,
    /// Over by.
    pub deadline: Option<When>,
    /// How it is tried again.
    pub retry: Retry,
    /// True if the result of an earlier job is as good as a run.
    pub reuse: Reuse,
    /// True if the agent must stop it when cut off from every replica.
    pub stop_when_cut_off: bool,
    /// `submit_id`, `group_id`, empty when not said.
    pub submit_id: String,
    /// See `submit_id`.
    pub group_id: String,
    /// The jobs that it waits for.
    pub waits: Option<WaitOn>,
    /// The sequence that it belongs to.
    pub sequence: Option<Sequence>,
    /// Needs of other jobs of its submit.
    pub needs: Needs,
    /// How many jobs that run the same thing there may be; `None`: as many as there are.
    pub max_run: Option<u64>,
    /// How it is cut into shards; `None`: it is whole.
    pub shards: Option<Shards>,
    /// The open group that it joins as a shard; `None`: it stands by itself.
    pub group: Option<Group>,
    /// Receiver of messages about its end or its first failures.
    pub callback: Option<Callback>,
    /// Which people are told of it.
    pub notify: Notify,
    /// The name of its submit, so that it may be repeated.
    pub idempotency_key: Option<String>,
    /// Behaviour when its process stops, see [`OnShutdown`].
    pub on_shutdown: OnShutdown,
    /// How long it may say nothing while it runs, in seconds.
    pub silence_timeout_s: Option<u64>,
    /// For which crashes its testbox watches; `None`: as the testbox does by itself.
    pub crashes: Option<Crashes>,
    /// The guest that it runs in.
    pub guest: Guest,
    /// Files by content that it gets, in its order.
    pub inputs: Vec<Input>,
    /// Paths of its outputs below its `outputs` folder; `.` is all of it.
    pub outputs: Vec<String>,
    /// `lab` and `project`, for searches; empty when not said.
    pub lab: String,
    /// See `lab`.
    pub project: String,
    /// `labels` that are short texts, the first 32 of them, for searches.
    pub labels: Vec<String>,
}

impl JobFields {
    /// Reads and checks `spec`.
    ///
    /// # Errors
    /// The first field that is wrong: of another type, out of bounds, or against another field.
    pub fn parse(spec: &Spec, defaults: &SiteDefaults) -> Result<Self, FieldError> {
        let place = Place::of(spec, defaults)?;
        let guest = Guest::of(spec, place.tbox_type)?;
        let wanted = WantedTags::of(spec, &guest, place.tbox_type)?;
        let devices = alternatives::tags("sched.devices", devices(spec)?)?;
        let needs = Needs::of(spec)?;
        let inputs = Input::all_of(spec, &needs.names)?;
        Ok(Self {
            suite: suite(spec)?,
            category: name(spec, "category", Charset::Text)?,
            account: plain_name(spec, "my_account")?,
            queue: plain_name(spec, "queue")?,
            priority: priority(spec)?,
            testbox: place.testbox,
            tbox_group: place.tbox_group,
            tbox_type: place.tbox_type,
            arch: place.arch,
            target_machines: place.target_machines,
            host_keys: place.host_keys,
            memory_mb: place.memory_mb,
            guest_memory_mb: place.guest_memory_mb,
            cpus: place.cpus,
            tags: wanted.tags,
            not_tags: wanted.not_tags,
            any_of: wanted.any_of,
            otherwise: wanted.otherwise,
            prefer: prefer(spec, place.tbox_type)?,
            devices,
            cache_dirs: cache_dirs(spec)?,
            timeout_s: timeout_s(spec, defaults)?,
            stage_limits_s: stage_limits_s(spec, defaults)?,
            queue_timeout_s: limit_s(spec, "queue_timeout")?.unwrap_or(defaults.queue_timeout_s),
            start: when(spec, "start_at")?,
            deadline: when(spec, "deadline")?,
            retry: retry(spec)?,
            reuse: Reuse::of(spec)?,
            stop_when_cut_off: yes(spec, "stop_when_cut_off")?,
            submit_id: name(spec, "submit_id", Charset::Path)?,
            group_id: name(spec, "group_id", Charset::Path)?,
            waits: waits(spec)?,
            sequence: Sequence::of(spec)?,
            needs,
            inputs,
            outputs: content::outputs(spec)?,
            max_run: max_run(spec)?,
            shards: Shards::of(spec)?,
            group: Group::of(spec)?,
            callback: Callback::of(spec)?,
            notify: Notify::of(spec)?,
            idempotency_key: idempotency_key(spec)?,
            on_shutdown: OnShutdown::of(spec)?,
            silence_timeout_s: limit_s(spec, SILENCE_TIMEOUT)?,
            crashes: Crashes::of(spec)?,
            guest,
            lab: text(spec, "lab"),
            project: text(spec, "project"),
            labels: labels(spec),
        })
    }

    /// When it may begin and must be over if it is submitted at `now_ms`.
    ///
    /// # Errors
    /// `deadline` comes before that, or before `start_at`.
    pub fn times(&self, now_ms: u64) -> Result<Times, FieldError> {
        Times::of(self.start, self.deadline, now_ms)
    }
}

fn waits(spec: &Spec) -> Result<Option<WaitOn>, FieldError> {
    let said = present(spec, "wait_on");
    said.map(|_| WaitOn::of(spec)).transpose()
}

fn cache_dirs(spec: &Spec) -> Result<Vec<String>, FieldError> {
    let said = present(spec, "cache_dirs");
    let (bytes, items) = (CACHE_DIR_BYTES_MAX, LIST_ITEMS_MAX);
    names("cache_dirs", said, Charset::Text, bytes, items)
}

/// A name of an account or a queue; empty when nothing is said.
fn plain_name(spec: &Spec, field: &str) -> Result<String, FieldError> {
    let name = name(spec, field, Charset::Path)?;
    if !name.is_empty() {
        check_name(field, &name)?;
    }
    Ok(name)
}

fn max_run(spec: &Spec) -> Result<Option<u64>, FieldError> {
    Ok(number(spec, "max_run")?.and_then(|most| u64::try_from(most).ok()))
}

/// Text that people search for; what is no text is left to the body.
fn text(spec: &Spec, field: &str) -> String {
    let text = spec.get(field).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn labels(spec: &Spec) -> Vec<String> {
    let items = spec.get("labels").and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(Value::as_str);
    texts
        .filter(|text| text.len() <= LABEL_BYTES_MAX)
        .take(LABELS_MAX)
        .map(str::to_owned)
        .collect()
}

/// `suite`, or `script` for a job that has only a script.
fn suite(spec: &Spec) -> Result<String, FieldError> {
    let script = match present(spec, "script") {
        None => false,
        Some(Value::String(text)) if !text.contains('\0') => true,
        Some(Value::String(_)) => {
            return refuse("script", "a NUL character".to_owned(), "remove it");
        }
        Some(other) => {
            return refuse(
                "script",
                format!("{} where text was expected", shown(other)),
                "write 'script: |'",
            );
        }
    };
    let suite = name(spec, "suite", Charset::Path)?;
    if !suite.is_empty() {
        return Ok(suite);
    }
    if script {
        return Ok("script".to_owned());
    }
    refuse(
        "suite",
        "the job has neither suite nor script".to_owned(),
        "name a suite, or give the job a script",
    )
}

fn priority(spec: &Spec) -> Result<i16, FieldError> {
    let priority = number(spec, "priority")?.unwrap_or_default();
    Ok(i16::try_from(priority).unwrap_or_default())
}

/// Reads `prefer`. A job for a whole machine also likes one that booted its system last.
fn prefer(spec: &Spec, kind: TboxType) -> Result<Vec<String>, FieldError> {
    let said = present(spec, "prefer");
    let mut prefer = names(
        "prefer",
        said,
        Charset::Text,
        NAME_BYTES_MAX,
        LIST_ITEMS_MAX,
    )?;
    let os = text(spec, "os");
    if kind == TboxType::Hw && !os.is_empty() {
        let booted = ["os_version", "kernel_version"].map(|field| text(spec, field));
        prefer.push(format!("{BOOTED}{os}/{}/{}", booted[0], booted[1]));
    }
    Ok(prefer)
}

/// `sched: {devices: [..]}`, or the flat key `sched.devices`.
fn devices(spec: &Spec) -> Result<Option<&Value>, FieldError> {
    if let Some(flat) = present(spec, "sched.devices") {
        return Ok(Some(flat));
    }
    match present(spec, "sched") {
        None => Ok(None),
        Some(Value::Object(sched)) => Ok(present(sched, "devices")),
        Some(other) => refuse(
            "sched",
            format!("{} where a map was expected", shown(other)),
            "write {devices: [..]}",
        ),
    }
}
