//! Inputs of jobs that are submitted: they must be there and be the account's, and stay until the jobs name them.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_content::{Digest, PIN_CHUNKS_MAX, Pin, SKETCH_MAX};
use fairlead_store::{JobState, NewJob};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::submission::SubmissionFlow;
use fairlead_base::errors::{Refusal, SubmitError};
use fairlead_known::content::{FOUND_MS, FoundInput};

/// How long an input is kept for the jobs of a submit, ms: they are stored long before.
const PIN_MS: u64 = 2 * FOUND_MS;
/// Inputs that are looked up side by side.
const ABREAST: usize = 16;

/// An input, and for which account it must be there.
type Wanted = (Digest, String);

impl SubmissionFlow {
    /// Refuses jobs with inputs that are not there or not their account's; the others stay until the jobs are stored.
    /// `only_look`: nothing is kept.
    pub(crate) async fn check_inputs(
        &self,
        made: &mut [Result<NewJob, Refusal>],
        only_look: bool,
    ) -> Result<(), Refusal> {
        let all = made.iter().flatten().flat_map(wanted);
        let all: BTreeSet<Wanted> = all.map(|(_, wanted)| wanted).collect();
        if all.is_empty() {
            return Ok(());
        }
        let found = self.find_inputs(all, only_look).await?;
        for outcome in made {
            let Ok(job) = outcome else { continue };
            let mut inputs = Vec::new();
            let mut unknown = None;
            for (text, wanted) in wanted(job) {
                match found.get(&wanted) {
                    Some(input) => inputs.push(input),
                    None => unknown = unknown.or(Some(text)),
                }
            }
            if let Some(id) = unknown {
                let account = job.state.account.clone();
                *outcome = Err(SubmitError::UnknownInput(id, account).into());
            } else {
                job.state.input_words = words_of(&inputs);
            }
        }
        Ok(())
    }

    /// Those of these inputs that are there.
    async fn find_inputs(
        &self,
        all: BTreeSet<Wanted>,
        only_look: bool,
    ) -> Result<BTreeMap<Wanted, FoundInput>, Refusal> {
        let now = self.ctx.clock.now();
        let mut found = BTreeMap::new();
        let mut rest = Vec::new();
        {
            let known = self.known_content.found.lock();
            for (id, account) in all {
                match known.get(id, &account, now) {
                    Some(input) => {
                        found.insert((id, account), input);
                    }
                    None => rest.push((id, account)),
                }
            }
        }
        if !only_look {
            // Before they are looked up: no collection removes what was found.
            self.pin_inputs(&rest).await?;
        }
        let looks = stream::iter(rest).map(async |wanted| {
            let input = self.look_up_input(&wanted).await?;
            Ok::<_, Refusal>(input.map(|input| (wanted, input)))
        });
        let looked_up: Vec<_> = looks
            .buffer_unordered(ABREAST)
            .try_filter_map(async |found| Ok(found))
            .try_collect()
            .await?;
        if !only_look {
            let mut known = self.known_content.found.lock();
            for ((id, account), input) in &looked_up {
                known.add(*id, account, input.clone(), now);
            }
        }
        found.extend(looked_up);
        Ok(found)
    }

    async fn look_up_input(&self, (id, account): &Wanted) -> Result<Option<FoundInput>, Refusal> {
        let is_checked = self.people.accounts.tokens_needed();
        if is_checked && self.ctx.content.owned(account, *id).await?.is_none() {
            return Ok(None);
        }
        let about = self.ctx.content.about(*id).await?;
        Ok(about.map(|about| FoundInput {
            bytes: about.bytes,
            words: about.sketch.into(),
        }))
    }

    async fn pin_inputs(&self, inputs: &[Wanted]) -> Result<(), Refusal> {
        let until_ms = self.ctx.clock.wall_ms().saturating_add(PIN_MS);
        for some in inputs.chunks(PIN_CHUNKS_MAX) {
            let pin = Pin {
                put: format!("submit-{}", uuid::Uuid::new_v4().simple()),
                until_ms,
                digests: some.iter().map(|(id, _)| *id).collect(),
            };
            self.ctx.content.pin(&pin).await?;
        }
        Ok(())
    }
}

/// The inputs of a job that are put already.
fn wanted(job: &NewJob) -> impl Iterator<Item = (String, Wanted)> {
    let account = &job.state.account;
    let known = |input: &&String| !input.starts_with(JobState::INPUT_FROM);
    let inputs = job.state.inputs.iter().filter(known);
    inputs.filter_map(|input| {
        let id = input.parse().ok()?;
        Some((input.clone(), (id, account.clone())))
    })
}

/// Words of all inputs of a job, at most as many as one of them has: of each by its share of the bytes, at least one.
fn words_of(inputs: &[&FoundInput]) -> Vec<String> {
    let all: u64 = inputs.iter().map(|input| input.bytes.max(1)).sum();
    let room = u64::try_from(SKETCH_MAX).unwrap_or(u64::MAX);
    let mut largest = inputs.to_vec();
    largest.sort_by_key(|input| std::cmp::Reverse(input.bytes));
    let mut words = BTreeSet::new();
    for input in largest {
        let share = input.bytes.max(1).saturating_mul(room) / all.max(1);
        let share = usize::try_from(share.max(1)).unwrap_or(SKETCH_MAX);
        let left = SKETCH_MAX.saturating_sub(words.len());
        words.extend(input.words.iter().take(share.min(left)).cloned());
    }
    words.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: u64, letter: &str) -> FoundInput {
        FoundInput {
            bytes,
            words: (0..16).map(|n| format!("{letter}{n:02}")).collect(),
        }
    }

    #[test]
    fn large_inputs_have_most_of_the_words() {
        let (large, small, tiny) = (input(750, "a"), input(250, "b"), input(0, "c"));
        let words = words_of(&[&tiny, &small, &large]);
        let of = |letter: &str| words.iter().filter(|word| word.starts_with(letter)).count();
        assert_eq!((of("a"), of("b"), of("c")), (11, 3, 1), "{words:?}");
        assert_eq!(words_of(&[&large]).len(), 16);
        let many: Vec<FoundInput> = (0..30).map(|n| input(5, &format!("{n}-"))).collect();
        assert_eq!(words_of(&many.iter().collect::<Vec<_>>()).len(), 16);
        assert_eq!(words_of(&[]), [""; 0]);
    }
}
