//! Job files and job documents: YAML to spec, matrix expansion, validation, units, stages.
//!
//! Pure: this crate reads no clock, starts no task and touches no network. Files are read through
//! [`file::Source`], so a server can refuse to read any.

pub mod cron;
mod fields;
pub mod file;
pub mod id;
mod image;
mod key_part;
mod keywords;
mod machine;
mod misspelt;
mod near;
pub mod params;
mod reuse_key;
mod rules;
pub mod schedule;
mod site;
pub mod stage;
mod tbox_type;
pub mod units;

pub use fields::{
    alternatives::{ALTERNATIVES_MAX, Alternative, Otherwise},
    bounds::{
        JOB_DEPTH_MAX, SUBMIT_GROUPS_MAX, SubmitLimits, Together, check_bytes, check_depth,
        too_long,
    },
    callback::{CALLBACK, Callback, CallbackEvents, CallbackKind, NOTIFY, Notify, receiver_secret},
    cluster::{ClusterNode, NODES_MAX, cluster_nodes},
    content::{CONTENT_TAG, INPUTS_MAX, Input, InputOf, OUTPUTS_MAX, outputs},
    crash::Crashes,
    error::{Fault, FieldError},
    group::{GROUP_WITHIN_MAX_S, Group},
    guest::{CONTAINER_TAG, Guest, Network, vm_image_tag},
    job::{BOOTED, JobFields},
    key::{check_idempotency_key, idempotency_key},
    limits::{LIMITED, SILENCE_TIMEOUT, limit_s},
    needs::{Member, Needs, link},
    read::check_name,
    retry::{Backoff, Cause, Retry},
    reuse::{REUSE, REUSE_WITHIN_MAX_S, Reuse, never_reusable, reuse_within_s},
    sequence::{CONCURRENCY_MAX, PER_MINUTE_MAX, Replace, Sequence},
    shards::{SHARDS_MAX, ShardIndex, Shards},
    shutdown::OnShutdown,
    submit::{NodePlace, ParsedJob, Submitted, dry_run},
    table::{FIELDS, Field, Kind, Use, fields, is_field},
    wait_on::{Condition, Requirement, WAITED_FOR_MAX, WaitOn, Waits, text_of},
    when::{Times, When, utc_text},
};
pub use file::{
    ExpandOptions, Expanded, FsSource, JobFileError, NoFiles, Placed, Setting, Source, Tree,
    expand_file, expand_text, expand_text_within, read_file, read_placed, read_text,
};
pub use id::{IdMaker, JobId, ParseJobIdError};
pub use image::{IMAGE_DIGEST_DIGITS, ImageName, NoImageName, image_fact};
pub use key_part::KeyPart;
pub use keywords::{KEYWORD_BYTES_MAX, KEYWORDS_MAX, keywords};
pub use machine::{COUNT_MAX, COUNTED, at_least, cpu_model};
pub use misspelt::{Misspelt, misspelt};
pub use near::nearest;
pub use params::{
    IDEMPOTENCY_KEY, SUBMIT_RULE, environment, fingerprint, parameters, programs, varying,
};
pub use reuse_key::{ReuseKey, differing_fields};
pub use rules::{
    DEPTH_MAX, EXPRESSION_BYTES_MAX, Edited, Expression, ExpressionError, RULES_MAX, Rule,
    RuleError, Ruled, check_rules, compare_values, set_fields,
};
pub use schedule::{Due, Missed, Overlap, Schedule};
pub use site::SiteDefaults;
pub use stage::{DataReadiness, Health, Stage};
pub use tbox_type::TboxType;

/// A job as its author wrote it: flat JSON, in the order of the file. It never changes after submit.
pub type Spec = serde_json::Map<String, serde_json::Value>;
