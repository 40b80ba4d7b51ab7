//! Builds a job from a spec: its submitter, its requirements, and where and when it may run. Checks it, and stores
//! nothing.

use std::sync::Arc;

use fairlead_job::{
    Cause, Group, Input, InputOf, JobFields, JobId, Sequence, Spec, Waits, fingerprint, keywords,
    parameters,
};
use fairlead_store::{JobState, NewJob, Otherwise, ShardPlace, Sharding};
use serde_json::{Value, json};

use crate::submission::{SubmissionFlow, built_jobs::Joining};
use fairlead_base::{
    errors::{PeopleError, Refusal, SubmitError},
    names::check_name,
};
use fairlead_known::accounts::{Credentials, Who};
use fairlead_lifecycle::{parent::released, result_paths::result_root};

/// Causes that are a job's own: all but the machine's.
const OWN_CAUSES: usize = Cause::ALL.len() - 1;
/// Longest text of parameters kept in a state, bytes.
const PARAMS_MAX: usize = 200;
/// What is never stored of who submits.
pub(crate) const SENSITIVE: [&str; 4] = ["my_email", "my_name", "my_token", "job_token"];

impl SubmissionFlow {
    /// A job that is submitted by itself, of this submitter and with this id.
    pub(crate) fn make_job_of(&self, spec: Spec, who: Who, id: JobId) -> Result<NewJob, Refusal> {
        let fields = JobFields::parse(&spec, &self.ctx.config.site)?;
        fields.needs.check_alone()?;
        self.build(spec, fields, who, id)
    }

    /// A job of a spec and its fields: who, what, where; checked, and not stored.
    pub(super) fn build(
        &self,
        mut spec: Spec,
        fields: JobFields,
        who: Who,
        id: JobId,
    ) -> Result<NewJob, Refusal> {
        for name in SENSITIVE {
            spec.shift_remove(name);
        }
        let account = if fields.account.is_empty() {
            who.name.clone()
        } else {
            fields.account.clone()
        };
        if account.is_empty() {
            return Err(SubmitError::NoAccount.into());
        }
        check_name("my_account", &account)?;
        if !who.may_act_for(&account) {
            let asker = who.name;
            return Err(SubmitError::ForOthers { asker, account }.into());
        }
        let place = self.place_in_queue(&fields.queue, &account, &who)?;
        let now_ms = self.ctx.clock.wall_ms();
        let told = self.events_told(&fields, &account)?;
        let times = fields.times(now_ms)?;
        let within_s = match (&fields.shards, &fields.group) {
            (Some(shards), _) => shards.within_s,
            (None, group) => group.as_ref().map(|group| group.within_s),
        };
        let within_ms = within_s.map(|s| now_ms.saturating_add(s.saturating_mul(1000)));
        let finish_by_ms = [Some(times.finish_by_ms).filter(|ms| *ms > 0), within_ms];
        let finish_by_ms = finish_by_ms.into_iter().flatten().min();
        spec.insert("my_account".to_owned(), json!(account));
        let shards = cut(&fields);
        let reuse = self.reuse.reusing(&spec, &fields, &account)?;
        let state = new_state(id, fields, &spec, now_ms);
        let principal = Some(who.name).filter(|name| *name != account);
        let state = JobState {
            ready: state.ready && times.start_ms == 0,
            class: self.people.queues.class(&place.queue),
            principal: principal.unwrap_or_default(),
            account,
            queue: place.queue,
            queue_label: place.label,
            start_ms: times.start_ms,
            finish_by_ms: finish_by_ms.unwrap_or(0),
            callback: told.callback,
            notify: told.notify,
            shards,
            reuse,
            ..state
        };
        let state = parent_or_whole(state, now_ms).set_alarm();
        self.ctx.sealer.seal(&mut spec);
        let body = Arc::new(spec);
        Ok(NewJob { state, body })
    }

    /// Builds a job that joins a group, and the parent that it opens the group with.
    pub(super) fn build_joining(
        &self,
        spec: Spec,
        group: &Group,
        who: Who,
    ) -> Result<(NewJob, Joining), Refusal> {
        let parent = group.parent_spec(&spec);
        let fields = JobFields::parse(&parent, &self.ctx.config.site)?;
        let parent = self.build(parent, fields, who.clone(), JobId::default())?;
        let spec = Group::shard_spec(spec);
        let mut fields = JobFields::parse(&spec, &self.ctx.config.site)?;
        fields.group = None;
        let mut job = self.build(spec, fields, who, self.peers.next_ids(1))?;
        job.state.shard = Some(ShardPlace::default());
        // Whoever is told by the account is told of the whole.
        job.state.notify = None;
        let joining = Joining {
            parent,
            group: group.id.clone(),
            shard: group.shard.clone(),
        };
        Ok((job, joining))
    }

    /// Who submits this, by what it says itself and by what the request says.
    pub(crate) fn submitter(&self, spec: &Spec, said: &Credentials) -> Result<Who, PeopleError> {
        let text = |name: &str| spec.get(name).and_then(Value::as_str).map(str::to_owned);
        let credentials = Credentials {
            token: said.token.clone().or_else(|| text("my_token")),
            account: text("my_account").or_else(|| said.account.clone()),
            is_for_people: said.is_for_people,
            vouched: said.vouched.clone(),
        };
        self.people.accounts.identify(&credentials)
    }
}

/// The state of a new job, as its spec says it: not yet whose, in which queue and when.
fn new_state(id: JobId, fields: JobFields, spec: &Spec, now_ms: u64) -> JobState {
    let count = |list: &[String]| u16::try_from(list.len()).unwrap_or(u16::MAX);
    let parameters = parameters(spec);
    let waits = fields.waits.map(Waits::Jobs);
    let state = in_sequence(JobState::blank(id, fields.tbox_type), fields.sequence);
    JobState {
        kv: keywords(spec, &fields.suite, &fields.labels),
        ready: waits.is_none() && state.sequence.is_empty(),
        ready_ms: now_ms,
        priority: fields.priority,
        submit_ms: now_ms,
        submit_id: fields.submit_id,
        group_id: fields.group_id,
        result_root: result_root(&fields.suite, &fields.tbox_group, spec, now_ms, id),
        suite: fields.suite,
        category: fields.category,
        params: params_text(&parameters),

        fingerprint: fingerprint(spec, &parameters),
        testbox: fields.testbox,
        tbox_group: fields.tbox_group,
        arch: fields.arch,
        host_keys: fields.host_keys,
        memory_mb: fields.memory_mb,
        guest_memory_mb: fields.guest_memory_mb,
        cpus: fields.cpus,
        tags_n: count(&fields.tags),
        tags: fields.tags,
        not_tags: fields.not_tags,
        any_of: fields.any_of,
        otherwise: fields.otherwise.map(otherwise).map(Box::new),
        prefer: fields.prefer,
        devices_n: count(&fields.devices),
        devices: fields.devices,
        cache_dirs: fields.cache_dirs,
        timeout_s: fields.timeout_s,
        stage_limits_s: fields.stage_limits_s,
        queue_timeout_s: fields.queue_timeout_s,
        retry_lost_left: fields.retry.infra_max,
        retry_fail_left: fields.retry.own_max,
        retry_on: if fields.retry.own.len() == OWN_CAUSES {
            Vec::new()
        } else {
            fields.retry.own
        },
        backoff: fields.retry.backoff,
        retry_elsewhere: fields.retry.elsewhere,
        stop_when_cut_off: fields.stop_when_cut_off,
        waits,
        inputs: fields.inputs.iter().map(input).collect(),
        lab: fields.lab,
        project: fields.project,
        labels: fields.labels,
        ..state
    }
}

/// An input as a state has it; empty: the outputs of another job of the submit, whose id is not known yet.
fn input(input: &Input) -> String {
    match &input.of {
        InputOf::Id(id) => id.clone(),
        InputOf::From(_) => String::new(),
    }
}

fn in_sequence(state: JobState, sequence: Option<Sequence>) -> JobState {
    let Some(sequence) = sequence else {
        return state;
    };
    JobState {
        sequence: sequence.key,
        sequence_same_host: sequence.same_host,
        sequence_limit: if sequence.limit > 1 {
            sequence.limit
        } else {
            0
        },
        sequence_per_minute: sequence.per_minute,
        sequence_replace: sequence.replace,
        ..state
    }
}

/// A job with shards is never ready. They are released when it waits for nothing.
fn parent_or_whole(state: JobState, now_ms: u64) -> JobState {
    if state.shards.is_none() || !state.ready {
        return state;
    }
    let waits = JobState {
        ready: false,
        ..state
    };
    released(waits, now_ms)
}

/// How the job is cut; `None`: it is whole.
fn cut(fields: &JobFields) -> Option<Box<Sharding>> {
    let group = fields.group.as_ref().map(|group| Sharding {
        group: group.id.clone(),
        fail_fast: group.fail_fast,
        ..Sharding::default()
    });
    let shards = fields.shards.as_ref().map(|shards| Sharding {
        count: shards.total(),
        lister: if shards.list.is_some() {
            shards.total().saturating_add(1)
        } else {
            0
        },
        fail_fast: shards.fail_fast,
        varied: shards.is_varied(),
        ..Sharding::default()
    });
    shards.or(group).map(Box::new)
}

fn otherwise(read: fairlead_job::Otherwise) -> Otherwise {
    Otherwise {
        after_s: read.after_s,
        tags: read.alternative.tags,
        not_tags: read.alternative.not_tags,
    }
}

fn params_text(parameters: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in parameters {
        let blank = if text.is_empty() { "" } else { " " };
        if text.len() + blank.len() + name.len() + 1 + value.len() > PARAMS_MAX {
            break;
        }
        text.extend([blank, name, "=", value]);
    }
    text
}
