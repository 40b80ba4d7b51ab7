//! Explains to people whether a job has the result of another one, and which part of its key differs from the nearest
//! earlier job.

use std::collections::BTreeMap;

use fairlead_api::{NearestRun, ReuseExplanation};
use fairlead_job::{Input, JobId, KeyPart, ReuseKey, Spec, Stage, differing_fields};
use fairlead_store::{JobState, Parts, Reusing, Search, StoreError};

use crate::reuse::ReuseFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::reuse::parts_text;
use fairlead_lifecycle::reuse::joined;

use super::look_up::inputs_of;

/// How many earlier jobs are looked at.
const LOOKED_AT: u32 = 50;

impl ReuseFlow {
    /// Whether a job has the result of another one, and why or why not.
    pub(crate) async fn explain_reuse(&self, id: JobId) -> Result<ReuseExplanation, Refusal> {
        let state = self.jobs.shown_job(id).await?.state;
        let reuse = state.reuse.as_deref().cloned().unwrap_or_default();
        let (verdict, summary) = verdict(&state, &reuse);
        let text = |id: Option<JobId>| id.map_or_else(String::new, |id| id.to_string());
        let spec = self.jobs.specs(&[&state]).await?.pop().flatten();
        let key = spec.as_ref().and_then(|spec| self.whole_key(&state, spec));
        let nearest = match (&spec, &key) {
            (Some(spec), Some(key)) if state.shards.is_none() => {
                self.nearest(&state, spec, key).await?
            }
            _ => None,
        };
        Ok(ReuseExplanation {
            job_id: id.to_string(),
            verdict: verdict.to_owned(),
            summary,
            reused_from: text(state.reused_from),
            joined: text(reuse.joined),
            audit_of: text(reuse.audit_of),
            within_s: reuse.within_s,
            key: reuse.key,
            parts: key.map(|key| parts_text(&key.parts)).unwrap_or_default(),
            nearest,
        })
    }

    /// The key of a job as it is stored, with its parts.
    fn whole_key(&self, state: &JobState, spec: &Spec) -> Option<ReuseKey> {
        let folders = Input::folders(spec).ok()?;
        let inputs = inputs_of(state, &folders);
        ReuseKey::of(spec, &inputs, &self.rules.all().salt)
    }

    /// Of the newest earlier jobs of its account and suite the one whose key differs least.
    async fn nearest(
        &self,
        state: &JobState,
        spec: &Spec,
        key: &ReuseKey,
    ) -> Result<Option<NearestRun>, StoreError> {
        let earlier = self.earlier(state).await?;
        let states: Vec<&JobState> = earlier.iter().collect();
        let specs = self.jobs.specs(&states).await?;
        let mut nearest: Option<(usize, NearestRun)> = None;
        for (other, other_spec) in earlier.iter().zip(specs) {
            let Some(other_spec) = other_spec else {
                continue;
            };
            let Some(other_key) = self.whole_key(other, &other_spec) else {
                continue;
            };
            let differs: BTreeMap<String, Vec<String>> = key
                .differing(&other_key)
                .into_iter()
                .map(|part| {
                    (
                        part.as_str().to_owned(),
                        fields_of(part, (state, spec), (other, &other_spec)),
                    )
                })
                .collect();
            let many = differs.values().map(|fields| fields.len().max(1)).sum();
            if nearest.as_ref().is_none_or(|(least, _)| many < *least) {
                let run = NearestRun {
                    job_id: other.job_id.to_string(),
                    job_health: other.health.into(),
                    differs,
                };
                nearest = Some((many, run));
            }
        }
        Ok(nearest.map(|(_, run)| run))
    }

    /// The newest jobs of its account and suite that ended and ran themselves; of a shard, the shards of its number.
    async fn earlier(&self, state: &JobState) -> Result<Vec<JobState>, StoreError> {
        let place = state.shard.filter(|place| !place.has_own_body());
        let search = Search {
            accounts: vec![state.account.clone()],
            suites: vec![state.suite.clone()],
            stages: ended_stages(),
            parts: if place.is_some() {
                Parts::NoShards
            } else {
                Parts::NoParents
            },
            after: Some(place.map_or(state.job_id, |place| place.of)),
            limit: LOOKED_AT,
            ..Search::default()
        };
        let found = self.ctx.store.search(&search).await?.jobs;
        let found = found.into_iter().map(|job| job.state);
        let found = match place {
            None => found.collect(),
            Some(place) => {
                let parents = found.filter(|parent| parent.shards.is_some());
                let ids: Vec<JobId> = parents
                    .map(|parent| parent.job_id.behind(place.n))
                    .collect();
                let shards = self.ctx.store.get_readable(&ids).await?;
                shards.into_iter().map(|job| job.state).collect::<Vec<_>>()
            }
        };
        let ran = |other: &JobState| other.reused_from.is_none() && other.running_ms > 0;
        Ok(found.into_iter().filter(ran).collect())
    }
}

/// All stages of jobs that have ended.
fn ended_stages() -> Vec<Stage> {
    let ended = Stage::ALL.iter().copied();
    ended.filter(|stage| stage.is_terminal()).collect()
}

/// What of a part differs: fields, or folders of inputs.
fn fields_of(
    part: KeyPart,
    (state, spec): (&JobState, &Spec),
    (other, other_spec): (&JobState, &Spec),
) -> Vec<String> {
    if part != KeyPart::Inputs {
        return differing_fields(spec, other_spec, part);
    }
    let named = |state: &JobState, spec: &Spec| {
        let folders = Input::folders(spec).unwrap_or_default();
        folders
            .into_iter()
            .zip(state.inputs.clone())
            .collect::<BTreeMap<_, _>>()
    };
    let (own, others) = (named(state, spec), named(other, other_spec));
    let mut folders: Vec<String> = own.keys().chain(others.keys()).cloned().collect();
    folders.sort_unstable();
    folders.dedup();
    let differs = |folder: &String| own.get(folder) != others.get(folder);
    let shown = |folder: String| {
        if folder.is_empty() {
            ".".to_owned()
        } else {
            folder
        }
    };
    folders.into_iter().filter(differs).map(shown).collect()
}

/// The verdict in one word, and in one sentence.
fn verdict(state: &JobState, reuse: &Reusing) -> (&'static str, String) {
    if let Some(from) = state.reused_from {
        return match reuse.joined {
            None => (
                "reused",
                format!("it has the result of job {from}; nothing ran"),
            ),
            Some(_) => (
                "joined",
                format!("it waited for job {from} and has its result; nothing ran"),
            ),
        };
    }
    if state.reuse.is_none() {
        let words = "it says nothing of 'reuse', or no, and its suite has no default";
        return ("never", words.to_owned());
    }
    if reuse.within_s == 0 {
        return (
            "never",
            format!("its suite reuses results, but {}", reuse.why),
        );
    }
    verdict_of_asking(state, reuse)
}

/// The same for a job without a result that could take one.
fn verdict_of_asking(state: &JobState, reuse: &Reusing) -> (&'static str, String) {
    if let Some(sharding) = &state.shards {
        let id = state.job_id;
        let words = format!(
            "each of its {} shards has a key of its own: ask for one, such as {}",
            sharding.count,
            id.behind(1)
        );
        return ("shards", words);
    }
    let has_ended = state.stage.is_terminal();
    if has_ended && state.running_ms == 0 {
        let words = "it ended before it ran, and took no result";
        return ("ended", words.to_owned());
    }
    if let Some(other) = joined(state) {
        return (
            "waits",
            format!("job {other} runs the same thing, and this one waits for its result"),
        );
    }
    let (word, runs) = if has_ended {
        ("ran", "ran")
    } else {
        ("runs", "runs")
    };
    if let Some(of) = reuse.audit_of {
        return (
            "audit",
            format!("it could have the result of job {of}, and {runs} to check it"),
        );
    }
    if state.waits.is_some() {
        return (
            "waits",
            "it waits for other jobs; results are looked for after that".to_owned(),
        );
    }
    if reuse.why.is_empty() {
        return (
            word,
            "nobody looked for results: it was made by an older version".to_owned(),
        );
    }
    (word, format!("it {runs} itself: {}", reuse.why))
}

#[cfg(test)]
mod tests {
    use fairlead_job::{Health, WaitOn, Waits};
    use fairlead_store::Sharding;

    use super::*;
    use crate::testing::state;

    fn asking(change: impl FnOnce(&mut JobState, &mut Reusing)) -> (&'static str, String) {
        let mut job = state(7);
        let mut reuse = Reusing {
            key: "k".to_owned(),
            within_s: 60,
            why: "no earlier job succeeded".to_owned(),
            ..Reusing::default()
        };
        change(&mut job, &mut reuse);
        job.reuse = Some(Box::new(reuse.clone()));
        verdict(&job, &reuse)
    }

    fn end(job: &mut JobState, running_ms: u64) {
        job.stage = Stage::Finish;
        job.health = Health::Success;
        job.running_ms = running_ms;
    }

    #[test]
    fn each_verdict_says_what_is_so_now() {
        let of = JobId::new(5);
        let waits = |job: &mut JobState| {
            job.ready = false;
            job.waits = Some(Waits::Jobs(WaitOn::end_of(of)));
        };
        let is = |said: (&str, String), word: &str, part: &str| {
            assert_eq!(said.0, word, "{}", said.1);
            assert!(said.1.contains(part), "{}", said.1);
        };
        is(asking(|_, _| {}), "runs", "it runs itself: no earlier");
        is(
            asking(|job, _| end(job, 3)),
            "ran",
            "it ran itself: no earlier",
        );
        is(asking(|job, _| end(job, 0)), "ended", "before it ran");
        is(asking(|job, _| waits(job)), "waits", "for other jobs");
        let cancelled = asking(|job, _| {
            waits(job);
            job.stage = Stage::Cancel;
        });
        is(cancelled, "ended", "before it ran");
        let joins = asking(|job, reuse| {
            waits(job);
            reuse.joined = Some(of);
        });
        is(joins, "waits", "waits for its result");
        is(
            asking(|_, reuse| reuse.audit_of = Some(of)),
            "audit",
            "and runs to check",
        );
        let checked = asking(|job, reuse| {
            end(job, 3);
            reuse.audit_of = Some(of);
        });
        is(checked, "audit", "and ran to check");
        let whole = |running_ms| {
            asking(move |job, _| {
                job.shards = Some(Box::new(Sharding::default()));
                end(job, running_ms);
            })
        };
        is(whole(0), "shards", "a key of its own");
        is(whole(3), "shards", "a key of its own");
        let secrets = asking(|_, reuse| reuse.within_s = 0);
        is(secrets, "never", "its suite reuses results, but");
    }
}
