//! A host's request for work, parsed and checked.

use std::fmt::Display;

use fairlead_api::{ConsumeRequest, ExecutorSaid, HeldJob, HostLoad};
use fairlead_job::{JobId, TboxType};
use fairlead_store::{JobState, Version};

use crate::{
    facts,
    hosts::{Host, group_of, kinds},
    open_requests::Requester,
};
use fairlead_base::{
    errors::{HostError, Refusal},
    names::check_name,
};

/// Maximum length of an instance name, bytes.
const INSTANCE_MAX: usize = 128;
/// Maximum length of the isolation word, bytes. Newer agents may have other words.
const ISOLATION_MAX: usize = 32;
/// Maximum number of executors that an agent reports.
const EXECUTORS_MAX: usize = 8;
/// Maximum length of the name or version of an executor, bytes.
const EXECUTOR_BYTES_MAX: usize = 128;
/// Maximum length of the reason why an executor cannot be used, bytes.
const PROBLEM_BYTES_MAX: usize = 512;

fn bad(field: &'static str, value: impl Display, expected: &'static str) -> HostError {
    HostError::BadRequest {
        field,
        shown: value.to_string(),
        expected,
    }
}

/// Checks the session and the numbers of a request.
fn check_numbers(request: &ConsumeRequest) -> Result<(), HostError> {
    let session = &request.session;
    if !(1..=64).contains(&session.len()) || !session.bytes().all(|b| b.is_ascii_graphic()) {
        let shown = session.escape_default();
        return Err(bad("session", shown, "1 to 64 printable characters"));
    }
    if request.request == 0 {
        return Err(bad("request", 0, "counted from 1"));
    }
    if !(1..=JOBS_MAX).contains(&request.jobs_max) {
        return Err(bad("jobs_max", request.jobs_max, "1 to 256"));
    }
    if request.wait_s > WAIT_S_MAX {
        return Err(bad("wait_s", request.wait_s, "0 to 600"));
    }
    if request.free_memory_mb > request.memory_mb {
        let free_mb = request.free_memory_mb;
        return Err(bad("free_memory_mb", free_mb, "at most memory_mb"));
    }
    if let Some(cpus) = request.cpus.filter(|cpus| !(1..=CPUS_MAX).contains(cpus)) {
        return Err(bad("cpus", cpus, "1 to 65,536"));
    }
    if let Some(free) = request
        .free_cpus
        .filter(|free| request.cpus.is_none_or(|cpus| *free > cpus))
    {
        return Err(bad("free_cpus", free, "at most cpus"));
    }
    Ok(())
}

/// Checks the lengths of the lists of a request.
fn check_lists(request: &ConsumeRequest) -> Result<(), HostError> {
    if request.running.len() > HELD_MAX {
        return Err(bad("running", request.running.len(), "at most 10,000 jobs"));
    }
    if request.content.len() > WORDS_MAX {
        return Err(bad("content", request.content.len(), "at most 2,048 words"));
    }
    let lists = [
        ("tags", &request.tags),
        ("devices", &request.devices),
        ("cache_dirs", &request.cache_dirs),
    ];
    for (field, list) in lists {
        if list.len() > LIST_MAX || list.iter().any(|item| item.is_empty() || item.len() > 256) {
            let expected = "at most 1,000 texts of 1 to 256 bytes";
            return Err(bad(field, list.len(), expected));
        }
    }
    Ok(())
}

/// Checks the agent's description in a request.
pub fn check_agent(request: &ConsumeRequest) -> Result<(), Refusal> {
    let words = [
        ("instance", &request.instance, INSTANCE_MAX),
        ("isolation", &request.isolation, ISOLATION_MAX),
    ];
    for (field, word, bytes_max) in words {
        if word.len() > bytes_max || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HostError::BadWord { field, bytes_max }.into());
        }
    }
    check_executors(&request.executors)?;
    facts::check(&request.facts)?;
    Ok(check_name("arch", &request.arch)?)
}

/// Returns the valid words of a request, up to the limit. Invalid words are ignored, because words only guide
/// preferences.
fn known_words(mut words: Vec<String>) -> Vec<String> {
    let is_word = |word: &String| {
        (1..=WORD_BYTES_MAX).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit())
    };
    words.truncate(WORDS_USED_MAX);
    words.retain(is_word);
    words
}

/// Returns the load that a host of these kinds reports. A machine that serves one job as a whole is never loaded.
pub fn known_load(load: HostLoad, kinds: &[TboxType]) -> HostLoad {
    let percent = |said: Option<u8>| said.map(|percent| percent.min(100));
    HostLoad {
        memory_available_mb: load.memory_available_mb.min(load.memory_total_mb),
        cpu_pressure_percent: percent(load.cpu_pressure_percent),
        memory_pressure_percent: percent(load.memory_pressure_percent),
        loaded: load.loaded && !kinds.contains(&TboxType::Hw),
        ..load
    }
}

fn check_executors(executors: &[ExecutorSaid]) -> Result<(), HostError> {
    let fits = |one: &ExecutorSaid| {
        (1..=EXECUTOR_BYTES_MAX).contains(&one.name.len())
            && one.version.len() <= EXECUTOR_BYTES_MAX
            && one.problem.len() <= PROBLEM_BYTES_MAX
    };
    if executors.len() > EXECUTORS_MAX || !executors.iter().all(fits) {
        let expected = "at most 8 executors, with short names, versions and problems";
        return Err(bad("executors", executors.len(), expected));
    }
    Ok(())
}

/// Maximum time that a host may wait for work, seconds.
pub const WAIT_S_MAX: u32 = 600;

/// Maximum number of chunk words that a host may send.
const WORDS_MAX: usize = 2_048;

/// Number of words that are used, those of the newest inputs. Each takes memory in the engine while the host waits.
const WORDS_USED_MAX: usize = 512;

/// Maximum length of a chunk word, bytes.
const WORD_BYTES_MAX: usize = 32;

/// Maximum number of CPUs of a host.
pub const CPUS_MAX: u32 = 65_536;

/// Maximum number of jobs in one answer.
const JOBS_MAX: u32 = 256;

/// Maximum number of jobs that a host may report as running.
pub const HELD_MAX: usize = 10_000;

/// Maximum number of tags, devices or cache directories of a host.
const LIST_MAX: usize = 1_000;

/// A checked request for work.
#[derive(Debug, Clone)]
pub struct WorkRequest {
    pub offerer: Requester,
    pub host: Host,
    pub jobs_max: u32,
    pub wait_s: u32,
    /// Highest number of a request whose answer was read.
    pub seen: u64,
    pub running: Vec<HeldJob>,
    /// Words of the chunks in its cache, newest first.
    pub content: Vec<String>,
    /// Jobs sent to it in answers that it had not read.
    pub owed: Vec<Owed>,
}

/// A job on its way to a host, with the resources that it takes.
#[derive(Debug, Clone, Copy)]
pub struct Owed {
    pub id: JobId,
    memory_mb: u32,
    cpus: u32,
}

impl WorkRequest {
    /// Returns the request with the account of its token.
    #[must_use]
    pub fn by(mut self, account: &str) -> Self {
        account.clone_into(&mut self.host.account);
        self
    }

    pub fn is_hw(&self) -> bool {
        self.host.kinds.contains(&TboxType::Hw)
    }

    /// Returns true if the host reports this attempt of the job.
    pub fn names(&self, state: &JobState) -> bool {
        self.running.iter().any(|held| {
            held.job_id.parse() == Ok(state.job_id) && held.claim_token == state.claim_token
        })
    }

    /// Reserves room for a job that was sent in an answer which the host has not read.
    pub fn set_aside(&mut self, state: &JobState) {
        self.owed.push(Owed {
            id: state.job_id,
            memory_mb: state.memory_mb,
            cpus: state.cpus,
        });
    }

    /// Splits the jobs claimed for a repeated request into those that fit, oldest first, and the others.
    pub fn split_fitting(&self, mut jobs: Vec<JobState>) -> (Vec<JobState>, Vec<JobState>) {
        jobs.sort_by_key(|state| state.job_id);
        let owed = u32::try_from(self.owed.len()).unwrap_or(u32::MAX);
        let owed_mb = self.owed.iter().map(|owed| owed.memory_mb).sum();
        let owed_cpus = self.owed.iter().map(|owed| owed.cpus).sum();
        let jobs_max = if self.is_hw() { 1 } else { self.jobs_max };
        let mut room = jobs_max.saturating_sub(owed);
        let mut free_mb = self.host.room_mb().saturating_sub(owed_mb);
        let free_cpus = self.host.free_cpus;
        let mut free_cpus = free_cpus.map(|free: u32| free.saturating_sub(owed_cpus));
        jobs.into_iter().partition(|state| {
            let (takes_mb, takes_cpus) = if self.is_hw() {
                (0, 0)
            } else {
                (state.memory_mb, state.cpus)
            };
            let has_cpus = free_cpus.is_none_or(|free| takes_cpus <= free);
            let fits = room > 0 && takes_mb <= free_mb && has_cpus;
            if fits {
                room -= 1;
                free_mb -= takes_mb;
                free_cpus = free_cpus.map(|free| free - takes_cpus);
            }
            fits
        })
    }

    /// Checks the request of an agent.
    pub fn of(name: &str, request: ConsumeRequest) -> Result<Self, Refusal> {
        check_name("host", name)?;
        check_numbers(&request)?;
        check_lists(&request)?;
        check_agent(&request)?;
        let kinds = kinds(&request.kinds)?;
        if kinds.contains(&TboxType::Hw) && kinds.len() > 1 {
            let shown = request.kinds.join(",");
            return Err(bad("kinds", shown, "hw alone, or vm and/or dc").into());
        }
        let seen = request.read_up_to();
        let group = if request.group.is_empty() {
            group_of(name).to_owned()
        } else {
            request.group
        };
        check_name("group", &group)?;
        let offerer = Requester {
            host: name.to_owned(),
            group: group.clone(),
            memory_mb: request.memory_mb,
            cpus: request.cpus,
            class: String::new(),
            session: request.session,
            request: request.request,
            turn: Version::default(),
        };
        let host = Host {
            kinds,
            arch: request.arch,
            group,
            memory_mb: request.memory_mb,
            free_memory_mb: request.free_memory_mb,
            cpus: request.cpus,
            free_cpus: request.free_cpus.or(request.cpus),
            tags: request.tags,
            devices: request.devices,
            cache_dirs: request.cache_dirs,
            isolation: request.isolation,
            executors: request.executors,
            facts: request.facts,
            instance: request.instance,
            ..Host::default()
        };
        let load = request.load.map(|load| known_load(load, &host.kinds));
        let mut host = Host { load, ..host };
        host.check_said()?;
        Ok(Self {
            owed: Vec::new(),
            offerer,
            host,
            jobs_max: request.jobs_max,
            wait_s: request.wait_s,
            seen,
            running: request.running,
            content: known_words(request.content),
        })
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::Millis;

    use super::*;
    use crate::hosts::{GONE_MS, Hosts};

    /// Returns a request of a host of these kinds with this load and a field of newer agents.
    fn loaded(kinds: &[&str], free_mb: u32) -> WorkRequest {
        let request = serde_json::json!({
            "session": "s", "request": 1, "kinds": kinds, "arch": "x86_64", "memory_mb": 1000, "free_memory_mb": free_mb,
            "load": {
                "memory_total_mb": 1000, "memory_available_mb": 2000, "unpromised_memory_mb": 700,
                "cpu_pressure_percent": 200, "loaded": true, "weather": "fair",
            },
        });
        let request = serde_json::from_value(request).unwrap();
        WorkRequest::of("h", request).unwrap()
    }

    fn saying(more: &serde_json::Value) -> Result<Host, Refusal> {
        let mut request = serde_json::json!({
            "session": "s", "request": 1, "kinds": ["dc"], "arch": "x86_64", "memory_mb": 9, "free_memory_mb": 9,
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            request[name] = value.clone();
        }
        let request = serde_json::from_value(request).unwrap();
        WorkRequest::of("h", request).map(|ask| ask.host)
    }

    #[test]
    fn what_a_host_says_is_bounded_and_its_cache_folders_get_the_rest() {
        let texts = |n: usize, bytes: usize| -> Vec<String> {
            (0..n).map(|n| format!("{n:0bytes$}")).collect()
        };
        // A kilobyte of facts, half of the room for tags.
        let tags = texts(512, 32);
        let facts = serde_json::json!({"pci": texts(16, 32)});
        let full = texts(1_000, 200);
        let said = serde_json::json!({"tags": tags, "facts": facts, "cache_dirs": full});
        let host = saying(&said).unwrap();
        assert_eq!((host.tags.len(), host.facts["pci"].len()), (512, 16));
        assert_eq!(host.cache_dirs, full[..136]);
        assert_eq!(host.bytes(), 2 * (1_024 + (528 * 64) + 136 * 232));
        let devices = texts(600, 32);
        let said = serde_json::json!({"tags": tags, "devices": devices});
        let refused = saying(&said).unwrap_err();
        assert_eq!(refused.status(), 413);
        assert!(
            refused.to_string().contains("71168 bytes are over 65536"),
            "{refused}"
        );
    }

    #[test]
    fn a_loaded_host_has_room_where_nothing_was_promised() {
        let host = loaded(&["dc"], 0).host;
        assert!(host.is_loaded());
        assert_eq!(host.room_mb(), 700);
        let load = host.load.unwrap();
        assert_eq!(
            (load.memory_available_mb, load.cpu_pressure_percent),
            (1000, Some(100))
        );
        let calm = Host {
            load: Some(HostLoad {
                loaded: false,
                ..load
            }),
            free_memory_mb: 5,
            ..host
        };
        assert_eq!(calm.room_mb(), 5);
    }

    #[test]
    fn a_whole_machine_is_never_loaded() {
        let host = loaded(&["hw"], 400).host;
        assert!(!host.is_loaded() && host.load.is_some());
        assert_eq!(host.room_mb(), 400);
    }

    #[test]
    fn loaded_hosts_that_are_gone_are_not_counted() {
        let hosts = Hosts::default();
        for (name, seen) in [("here", Some(Millis(1_000))), ("never", None)] {
            let host = Host {
                seen,
                ..loaded(&["vm"], 0).host
            };
            hosts.update(name, |known| *known = host).unwrap();
        }
        assert_eq!(hosts.count_loaded(Millis(2_000)), 1);
        assert_eq!(hosts.count_loaded(Millis(1_001 + GONE_MS)), 0);
    }
}
