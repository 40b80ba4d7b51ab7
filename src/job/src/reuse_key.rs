//! The key of a job for reuse: equal keys mean that two jobs would run the same thing. It has parts, so that people learn
//! which one differs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Input, InputOf, Spec, params::SUBMIT_RULE};

/// The form of the key: a change of how it is made changes all keys.
const FORM: &str = "fairlead reuse 1";

/// A part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyPart {
    /// The inputs by content, with their folders.
    Inputs,
    /// The script.
    Script,
    /// All that the program can see, and that no other part has.
    Parameters,
    /// The system that it runs in.
    Image,
    /// Which part of a whole it is.
    Shards,
    /// What it requires of a host.
    Requirements,
    /// The salt of the site.
    Salt,
}

impl KeyPart {
    /// All, in the order in which people are told.
    pub const ALL: [Self; 7] = [
        Self::Inputs,
        Self::Script,
        Self::Parameters,
        Self::Image,
        Self::Shards,
        Self::Requirements,
        Self::Salt,
    ];

    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Script => "script",
            Self::Parameters => "parameters",
            Self::Image => "image",
            Self::Shards => "shards",
            Self::Requirements => "requirements",
            Self::Salt => "salt",
        }
    }

    /// The part that a field of a job belongs to; `None`: no result depends on it.
    fn of(field: &str) -> Option<Self> {
        match field {
            "inputs" => Some(Self::Inputs),
            "script" => Some(Self::Script),
            _ if LEFT_OUT.contains(&field) => None,
            _ if IMAGE.contains(&field) => Some(Self::Image),
            _ if SHARDS.contains(&field) => Some(Self::Shards),
            _ if REQUIREMENTS.contains(&field) => Some(Self::Requirements),
            _ => Some(Self::Parameters),
        }
    }
}

/// Fields that say who, when, in which order and for whom. What is not named here counts.
const LEFT_OUT: [&str; 56] = [
    "cache_dirs",
    "callback",
    "cluster_id",
    "cluster_jobs",
    "concurrency",
    "cron",
    "deadline",
    "every",
    "group",
    "group_id",
    "id",
    "idempotency_key",
    "if",
    "job_id",
    "job_token",
    "labels",
    "max_run",
    "missed",
    "my_account",
    "my_email",
    "my_name",
    "my_ssh_pubkey",
    "my_token",
    "name",
    "needs",
    "notify",
    "on_shutdown",
    "overlap",
    "prefer",
    "priority",
    "project",
    "queue",
    "queue_timeout",
    "rerun_of",
    "result_root",
    "retry",
    "retry_elsewhere",
    "reuse",
    "sequence",
    "sequence_host",
    "shard_of",
    "silence_timeout",
    "ssh_pub_key",
    "stage_timeouts",
    "start_at",
    "stop_when_cut_off",
    "submit_id",
    SUBMIT_RULE,
    "timeout",
    "timeout_seconds",
    "timer",
    "timer_due",
    "timezone",
    "wait_on",
    "wait_options",
    "waited",
];

/// Fields of the system that a job runs in.
const IMAGE: [&str; 19] = [
    "boot_params",
    "docker_image",
    "initrds_uri",
    "install_os_packages",
    "ipxe_kernel_params",
    "kernel",
    "kernel_cmdline",
    "kernel_custom_params",
    "kernel_rpms_url",
    "kernel_uri",
    "kernel_version",
    "modules_uri",
    "os",
    "os_arch",
    "os_mount",
    "os_version",
    "osv",
    "rootfs",
    "vm_image",
];

/// Fields of a shard's place.
const SHARDS: [&str; 5] = [
    "shard",
    "shard_index",
    "shard_tests",
    "shard_total",
    "shards",
];

/// Fields that a host must meet.
const REQUIREMENTS: [&str; 25] = [
    "any_of",
    "arch",
    "else",
    "hw",
    "lab",
    "memory",
    "memory_minimum",
    "need_cpus",
    "need_disks",
    "need_memory",
    "need_nics",
    "need_nodes",
    "network",
    "node_roles",
    "not_tags",
    "nr_cpu",
    "nr_node",
    "sched",
    "sched.devices",
    "tags",
    "target_machines",
    "tbox_group",
    "tbox_type",
    "testbox",
    "tbox",
];

/// The key of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReuseKey {
    /// The whole: 64 hexadecimal digits.
    pub key: String,
    /// The hash of each part, in the order of [`KeyPart::ALL`]: 32 hexadecimal digits.
    pub parts: [String; KeyPart::ALL.len()],
}

impl ReuseKey {
    /// The key of what a testbox would get as its job. `inputs`: those of the job, each with its id. `salt`: the site's.
    /// `None`: an input is of a job that has not ended.
    pub fn of(spec: &Spec, inputs: &[Input], salt: &str) -> Option<Self> {
        let ids: Option<BTreeSet<(&str, &str)>> = inputs.iter().map(named).collect();
        let ids = ids?;
        let parts = KeyPart::ALL.map(|part| {
            let mut hasher = blake3::Hasher::new();
            match part {
                KeyPart::Salt => text(&mut hasher, salt),
                KeyPart::Inputs => {
                    for (folder, id) in &ids {
                        text(&mut hasher, folder);
                        text(&mut hasher, id);
                    }
                }
                other => {
                    let mut said: Vec<_> = fields_of(spec, other).collect();
                    said.sort_unstable_by_key(|(field, _)| *field);
                    for (field, value) in said {
                        text(&mut hasher, field);
                        canonical(&mut hasher, value);
                    }
                }
            }
            let mut hash = hasher.finalize().to_hex().to_string();
            hash.truncate(32);
            hash
        });
        let mut hasher = blake3::Hasher::new();
        text(&mut hasher, FORM);
        for (part, hash) in KeyPart::ALL.iter().zip(&parts) {
            text(&mut hasher, part.as_str());
            text(&mut hasher, hash);
        }
        let key = hasher.finalize().to_hex().to_string();
        Some(Self { key, parts })
    }

    /// The parts in which it differs from another one.
    pub fn differing(&self, other: &Self) -> Vec<KeyPart> {
        let pairs = self.parts.iter().zip(&other.parts);
        let parts = KeyPart::ALL.into_iter().zip(pairs);
        let differ = parts.filter(|(_, (own, others))| own != others);
        differ.map(|(part, _)| part).collect()
    }
}

/// The fields of a part in which two jobs differ, sorted. Inputs are named by their folders, `inputs` for the whole.
pub fn differing_fields(a: &Spec, b: &Spec, part: KeyPart) -> Vec<String> {
    let fields: BTreeSet<&str> = [a, b]
        .into_iter()
        .flat_map(|spec| fields_of(spec, part).map(|(field, _)| field))
        .collect();
    let differs = |field: &&str| a.get(*field) != b.get(*field);
    let differing = fields.into_iter().filter(differs);
    differing.map(str::to_owned).collect()
}

/// The folder and the id of an input.
fn named(input: &Input) -> Option<(&str, &str)> {
    match &input.of {
        InputOf::Id(id) => Some((&input.folder, id)),
        InputOf::From(_) => None,
    }
}

/// The fields of a job that belong to a part. Null says nothing, but for a program without parameters.
fn fields_of(spec: &Spec, part: KeyPart) -> impl Iterator<Item = (&str, &Value)> {
    let fields = spec.iter().map(|(field, value)| (field.as_str(), value));
    fields.filter(move |(field, _)| KeyPart::of(field) == Some(part))
}

fn text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// A value in one form: maps sorted by their keys, and each value with what it is, so that no two have the same bytes.
fn canonical(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Null => {
            hasher.update(b"0");
        }
        Value::Bool(is_so) => {
            hasher.update(if *is_so { b"t" } else { b"f" });
        }
        Value::Number(number) => {
            hasher.update(b"n");
            text(hasher, &number.to_string());
        }
        Value::String(said) => {
            hasher.update(b"s");
            text(hasher, said);
        }
        Value::Array(items) => {
            hasher.update(b"a");
            hasher.update(&(items.len() as u64).to_le_bytes());
            for item in items {
                canonical(hasher, item);
            }
        }
        Value::Object(map) => {
            hasher.update(b"o");
            hasher.update(&(map.len() as u64).to_le_bytes());
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in fields {
                text(hasher, key);
                canonical(hasher, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
