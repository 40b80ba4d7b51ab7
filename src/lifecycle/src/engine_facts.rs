//! Converts stored states to the engine's facts and running jobs.

use fairlead_dispatch::{
    Alternative, CPUS_UNCHECKED, HostLoad, JobFacts, JobKey, Kind, Millis, Running,
};
use fairlead_job::TboxType;
use fairlead_store::{JobState, StoredJob, Version};

/// Returns the engine's view of a waiting job.
pub fn facts(job: &StoredJob) -> JobFacts {
    let state = &job.state;
    JobFacts {
        key: JobKey(state.job_id.get()),
        version: engine_version(job.version),
        account: state.account.clone(),
        queue: state.queue.clone(),
        suite: state.suite.clone(),
        class: class_of(&state.fingerprint),
        priority: state.priority,
        kind: match state.tbox_type {
            TboxType::Hw => Kind::Hw,
            TboxType::Vm => Kind::Vm,
            TboxType::Dc => Kind::Dc,
        },
        arch: state.arch.clone(),
        host_keys: state.host_keys.clone(),
        memory_mb: state.memory_mb,
        cpus: state.cpus,
        tags: state.tags.clone(),
        not_tags: state.not_tags.clone(),
        any_of: alternatives(&state.any_of),
        devices: state.devices.clone(),
        not_on: state.not_on.clone(),
        cache_dirs: state.cache_dirs.clone(),
        prefer: preferred(state),
        timeout_s: state.timeout_s,
        submitted: Millis(state.ready_ms),
        not_before: Millis(0),
    }
}

/// Returns the class of a fingerprint for run times. 0: it has none.
pub fn class_of(fingerprint: &str) -> u64 {
    let digits = fingerprint.get(..16).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

/// Returns the tags and chunk words that a job prefers on a host. It never waits for them.
fn preferred(state: &JobState) -> Vec<String> {
    let tags = state.prefer.iter().map(|tag| liked(tag));
    let words = state.input_words.iter().map(|word| holds(word));
    tags.chain(words).collect()
}

/// Returns the cache directory name of a chunk word. No real directory has this name.
pub fn holds(word: &str) -> String {
    format!("content:{word}")
}

/// Returns the cache directory name of a tag, so that jobs can prefer the tag. No real directory has this name.
pub fn liked(tag: &str) -> String {
    format!("tag:{tag}")
}

/// Returns alternatives as the engine's type.
pub fn alternatives(all: &[fairlead_job::Alternative]) -> Vec<Alternative<String>> {
    let one = |one: &fairlead_job::Alternative| Alternative {
        tags: one.tags.clone().into(),
        not_tags: one.not_tags.clone().into(),
    };
    all.iter().map(one).collect()
}

/// Returns the engine's view of a job that a host holds.
pub fn running(job: &StoredJob) -> Running {
    let state = &job.state;
    Running {
        facts: facts(job),
        host: state.host.clone(),
        group: state.host_group.clone(),
        total_memory_mb: state.host_memory_mb,
        total_cpus: match state.host_cpus {
            0 => CPUS_UNCHECKED,
            cpus => cpus,
        },
        since: Millis(state.dispatch_ms),
    }
}

/// Returns the load of a host as the engine's type.
pub fn engine_load(load: fairlead_api::HostLoad) -> HostLoad {
    HostLoad {
        loaded: load.loaded,
        memory_used_percent: load.memory_used_percent(),
        cpu_pressure_percent: load.cpu_pressure_percent.unwrap_or(0),
    }
}

/// Returns a version as the engine's type.
pub fn engine_version(version: Version) -> fairlead_dispatch::Version {
    fairlead_dispatch::Version {
        primary_term: version.primary_term,
        seq_no: version.seq_no,
    }
}

/// Returns a version as the store's type.
pub fn store_version(version: fairlead_dispatch::Version) -> Version {
    Version {
        primary_term: version.primary_term,
        seq_no: version.seq_no,
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::{Dimension, EVENT_JOBS_MAX, Event, PulledPage};

    use super::*;
    use fairlead_base::mailbox::{Mailbox, Message};
    use fairlead_fixtures::state;

    #[test]
    fn what_is_told_of_many_jobs_comes_in_parts_before_the_end_of_its_page() {
        let mailbox = Mailbox::default();
        let many = EVENT_JOBS_MAX * 2 + 1;
        let job = |n: usize| {
            let state = state(u64::try_from(n).unwrap());
            let version = Version {
                primary_term: 1,
                seq_no: 1,
            };
            facts(&StoredJob { state, version })
        };
        let jobs: Vec<JobFacts> = (0..many).map(job).collect();
        mailbox.tell(Event::PullEnded {
            dimension: Dimension::All,
            page: Some(PulledPage {
                jobs: jobs.clone(),
                ..PulledPage::default()
            }),
        });
        let mut told = Vec::new();
        let mut last = None;
        for message in mailbox.take() {
            let Message::Event(event) = message else {
                panic!("a question")
            };
            match *event {
                Event::JobsLearned(jobs) => {
                    assert!(jobs.len() <= EVENT_JOBS_MAX && last.is_none());
                    told.extend(jobs);
                }
                other => last = Some(other),
            }
        }
        assert_eq!(told, jobs);
        let is_end = |event| matches!(event, Event::PullEnded { page: Some(page), .. } if page.jobs.is_empty());
        assert!(last.is_some_and(is_end));
    }
}
