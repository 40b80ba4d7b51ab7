//! Builds a job from a spec: its submitter, its requirements, and where and when it may run. Checks it, and stores
//! nothing.

use fairlead_api::{ErrorBody, ErrorCode};
use fairlead_dispatch::labels;
use fairlead_job::{
    Cause, JobFields, JobId, Spec, When, fingerprint, parameters,
    schedule::{CRON, EVERY},
};
use fairlead_store::{JobState, NewJob};
use serde_json::{Value, json};

use crate::{
    base::{clock::utc_text, errors::Refusal, names::check_name},
    core::Core,
    known::accounts::{Credentials, Who},
    lifecycle::{result_paths::result_root, sequence::sequence_of, wait_on::Condition},
    submission::queue_use::Place,
};

/// Causes that are a job's own: all but the machine's.
const OWN_CAUSES: usize = Cause::ALL.len() - 1;
/// Longest text of parameters kept in a state, bytes.
const PARAMS_MAX: usize = 200;
/// Most labels of a job that searches know.
const LABELS_MAX: usize = 32;
/// Longest of them, bytes.
const LABEL_BYTES_MAX: usize = 128;
/// What is never stored of who submits.
pub(crate) const SENSITIVE: [&str; 4] = ["my_email", "my_name", "my_token", "job_token"];

impl Core {
    /// A job of a spec: who, what, where; checked, but not stored.
    pub(crate) fn make_job(&self, spec: Spec, said: &Credentials) -> Result<NewJob, Refusal> {
        let who = self.submitter(&spec, said)?;
        if let Some(field) = [EVERY, CRON]
            .into_iter()
            .find(|field| is_said(&spec, field))
        {
            return Err(Refusal::new(
                ErrorCode::BadField,
                format!("{field}: a repeated job is a timer and cannot be submitted as a job"),
                "use fairlead timers submit FILE, or omit the field to run the job once",
            ));
        }
        self.make_job_of(spec, who, self.next_id())
    }

    /// A job of this submitter, with this id.
    pub(crate) fn make_job_of(
        &self,
        mut spec: Spec,
        who: Who,
        id: JobId,
    ) -> Result<NewJob, Refusal> {
        for name in SENSITIVE {
            spec.shift_remove(name);
        }
        let plan = JobFields::parse(&spec, &self.config.site).map_err(|error| {
            Refusal::from(ErrorBody::new(
                ErrorCode::BadField,
                error.to_string(),
                error.hint,
            ))
        })?;
        let account = if plan.account.is_empty() {
            who.name.clone()
        } else {
            plan.account.clone()
        };
        if account.is_empty() {
            let hint =
                "set my_account in the job, or the account in the configuration: fairlead config";
            return Err(Refusal::new(
                ErrorCode::BadField,
                "my_account: missing",
                hint,
            ));
        }
        check_name("my_account", &account)?;
        if !who.may_act_for(&account) {
            let message = format!("account '{}' may not submit for '{account}'", who.name);
            return Err(Refusal::new(
                ErrorCode::Forbidden,
                message,
                "submit as yourself, or ask an admin",
            ));
        }
        let place = self.place_in_queue(&plan.queue, &account, &who)?;
        let waits = waits_of(&spec)?;
        let (sequence, sequence_same_host) = sequence_of(&spec)?;
        let now_ms = self.clock.wall_ms();
        let times = Times::of(&plan, now_ms)?;
        spec.insert("my_account".to_owned(), json!(account));
        let state = self.new_state(id, plan, (account, place), waits, &spec, now_ms);
        let mut state = times.set(state);
        state.ready &= sequence.is_empty();
        (state.sequence, state.sequence_same_host) = (sequence, sequence_same_host);
        state = state.set_alarm();
        state.principal = if who.name == state.account {
            String::new()
        } else {
            who.name
        };
        self.sealer.seal(&mut spec);
        Ok(NewJob { state, body: spec })
    }

    /// Who submits this, by what it says itself and by what the request says.
    pub(crate) fn submitter(&self, spec: &Spec, said: &Credentials) -> Result<Who, Refusal> {
        let text = |name: &str| spec.get(name).and_then(Value::as_str).map(str::to_owned);
        let credentials = Credentials {
            token: said.token.clone().or_else(|| text("my_token")),
            account: text("my_account").or_else(|| said.account.clone()),
        };
        self.people.accounts.identify(&credentials)
    }

    fn new_state(
        &self,
        id: JobId,
        plan: JobFields,
        (account, place): (String, Place),
        waits: Option<Value>,
        spec: &Spec,
        now_ms: u64,
    ) -> JobState {
        let count = |list: &[String]| u16::try_from(list.len()).unwrap_or(u16::MAX);
        let text = |name: &str| {
            spec.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        JobState {
            ready: waits.is_none(),
            ready_ms: now_ms,
            class: self.people.queues.class(labels::queue_of(&place.queue)),
            account,
            queue: place.queue,
            queue_label: place.label,
            priority: plan.priority,
            submit_ms: now_ms,
            submit_id: plan.submit_id,
            group_id: plan.group_id,
            result_root: result_root(&plan.suite, &plan.tbox_group, spec, now_ms, id),
            suite: plan.suite,
            category: plan.category,
            params: params_text(spec),
            fingerprint: fingerprint(spec),
            testbox: plan.testbox,
            tbox_group: plan.tbox_group,
            arch: plan.arch,
            host_keys: plan.host_keys,
            memory_mb: plan.memory_mb,
            tags_n: count(&plan.tags),
            tags: plan.tags,
            devices_n: count(&plan.devices),
            devices: plan.devices,
            cache_dirs: plan.cache_dirs,
            timeout_s: plan.timeout_s,
            stage_limits_s: plan.stage_limits_s,
            queue_timeout_s: plan.queue_timeout_s,
            retry_lost_left: plan.retry.infra_max,
            retry_fail_left: plan.retry.own_max,
            retry_on: if plan.retry.own.len() == OWN_CAUSES {
                Vec::new()
            } else {
                plan.retry.own
            },
            backoff: plan.retry.backoff,
            retry_elsewhere: plan.retry.elsewhere,
            stop_when_cut_off: plan.stop_when_cut_off,
            waits,
            lab: text("lab"),
            project: text("project"),
            labels: labels_of(spec),
            ..JobState::blank(id, plan.tbox_type)
        }
    }
}

/// Whether a field has a value.
fn is_said(spec: &Spec, field: &str) -> bool {
    let value = spec.get(field);
    value.is_some_and(|value| {
        !value.is_null() && value.as_str().is_none_or(|text| !text.trim().is_empty())
    })
}

/// When a new job may begin and must be over.
struct Times {
    start_ms: u64,
    finish_by_ms: u64,
}

impl Times {
    fn of(plan: &JobFields, now_ms: u64) -> Result<Self, Refusal> {
        let moment = |when: Option<When>| when.map_or(0, |when| when.moment_ms(now_ms));
        let (start_ms, finish_by_ms) = (moment(plan.start), moment(plan.deadline));
        if plan.deadline.is_some() && finish_by_ms <= start_ms.max(now_ms) {
            let after = if start_ms > now_ms {
                "its start_at"
            } else {
                "now"
            };
            return Err(Refusal::new(
                ErrorCode::BadField,
                format!("deadline: {} is not after {after}", utc_text(finish_by_ms)),
                "set a later deadline, or omit it",
            ));
        }
        Ok(Self {
            // A time that has passed is no reason to wait.
            start_ms: if start_ms > now_ms { start_ms } else { 0 },
            finish_by_ms,
        })
    }

    fn set(&self, state: JobState) -> JobState {
        JobState {
            start_ms: self.start_ms,
            finish_by_ms: self.finish_by_ms,
            ready: state.ready && self.start_ms == 0,
            ..state
        }
        .set_alarm()
    }
}

fn waits_of(spec: &Spec) -> Result<Option<Value>, Refusal> {
    let Some(wait_on) = spec.get("wait_on").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    Condition::read_all(wait_on)?;
    let options = spec.get("wait_options").and_then(Value::as_object);
    let fail_fast = options
        .and_then(|options| options.get("fail_fast"))
        .is_some_and(|value| value != &json!(false));
    Ok(Some(json!({ "wait_on": wait_on, "fail_fast": fail_fast })))
}

/// `labels`, a list of short texts; others are left to the body.
fn labels_of(spec: &Spec) -> Vec<String> {
    let items = spec.get("labels").and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(Value::as_str);
    texts
        .filter(|text| text.len() <= LABEL_BYTES_MAX)
        .take(LABELS_MAX)
        .map(str::to_owned)
        .collect()
}

fn params_text(spec: &Spec) -> String {
    let mut text = String::new();
    for (name, value) in parameters(spec) {
        let more = format!("{}{name}={value}", if text.is_empty() { "" } else { " " });
        if text.len() + more.len() > PARAMS_MAX {
            break;
        }
        text.push_str(&more);
    }
    text
}
