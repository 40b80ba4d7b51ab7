//! The job of a timer's run: what a submit of its owner would make at that time.

use fairlead_job::Spec;
use fairlead_store::NewJob;
use serde_json::{Map, Value, json};

use crate::submission::{SubmissionFlow, rules::say_rule};
use fairlead_base::{
    clock::utc_text,
    errors::{Refusal, TimerError},
};
use fairlead_known::timers::{Run, Timer};

impl SubmissionFlow {
    /// The job of a run: what a submit of its owner would make now.
    pub(crate) fn job_of_run(&self, timer: &Timer, run: Run) -> Result<NewJob, Refusal> {
        let who = self
            .people
            .accounts
            .named(&timer.submitter)
            .ok_or_else(|| TimerError::NoSubmitter(timer.submitter.clone()))?;
        let mut spec = timer.job.clone();
        self.ctx.sealer.open_secrets(&mut spec)?;
        spec.insert("timer".to_owned(), json!(timer.name));
        spec.insert("timer_due".to_owned(), json!(utc_text(run.due_ms)));
        wait_for_the_last(&mut spec, timer);
        let ruled = self.apply_rules(&mut spec, &who);
        let mut job = self.make_job_of(spec, who, run.job_id)?;
        if let Some(ruled) = ruled {
            say_rule(&mut job, &ruled);
        }
        Ok(job)
    }
}

/// A run that is queued or replaces others begins when the last one has ended, however it ended.
fn wait_for_the_last(spec: &mut Spec, timer: &Timer) {
    let Some(last) = timer.open.last() else {
        return;
    };
    let waits = spec.entry("wait_on").or_insert(Value::Null);
    if !waits.is_object() {
        *waits = Value::Object(Map::new());
    }
    if let Some(waits) = waits.as_object_mut() {
        waits.insert(last.to_string(), Value::Null);
    }
}
