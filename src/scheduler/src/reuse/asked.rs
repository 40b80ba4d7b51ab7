//! Wishes of a new job about results of others, with the lab's settings.

use fairlead_job::{Guest, Input, JobFields, Reuse, ReuseKey, Spec, TboxType, never_reusable};
use fairlead_store::Reusing;

use crate::reuse::ReuseFlow;
use fairlead_base::{
    errors::{Refusal, SubmitError},
    names::HEALTH_CHECK,
};

/// The field of a job that runs another one again: somebody wants a run.
const RERUN_OF: &str = "rerun_of";

impl ReuseFlow {
    /// What a job has to do with results of others; `None`: nothing. A job with shards has no key: each shard has one.
    pub(crate) fn reusing(
        &self,
        spec: &Spec,
        fields: &JobFields,
        account: &str,
    ) -> Result<Option<Box<Reusing>>, Refusal> {
        let rules = self.rules.all();
        let measures = rules.measures(&fields.suite);
        if account == HEALTH_CHECK {
            return Ok(None);
        }
        let within_s = match fields.reuse {
            Reuse::No => return Ok(None),
            Reuse::Within(_) if measures => {
                return Err(SubmitError::Measures(fields.suite.clone()).into());
            }
            Reuse::Within(within_s) => within_s,
            Reuse::Unsaid => {
                let is_open = !measures && !spec.contains_key(RERUN_OF);
                let default_s = rules.default_s(&fields.suite).filter(|_| is_open);
                let Some(within_s) = default_s else {
                    return Ok(None);
                };
                if let Some(why) = never_reusable(spec) {
                    let why = why.to_owned();
                    return Ok(Some(Box::new(Reusing {
                        why,
                        ..Reusing::default()
                    })));
                }
                within_s
            }
        };
        let key = if fields.shards.is_some() || fields.group.is_some() {
            String::new()
        } else {
            self.key_of(spec, &fields.inputs)
        };
        Ok(Some(Box::new(Reusing {
            key,
            within_s,
            image: fields.guest.image.clone().unwrap_or_default(),
            ..Reusing::default()
        })))
    }

    /// The key of what a job runs; empty: an input is of a job that has not ended.
    pub(super) fn key_of(&self, spec: &Spec, inputs: &[Input]) -> String {
        let salt = &self.rules.all().salt;
        ReuseKey::of(spec, inputs, salt).map_or_else(String::new, |key| key.key)
    }

    /// What a shard has to do with results of others. `spec`: what it runs, on a testbox of this kind.
    pub(crate) fn shard_reusing(
        &self,
        parent: Option<&Reusing>,
        (spec, kind): (&Spec, TboxType),
        inputs: &[Input],
    ) -> Option<Box<Reusing>> {
        let parent = parent?;
        let key = if parent.within_s > 0 {
            self.key_of(spec, inputs)
        } else {
            String::new()
        };
        let image = Guest::of(spec, kind).ok().and_then(|guest| guest.image);
        Some(Box::new(Reusing {
            key,
            image: image.unwrap_or_default(),
            ..parent.clone()
        }))
    }
}
