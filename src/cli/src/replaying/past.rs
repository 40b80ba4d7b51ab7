//! Jobs of the past: read from a lab or from a file, and given the keys by which the engine finds a host.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::BufReader,
    path::Path,
    sync::Arc,
};

use fairlead_api::{
    HostView, JobList, JobSummary,
    client::{Client, JobQuery},
};
use fairlead_dispatch::{About, CPUS_UNCHECKED, Kind, labels};
use fairlead_job::TboxType;
use fairlead_replay::{Host, PastJob};
use serde_json::{Deserializer, Value};

use crate::{exit::Failure, selecting::Selector};

/// Maximum number of jobs in a replay.
pub(super) const JOBS_MAX: usize = 1_000_000;
/// Only key of equal hosts.
const ANY_KEY: &str = "any";

/// Reads the jobs of a lab that were submitted within a period. Shards count as jobs of their own.
pub(super) async fn of_lab(
    client: &Client,
    since_ms: u64,
    until_ms: u64,
) -> Result<Vec<JobSummary>, Failure> {
    let query = JobQuery {
        since_ms: Some(since_ms),
        until_ms: Some(until_ms),
        parts: Some("no_parents".to_owned()),
        order: Some("oldest".to_owned()),
        ..JobQuery::default()
    };
    let found = Selector::default().collect(client, query, JOBS_MAX).await?;
    if found.next.is_some() {
        let total = found.total;
        return Err(Failure::usage(
            format!("{total} jobs were submitted in this time; a replay takes {JOBS_MAX} at most"),
            "choose a shorter time with --since and --until",
        ));
    }
    Ok(found.jobs)
}

/// Reads the jobs of a file: rows as the lab lists them, single, in lists, or as printed by `fairlead jobs --json`.
pub(super) fn of_file(path: &Path) -> Result<Vec<JobSummary>, Failure> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| {
        Failure::local(
            format!("cannot read '{shown}': {error}"),
            "check the path and its permissions",
        )
    })?;
    let no_jobs = |problem: String| {
        let hint = "save jobs with: fairlead jobs --json --shards --limit 100000 > FILE";
        Failure::usage(format!("'{shown}' has no jobs: {problem}"), hint)
    };
    let mut jobs = Vec::new();
    for value in Deserializer::from_reader(BufReader::new(file)).into_iter::<Value>() {
        let value = value.map_err(|error| no_jobs(error.to_string()))?;
        let is_page = value.get("jobs").is_some_and(Value::is_array);
        let rows = if is_page {
            serde_json::from_value::<JobList>(value).map(|page| page.jobs)
        } else if value.is_array() {
            serde_json::from_value(value)
        } else {
            serde_json::from_value(value).map(|job| vec![job])
        };
        jobs.extend(rows.map_err(|error| no_jobs(error.to_string()))?);
        if jobs.len() > JOBS_MAX {
            return Err(no_jobs(format!("it has more than {JOBS_MAX}")));
        }
    }
    if jobs.is_empty() {
        return Err(no_jobs("it is empty".to_owned()));
    }
    Ok(jobs)
}

/// Returns the hosts that the lab lists, including closed and reserved ones.
pub(super) fn hosts_of(listed: &[HostView]) -> Vec<Host> {
    let host = |host: &HostView| {
        let about = About {
            group: host.group.clone(),
            arch: host.arch.clone(),
            keys: keys_of(host),
            tags: host.tags.clone(),
            devices: host.devices.clone(),
            ..About::default()
        };
        Host {
            name: host.hostname.clone(),
            about: Arc::new(about),
            memory_mb: host.memory_mb,
            cpus: host.cpus.unwrap_or(CPUS_UNCHECKED),
            is_whole: host.kinds.iter().any(|kind| kind == TboxType::Hw.as_str()),
        }
    };
    listed.iter().map(host).collect()
}

/// Returns the keys under which a host asks for work.
fn keys_of(host: &HostView) -> Vec<String> {
    let (name, arch, group) = (&host.hostname, &host.arch, &host.group);
    let mut keys = BTreeSet::new();
    for kind in &host.kinds {
        keys.insert(format!("{kind}.{arch}"));
        if kind == TboxType::Hw.as_str() {
            keys.extend([format!("hw@{name}"), format!("hw@{group}")]);
        } else {
            keys.insert(format!("{kind}.{arch}@{name}"));
        }
    }
    keys.into_iter().collect()
}

/// Returns equal hosts that can each run every job.
pub(super) fn equal_hosts(count: u32, cpus: u32, memory_mb: u32) -> Vec<Host> {
    let about = Arc::new(About {
        keys: vec![ANY_KEY.to_owned()],
        ..About::default()
    });
    let host = |n| Host {
        name: format!("host-{n}"),
        about: Arc::clone(&about),
        memory_mb,
        cpus,
        is_whole: false,
    };
    (1..=count).map(host).collect()
}

/// Returns the jobs that a host had, and the number of the others.
pub(super) fn past_jobs(rows: &[JobSummary], listed: &[HostView]) -> (Vec<PastJob>, usize) {
    // A job that still runs is assumed to have run until the last known time.
    let times = rows.iter().flat_map(|row| {
        let times = [Some(row.submit_ms), row.dispatch_ms, row.end_ms];
        times.into_iter().flatten()
    });
    let last_ms = times.max().unwrap_or(0);
    let mut labels_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut jobs = Vec::new();
    for row in rows {
        let ran = row.reused_from.is_empty() && row.shards.is_none();
        let Some(dispatch_ms) = row.dispatch_ms.filter(|_| ran) else {
            continue;
        };
        let kind = TboxType::of_testbox(&row.testbox);
        let ready_ms = row.ready_ms.unwrap_or(row.submit_ms);
        jobs.push(PastJob {
            account: row.my_account.clone(),
            queue: queue_of(row, &mut labels_of),
            suite: row.suite.clone(),
            priority: row.priority,
            kind: match kind {
                TboxType::Hw => Kind::Hw,
                TboxType::Vm => Kind::Vm,
                TboxType::Dc => Kind::Dc,
            },
            host_keys: keys_for(row, kind, listed),
            memory_mb: row.memory_mb,
            cpus: row.cpus.max(1),
            ready_ms,
            dispatch_ms: dispatch_ms.max(ready_ms),
            end_ms: row.end_ms.unwrap_or(last_ms).max(dispatch_ms),
            host: row.host.clone(),
        });
    }
    let others = rows.len().saturating_sub(jobs.len());
    (jobs, others)
}

/// Changes the jobs for equal hosts: each may run anywhere, and a whole machine is a whole host.
pub(super) fn anywhere(jobs: &mut [PastJob], hosts: &[Host]) {
    let size = hosts.first().map(|host| (host.cpus, host.memory_mb));
    for job in jobs {
        job.host_keys = vec![ANY_KEY.to_owned()];
        if let (Kind::Hw, Some((cpus, memory_mb))) = (job.kind, size) {
            (job.kind, job.cpus, job.memory_mb) = (Kind::Dc, cpus, memory_mb);
        }
    }
}

/// Returns the queue as the engine knows it. Labels of a queue take turns, whatever slots they have.
fn queue_of<'r>(row: &'r JobSummary, labels_of: &mut BTreeMap<&'r str, Vec<&'r str>>) -> String {
    if row.queue_label.is_empty() {
        return row.queue.clone();
    }
    let known = labels_of.entry(&row.queue).or_default();
    let label = row.queue_label.as_str();
    let place = known.iter().position(|one| *one == label);
    let place = place.unwrap_or_else(|| {
        known.push(label);
        known.len() - 1
    });
    let slot = u8::try_from(place % usize::from(labels::SLOTS)).unwrap_or(0);
    labels::slot_of(&row.queue, slot)
}

/// Returns the keys of which a host must offer one. Rows lack the architecture. It is taken from the job's host, or
/// from any host if the lab no longer knows that one.
fn keys_for(row: &JobSummary, kind: TboxType, listed: &[HostView]) -> Vec<String> {
    let testbox = row.testbox.as_str();
    let is_any = testbox == TboxType::Hw.as_str();
    if kind == TboxType::Hw && !is_any {
        return vec![format!("hw@{testbox}")];
    }
    let had = listed.iter().find(|host| host.hostname == row.host);
    let arches: BTreeSet<&str> = match had {
        Some(host) => BTreeSet::from([host.arch.as_str()]),
        None => listed.iter().map(|host| host.arch.as_str()).collect(),
    };
    let at = testbox.split_once("--").filter(|_| kind != TboxType::Hw);
    let key = |arch: &str| match at {
        Some((_, host)) => format!("{}.{arch}@{host}", kind.as_str()),
        None => format!("{}.{arch}", kind.as_str()),
    };
    let mut keys: Vec<String> = arches.into_iter().map(key).collect();
    if keys.is_empty() {
        keys.push(ANY_KEY.to_owned());
    }
    keys
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(more: &Value) -> JobSummary {
        let mut row = json!({
            "job_id": "1", "job_stage": "finish", "job_health": "success", "job_data_readiness": "complete",
            "my_account": "a", "queue": "q", "priority": 2, "suite": "s", "testbox": "dc", "tbox_group": "dc",
            "attempt": 1, "memory_mb": 4096, "cpus": 2, "submit_ms": 1000, "dispatch_ms": 5000, "end_ms": 9000,
            "host": "h1",
        });
        let more = more.as_object().cloned().unwrap_or_default();
        row.as_object_mut().unwrap().extend(more);
        serde_json::from_value(row).unwrap()
    }

    fn listed() -> Vec<HostView> {
        let host = |name: &str, kinds: &[&str], arch: &str| {
            let host = json!({
                "hostname": name, "kinds": kinds, "arch": arch, "group": "g", "memory_mb": 8192, "cpus": 4,
                "free_memory_mb": 0, "state": "idle", "seen_ms": 0,
            });
            serde_json::from_value(host).unwrap()
        };
        vec![
            host("h1", &["dc", "vm"], "x86_64"),
            host("m1", &["hw"], "aarch64"),
        ]
    }

    fn keys(more: &Value) -> Vec<String> {
        let (jobs, _) = past_jobs(&[row(more)], &listed());
        jobs[0].host_keys.clone()
    }

    #[test]
    fn keys_are_those_of_the_hosts_that_could_have_it() {
        let hosts = hosts_of(&listed());
        assert_eq!(
            hosts[0].about.keys,
            ["dc.x86_64", "dc.x86_64@h1", "vm.x86_64", "vm.x86_64@h1"]
        );
        assert_eq!(hosts[1].about.keys, ["hw.aarch64", "hw@g", "hw@m1"]);
        assert!(hosts[1].is_whole && !hosts[0].is_whole);
        for (more, expected) in [
            (json!({}), &["dc.x86_64"][..]),
            (json!({"testbox": "vm-2p8g--h1"}), &["vm.x86_64@h1"]),
            (json!({"testbox": "a66"}), &["hw@a66"]),
            (json!({"testbox": "hw", "host": "m1"}), &["hw.aarch64"]),
            (json!({"host": "gone"}), &["dc.aarch64", "dc.x86_64"]),
        ] {
            assert_eq!(keys(&more), expected, "{more}");
        }
    }

    #[test]
    fn jobs_that_no_host_had_are_counted() {
        let rows = [
            row(&json!({"dispatch_ms": null, "end_ms": 2000})),
            row(&json!({"reused_from": "7"})),
            row(&json!({"end_ms": null})),
            row(&json!({"queue": "a", "queue_label": "x", "end_ms": 99_000})),
            row(&json!({"queue": "a", "queue_label": "y"})),
            row(&json!({"queue": "a", "queue_label": "x", "ready_ms": 4000})),
        ];
        let (jobs, others) = past_jobs(&rows, &listed());
        assert_eq!((jobs.len(), others), (4, 2));
        assert_eq!(jobs[0].end_ms, 99_000);
        let ready: Vec<u64> = jobs.iter().map(|job| job.ready_ms).collect();
        assert_eq!(ready, [1_000, 1_000, 1_000, 4_000]);
        let queues: Vec<&str> = jobs.iter().map(|job| job.queue.as_str()).collect();
        assert_eq!(queues, ["q", "a/0", "a/1", "a/0"]);
    }

    #[test]
    fn a_file_has_rows_in_any_of_three_forms() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("jobs");
        let one = serde_json::to_string(&row(&json!({}))).unwrap();
        for (text, count) in [
            (format!("{one}\n{one}\n"), 2),
            (format!("[{one},{one},{one}]"), 3),
            (format!("{{\"total\": 1, \"jobs\": [{one}]}}"), 1),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(of_file(&file).unwrap().len(), count);
        }
        for text in ["", "[]", "{}", "x", "{\"jobs\": 3}"] {
            std::fs::write(&file, text).unwrap();
            let told = of_file(&file).unwrap_err().to_string();
            assert!(told.contains("has no jobs"), "{told}");
        }
    }
}
