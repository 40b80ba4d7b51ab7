//! Times at which a waiting job changes by itself, in the words of its explanation.

use fairlead_dispatch::Millis;
use fairlead_store::JobState;

use fairlead_base::clock::utc_text;

/// When its `else` holds, and what that is.
pub(super) fn from_then_on(state: &JobState) -> Option<String> {
    let (from_ms, last) = (state.otherwise_ms()?, state.otherwise.as_deref()?);
    let with = |word: &str, tags: &[String]| {
        (!tags.is_empty()).then(|| format!("{word} {}", tags.join(", ")))
    };
    let lists = [with("with", &last.tags), with("without", &last.not_tags)];
    let lists: Vec<String> = lists.into_iter().flatten().collect();
    let hosts = match lists.as_slice() {
        [] => "every host".to_owned(),
        lists => format!("also hosts {}", lists.join(" and ")),
    };
    Some(format!("from {} it takes {hosts}", utc_text(from_ms)))
}

/// When waiting ends by itself.
pub(super) fn given_up(state: &JobState) -> Option<String> {
    let by_ms = Some(state.finish_by_ms).filter(|ms| *ms > 0);
    let until_ms = [state.queue_until_ms(), by_ms]
        .into_iter()
        .flatten()
        .min()?;
    Some(format!(
        "it ends at {} unless a testbox takes it before",
        utc_text(until_ms)
    ))
}

/// How long a job waits for a host with its cache directories.
pub(super) fn words_of_affinity(until: Millis) -> String {
    format!(
        "it waits until {} for a host with its cache directories",
        utc_text(until.0)
    )
}

/// When the store is asked again who has a job.
pub(super) fn words_of_silent_store(until: Millis) -> String {
    format!(
        "the store did not tell who has it; the next try is at {}",
        utc_text(until.0)
    )
}
