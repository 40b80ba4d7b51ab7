//! Changes of jobs that wait: held back, released, or with new values of some fields.
//!
//! The body stays as it was submitted. The state keeps the new values by name, and all that follows from them is worked out
//! as a submit does it.

use std::sync::Arc;

use fairlead_job::{Field, JobFields, JobId, Spec, Use, set_fields};
use fairlead_store::JobState;
use serde_json::{Value, json};

use crate::{placement::feasibility::Infeasible, submission::SubmissionFlow};
use fairlead_base::errors::{JobError, Refusal};
use fairlead_known::accounts::Who;
use fairlead_lifecycle::hold::{check_changeable, held, let_go};

/// A change of a waiting job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edit {
    /// Whether it is held; none: as before.
    pub(crate) hold: Option<bool>,
    /// New values, by the first names of fields.
    set: Spec,
}

impl Edit {
    /// Reads new values.
    pub(crate) fn new(hold: Option<bool>, said: Spec) -> Result<Self, Refusal> {
        let mut set = Spec::new();
        for (name, value) in said {
            let field = Field::of(&name).and_then(|field| Field::of(field.principal));
            let Some(field) = field.filter(|field| field.is(Use::Edited)) else {
                return Err(JobError::NotEditable(name).into());
            };
            set.insert(field.name.to_owned(), value);
        }
        if hold.is_none() && set.is_empty() {
            return Err(JobError::NoEdit.into());
        }
        Ok(Self { hold, set })
    }

    /// What the audit calls it.
    fn name(&self) -> &'static str {
        match self.hold {
            Some(true) => "job.hold",
            Some(false) => "job.release",
            None => "job.edit",
        }
    }
}

impl SubmissionFlow {
    /// Changes a waiting job, and returns what is to be said of it: that no host could run it.
    pub(crate) async fn edit_job(
        self: &Arc<Self>,
        who: &Who,
        id: JobId,
        edit: &Edit,
    ) -> Result<String, Refusal> {
        let known = self.jobs.stored_job(id).await?.state;
        who.check_owns(&known)?;
        check_changeable(&known)?;
        let now_ms = self.ctx.clock.wall_ms();
        let worked_out = if edit.set.is_empty() {
            None
        } else {
            Some(self.work_out(who, &known, &edit.set).await?)
        };
        let changed = self
            .jobs
            .change(id, |state| {
                who.check_owns(state)?;
                check_changeable(state)?;
                let edited = match &worked_out {
                    Some(worked_out) if state.edits == known.edits => {
                        Some(with(state, worked_out, &edit.set))
                    }
                    // Somebody else changed it in between.
                    Some(_) => return Err(JobError::Contended(id).into()),
                    None => None,
                };
                let base = edited.as_ref().unwrap_or(state);
                let moved = match edit.hold {
                    Some(true) => held(base, who.shown()),
                    Some(false) => let_go(base, now_ms),
                    None => None,
                };
                Ok(moved.or(edited))
            })
            .await?;
        if changed.is_change() {
            let detail = if edit.set.is_empty() {
                Value::Null
            } else {
                json!(edit.set)
            };
            self.ctx
                .audit(&who.name, edit.name(), &id.to_string(), detail);
        }
        let never = self
            .placement
            .never_runs(&changed.after.state, &mut Infeasible::default());
        Ok(never.unwrap_or_default())
    }

    /// The state that a submit would give the job with these values.
    async fn work_out(&self, who: &Who, known: &JobState, set: &Spec) -> Result<JobState, Refusal> {
        let id = known.job_id;
        let body = self.ctx.store.get_bodies(&[id]).await?.pop().flatten();
        let mut spec = body.ok_or(JobError::Unknown(id))?;
        if let Some(before) = &known.edits {
            set_fields(&mut spec, before);
        }
        set_fields(&mut spec, set);
        let fields = JobFields::parse(&spec, &self.ctx.config.site)?;
        let place = self.place_in_queue(&fields.queue, &known.account, who)?;
        let times = fields.times(self.ctx.clock.wall_ms())?;
        let count = |list: &[String]| u16::try_from(list.len()).unwrap_or(u16::MAX);
        Ok(JobState {
            class: self.people.queues.class(&place.queue),
            queue: place.queue,
            queue_label: place.label,
            priority: fields.priority,
            memory_mb: fields.memory_mb,
            guest_memory_mb: fields.guest_memory_mb,
            cpus: fields.cpus,
            timeout_s: fields.timeout_s,
            tags_n: count(&fields.tags),
            tags: fields.tags,
            finish_by_ms: times.finish_by_ms,
            ..known.clone()
        })
    }
}

/// The state with the fields that have new values, and nothing else of what was worked out.
fn with(state: &JobState, from: &JobState, set: &Spec) -> JobState {
    let mut next = state.clone();
    for (name, value) in set {
        match name.as_str() {
            "queue" => {
                next.queue.clone_from(&from.queue);
                next.queue_label.clone_from(&from.queue_label);
                next.class = from.class;
            }
            "priority" => next.priority = from.priority,
            "need_memory" => {
                next.memory_mb = from.memory_mb;
                next.guest_memory_mb = from.guest_memory_mb;
            }
            "need_cpus" => next.cpus = from.cpus,
            "timeout" => next.timeout_s = from.timeout_s,
            "tags" => {
                next.tags.clone_from(&from.tags);
                next.tags_n = from.tags_n;
            }
            "deadline" => next.finish_by_ms = from.finish_by_ms,
            _ => {}
        }
        let edits = next.edits.get_or_insert_default();
        edits.insert(name.clone(), value.clone());
    }
    next
}
