//! The judge: compares the promises, the runs, the replicas' logs and the store's final state. Pure. Each rule is a
//! function that names its violations.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    agent::Testbox,
    grants::GrantLine,
    history::{Facts, Interval, Micros},
};

/// Maximum number of breaches of one rule that are listed.
const SHOWN: usize = 20;
/// Maximum time for which faults may stop all dispatching.
pub(super) const GAP_MAX: Micros = 10_000_000;

/// Final state of a job in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Final {
    /// Number that the submitter gave it.
    pub(super) number: u64,
    pub(super) stage: String,
    pub(super) health: String,
    pub(super) readiness: String,
    pub(super) attempt: u16,
}

impl Final {
    fn has_ended(&self) -> bool {
        matches!(
            self.stage.as_str(),
            "finish" | "cancel" | "abort_invalid" | "abort_wait" | "abort_provider"
        )
    }
}

/// Everything known at the end of a run.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) facts: &'a Facts,
    pub(super) grants: &'a [GrantLine],
    /// Final states by job.
    pub(super) finals: &'a BTreeMap<String, Final>,
    /// Confirmed files that exist, by path, with true if the file is whole.
    pub(super) files: &'a BTreeMap<String, bool>,
    pub(super) testboxes: &'a [Testbox],
    /// Start and end of the faults.
    pub(super) faulty: (Micros, Micros),
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Breach {
    /// Name of the broken rule.
    pub(super) rule: &'static str,
    /// Description of the breach.
    pub(super) detail: String,
}

/// A rule, and the function that returns its breaches.
type Rule = (&'static str, fn(&Evidence<'_>) -> Vec<String>);

/// Rules in the order of the report.
pub(super) const RULES: [Rule; 10] = [
    (
        "every acknowledged job is there, ran and ended",
        lost_or_open,
    ),
    (
        "a refused submit left nothing, an acknowledged one a single job",
        doubled,
    ),
    (
        "an end that was confirmed stands, and is the only one",
        ends,
    ),
    (
        "a file whose upload was acknowledged is there, whole",
        spoiled,
    ),
    ("a job that ended says whether its file is there", readiness),
    ("no two runs of a job overlap", overlaps),
    (
        "no job is granted while it runs for another grant",
        granted_while_running,
    ),
    ("no testbox has more jobs than it has room for", crowded),
    (
        "no request is given different jobs by two replicas",
        served_twice,
    ),
    (
        "the longest gap without a dispatch is at most 10 s",
        long_gap,
    ),
];

/// Returns all breaches.
pub(super) fn judge(evidence: &Evidence<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (rule, broken_by) in RULES {
        let all = broken_by(evidence);
        let more = all.len().saturating_sub(SHOWN);
        let shown = all.into_iter().take(SHOWN);
        breaches.extend(shown.map(|detail| Breach { rule, detail }));
        if more > 0 {
            let detail = format!("and {more} more");
            breaches.push(Breach { rule, detail });
        }
    }
    breaches
}

fn lost_or_open(evidence: &Evidence<'_>) -> Vec<String> {
    let acked = evidence.facts.acked.iter();
    let bad = acked.filter_map(|acked| match evidence.finals.get(&acked.job) {
        None => Some(format!("job {} is not in the store", acked.job)),
        Some(end) if !end.has_ended() => {
            Some(format!("job {} is in stage {}", acked.job, end.stage))
        }
        Some(end) if end.stage != "finish" => {
            Some(format!("job {} never ran: {}", acked.job, end.stage))
        }
        Some(_) => None,
    });
    bad.collect()
}

fn doubled(evidence: &Evidence<'_>) -> Vec<String> {
    let mut by_number: BTreeMap<u64, Vec<&String>> = BTreeMap::new();
    for (job, end) in evidence.finals {
        by_number.entry(end.number).or_default().push(job);
    }
    let refused: BTreeSet<u64> = evidence.facts.refused.iter().copied().collect();
    let bad = by_number.into_iter().filter_map(|(number, jobs)| {
        if refused.contains(&number) {
            Some(format!("submit {number} was refused, and left {jobs:?}"))
        } else if jobs.len() > 1 {
            Some(format!("submit {number} made {jobs:?}"))
        } else {
            None
        }
    });
    bad.collect()
}

fn ends(evidence: &Evidence<'_>) -> Vec<String> {
    let mut bad = Vec::new();
    let mut confirmed: BTreeMap<&String, BTreeSet<u16>> = BTreeMap::new();
    for finish in evidence.facts.finishes.iter().filter(|one| one.confirmed) {
        confirmed
            .entry(&finish.job)
            .or_default()
            .insert(finish.attempt);
    }
    for (job, attempts) in &confirmed {
        if attempts.len() > 1 {
            bad.push(format!("job {job} ended in attempts {attempts:?}"));
        }
        let stands = evidence.finals.get(*job).is_some_and(|end| {
            end.has_ended() && end.health == "success" && attempts.contains(&end.attempt)
        });
        if !stands {
            let end = evidence.finals.get(*job);
            bad.push(format!(
                "attempt {attempts:?} of job {job} was confirmed; it is {end:?}"
            ));
        }
    }
    let sent: BTreeSet<&(String, u16)> = evidence.facts.finishes_sent.iter().collect();
    for (job, end) in evidence.finals {
        if end.health == "success" && !sent.contains(&(job.clone(), end.attempt)) {
            bad.push(format!(
                "job {job} succeeded in attempt {}, which never said so",
                end.attempt
            ));
        }
    }
    bad
}

fn spoiled(evidence: &Evidence<'_>) -> Vec<String> {
    let acked = evidence.facts.uploads.iter().filter(|one| one.acked);
    let bad = acked.filter_map(|file| match evidence.files.get(&file.path) {
        None => Some(format!("{} is not there", file.path)),
        Some(false) => Some(format!("{} is not what was uploaded", file.path)),
        Some(true) => None,
    });
    bad.collect()
}

fn readiness(evidence: &Evidence<'_>) -> Vec<String> {
    let uploads = evidence.facts.uploads.iter();
    let acked: BTreeMap<(&String, u16), bool> = uploads
        .map(|file| ((&file.job, file.attempt), file.acked))
        .collect();
    let confirmed = evidence.facts.finishes.iter().filter(|one| one.confirmed);
    let bad = confirmed.filter_map(|finish| {
        let acked = acked.get(&(&finish.job, finish.attempt))?;
        let end = evidence.finals.get(&finish.job)?;
        let end = Some(end).filter(|end| end.attempt == finish.attempt)?;
        let so = if *acked { "uploaded" } else { "incomplete" };
        (end.readiness != so).then(|| {
            let (job, says) = (&finish.job, &end.readiness);
            format!("the data of job {job} are {so}, and it says '{says}'")
        })
    });
    bad.collect()
}

fn by_job(intervals: &[Interval]) -> BTreeMap<&String, Vec<&Interval>> {
    let mut by_job: BTreeMap<&String, Vec<&Interval>> = BTreeMap::new();
    for interval in intervals {
        by_job.entry(&interval.job).or_default().push(interval);
    }
    for runs in by_job.values_mut() {
        runs.sort_by_key(|run| run.start);
    }
    by_job
}

fn overlaps(evidence: &Evidence<'_>) -> Vec<String> {
    let mut bad = Vec::new();
    for (job, runs) in by_job(&evidence.facts.intervals) {
        for pair in runs.windows(2) {
            let [before, after] = pair else {
                continue;
            };
            if before.end.is_none_or(|end| end > after.start) {
                bad.push(format!(
                    "job {job}: attempt {} on {} from {} to {:?}, attempt {} on {} from {}",
                    before.attempt,
                    before.host,
                    shown(before.start),
                    before.end.map(shown),
                    after.attempt,
                    after.host,
                    shown(after.start)
                ));
            }
        }
    }
    bad
}

fn granted_while_running(evidence: &Evidence<'_>) -> Vec<String> {
    let by_job = by_job(&evidence.facts.intervals);
    let bad = evidence.grants.iter().filter_map(|grant| {
        let runs = by_job.get(&grant.job)?;
        let run = runs.iter().find(|run| {
            run.token != grant.token
                && run.start < grant.at
                && run.end.is_none_or(|end| end > grant.at)
        })?;
        Some(format!(
            "job {}: granted to {} at {} by replica {}, while attempt {} ran on {} from {} to {:?}",
            grant.job,
            grant.host,
            shown(grant.at),
            grant.replica,
            run.attempt,
            run.host,
            shown(run.start),
            run.end.map(shown)
        ))
    });
    bad.collect()
}

/// Checks that concurrent jobs fit on their testbox, and that it was never granted jobs that did not fit.
fn crowded(evidence: &Evidence<'_>) -> Vec<String> {
    let mut bad = evidence.facts.overgranted.clone();
    for testbox in evidence.testboxes {
        let mut changes = Vec::new();
        let runs = evidence.facts.intervals.iter();
        for run in runs.filter(|run| run.host == testbox.host) {
            let mb = if testbox.hw {
                testbox.memory_mb
            } else {
                run.memory_mb
            };
            changes.push((run.start, i64::from(mb), &run.job));
            if let Some(end) = run.end {
                changes.push((end, -i64::from(mb), &run.job));
            }
        }
        // At equal times, ends come before starts.
        changes.sort_by_key(|(at, mb, _)| (*at, *mb));
        let mut used = 0;
        for (at, mb, job) in changes {
            used += mb;
            if used > i64::from(testbox.memory_mb) {
                bad.push(format!(
                    "{}: job {job} at {} on top of others",
                    testbox.host,
                    shown(at)
                ));
            }
        }
    }
    bad
}

fn served_twice(evidence: &Evidence<'_>) -> Vec<String> {
    let mut given: BTreeMap<(&String, &String, u64), BTreeMap<u16, BTreeSet<&String>>> =
        BTreeMap::new();
    for grant in evidence.grants {
        let request = (&grant.host, &grant.session, grant.request);
        let by_replica = given.entry(request).or_default();
        by_replica
            .entry(grant.replica)
            .or_default()
            .insert(&grant.token);
    }
    let ran: BTreeSet<&String> = evidence
        .facts
        .intervals
        .iter()
        .map(|run| &run.token)
        .collect();
    let bad = given
        .into_iter()
        .filter_map(|((host, _, request), by_replica)| {
            // Jobs that the testbox never took were never its own.
            let taken: Vec<BTreeSet<&String>> = by_replica
                .values()
                .map(|tokens| tokens.intersection(&ran).copied().collect())
                .collect();
            let differ = taken.windows(2).any(|pair| pair[0] != pair[1]);
            let both = taken.iter().filter(|tokens| !tokens.is_empty()).count() > 1;
            (differ && both).then(|| format!("{host}, request {request}: {by_replica:?}"))
        });
    bad.collect()
}

fn long_gap(evidence: &Evidence<'_>) -> Vec<String> {
    let (gap, from) = longest_gap(evidence);
    if gap <= GAP_MAX {
        return Vec::new();
    }
    let near = from.saturating_sub(GAP_MAX)..from + gap;
    let faults = evidence.facts.faults.iter();
    let faults = faults.filter(|(at, ..)| near.contains(at));
    let faults: Vec<String> = faults
        .map(|(at, kind, what)| format!("{} {kind} {what}", shown(*at)))
        .collect();
    let faults = faults.join("; ");
    vec![format!("{} from {} on: {faults}", shown(gap), shown(from))]
}

/// Returns the longest time during the faults without a first grant of an attempt, and its start.
pub(super) fn longest_gap(evidence: &Evidence<'_>) -> (Micros, Micros) {
    let (begin, end) = evidence.faulty;
    let within = evidence.grants.iter().map(|grant| grant.at);
    let within = within.filter(|at| (begin..end).contains(at));
    let mut last = begin;
    let mut longest = (0, begin);
    for at in within.chain([end]) {
        longest = longest.max((at.saturating_sub(last), last));
        last = at;
    }
    longest
}

/// Counts jobs of class vip that waited while a job of a lower class went to a testbox that could have run them. It
/// counts more than three seconds after their acknowledgement. With faults this is sometimes correct: a job that was
/// claimed by a dead replica waits for its lease.
pub(super) fn overtaken(evidence: &Evidence<'_>) -> usize {
    const KNOWN_EVERYWHERE: Micros = 3_000_000;
    let mut first: BTreeMap<&String, Micros> = BTreeMap::new();
    for grant in evidence.grants {
        first.entry(&grant.job).or_insert(grant.at);
    }
    let granted = |job: &String| first.get(job).copied().unwrap_or(Micros::MAX);
    let acked = &evidence.facts.acked;
    let lower: Vec<_> = acked.iter().filter(|one| !one.vip).collect();
    let vips = acked.iter().filter(|one| one.vip);
    let overtaken = vips.filter(|vip| {
        let waits = vip.at + KNOWN_EVERYWHERE..granted(&vip.job);
        let mut lower = lower.iter().filter(|one| one.hw == vip.hw);
        lower.any(|one| waits.contains(&granted(&one.job)))
    });
    overtaken.count()
}

/// Returns a time for people.
pub(super) fn shown(at: Micros) -> String {
    format!("{}.{:03} s", at / 1_000_000, at / 1_000 % 1_000)
}

#[cfg(test)]
mod tests;
