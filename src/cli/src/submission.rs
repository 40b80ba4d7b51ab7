//! Sends expanded jobs to a scheduler in bounded requests, and reports each one. Adds the submitter's fields: account,
//! the site's testbox, submit id.

use std::collections::BTreeSet;

use fairlead_api::{SubmitItem, client::Client};
use fairlead_job::{OnShutdown, Spec, cluster_nodes, parameters, units::counted, varying};
use serde_json::Value;

use crate::{
    context::Context,
    exit::{self, Failure},
    expansion::FileJobs,
    follow::Tracked,
    settings::Settings,
    table::harmless,
};

/// Maximum number of jobs in one request.
const CHUNK_JOBS_MAX: usize = 1000;
/// Approximate maximum size of a request, bytes: half of a scheduler's default limit.
const CHUNK_BYTES_MAX: usize = 8 << 20;

/// A job before or after its submit.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// File that it came from.
    pub(crate) file: String,
    /// Job to send.
    pub(crate) spec: Spec,
    /// Its parameters that differ within the submit. A single job has all its parameters.
    pub(crate) params: Vec<(String, String)>,
}

/// Result of the submit of one job.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// File that it came from.
    pub(crate) file: String,
    /// Index of its entry. A cluster has several jobs.
    pub(crate) entry: usize,
    /// Answer of the scheduler.
    pub(crate) item: SubmitItem,
}

impl Report {
    pub(crate) fn accepted(&self) -> bool {
        self.item.job_id != "0"
    }

    /// Returns the scheduler's item and the file, in one object.
    pub(crate) fn value(&self) -> Value {
        let mut value = serde_json::to_value(&self.item).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.insert("file".to_owned(), Value::from(self.file.as_str()));
        }
        value
    }
}

/// Adds the defaults to the jobs, and finds the parameters that differ.
pub(crate) fn entries(files: Vec<FileJobs>, settings: &Settings, submit_id: &str) -> Vec<Entry> {
    let fill = |spec: &mut Spec, key: &str, value: Option<&str>| {
        if let Some(value) = value
            && spec.get(key).is_none_or(Value::is_null)
        {
            spec.insert(key.to_owned(), Value::from(value));
        }
    };
    let mut entries: Vec<Entry> = Vec::new();
    for FileJobs { file, jobs, .. } in files {
        for mut spec in jobs {
            fill(&mut spec, "my_account", settings.account.value.as_deref());
            if ["testbox", "tbox_group", "tbox_type"]
                .iter()
                .all(|key| !spec.contains_key(*key))
            {
                fill(&mut spec, "testbox", settings.testbox.value.as_deref());
            }
            fill(&mut spec, "arch", settings.arch.value.as_deref());
            fill(&mut spec, "submit_id", Some(submit_id));
            entries.push(Entry {
                file: file.clone(),
                spec,
                params: Vec::new(),
            });
        }
    }
    let specs: Vec<&Spec> = entries.iter().map(|entry| &entry.spec).collect();
    let params = match specs.as_slice() {
        // A single job has no differing parameters, so all of them are shown.
        [only] => vec![parameters(only)],
        all => varying(all),
    };
    for (entry, params) in entries.iter_mut().zip(params) {
        entry.params = params;
    }
    entries
}

/// Returns the submit ids of the jobs: that of this submit, those in their files, or those of an earlier submit of the
/// same jobs.
pub(crate) fn submit_ids(entries: &[Entry], reports: &[Report]) -> Vec<String> {
    let asked = entries.iter();
    let asked = asked.filter_map(|entry| entry.spec.get("submit_id")?.as_str());
    let answered = reports.iter().map(|report| report.item.submit_id.as_str());
    let answered = answered.filter(|id| !id.is_empty());
    let ids: BTreeSet<&str> = asked.chain(answered).collect();
    ids.into_iter().map(str::to_owned).collect()
}

/// Returns the accepted jobs, for following.
pub(crate) fn tracked(entries: &[Entry], reports: &[Report]) -> Vec<Tracked> {
    let accepted = reports
        .iter()
        .filter(|report| report.accepted())
        .filter_map(|report| Some((entries.get(report.entry)?, report)));
    let track = |(entry, report): (&Entry, &Report)| {
        let item = &report.item;
        let mut tracked = Tracked::new(
            &item.job_id,
            &entry.file,
            entry.params.clone(),
            &item.result_root,
        );
        tracked.is_shard = !item.shard_of.is_empty();
        // The job was accepted, so the word is known.
        tracked.on_shutdown = OnShutdown::of(&entry.spec).unwrap_or_default();
        tracked
    };
    accepted.map(track).collect()
}

/// Options of a submit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    pub(crate) strict: bool,
    /// True if the scheduler only reports what a submit would do.
    pub(crate) dry_run: bool,
}

/// Sends all jobs, and calls `tell` for each in order. A request that fails as a whole ends it; the jobs reported
/// before are stored.
pub(crate) async fn send(
    entries: &[Entry],
    client: &Client,
    how: How,
    mut tell: impl FnMut(&Report),
) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::with_capacity(entries.len());
    let mut done = 0;
    for chunk in chunks(entries) {
        let jobs = chunk
            .iter()
            .map(|entry| Value::Object(entry.spec.clone()))
            .collect();
        let jobs = Value::Array(jobs);
        // The key is new for each request. If a request is repeated after a lost answer, it creates nothing twice.
        let key = uuid::Uuid::new_v4().to_string();
        let submitted = if how.dry_run {
            client.try_submit(&jobs, how.strict).await
        } else {
            client.submit_once(&jobs, &key, how.strict).await
        };
        let items = submitted.map_err(|error| {
            let mut failure = Failure::from(error);
            if !reports.is_empty() {
                let (done, all) = (reports.len(), entries.len());
                let before = format!(" (after {done} of {all} jobs were answered)");
                failure.message.push_str(&before);
            }
            failure
        })?;
        let nodes: Vec<usize> = chunk.iter().map(nodes_of).collect();
        for (at, item) in each_its_own(items, &nodes)? {
            let report = Report {
                file: chunk
                    .get(at)
                    .map(|entry| entry.file.clone())
                    .unwrap_or_default(),
                entry: done + at,
                item,
            };
            tell(&report);
            reports.push(report);
        }
        done += chunk.len();
    }
    Ok(reports)
}

/// Splits the jobs into bounded requests. Each is a submit of its own.
pub(crate) fn chunks(entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let (chunk, after) = rest.split_at(chunk_length(rest).min(rest.len()));
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Returns the number of next jobs that fit in a request, at least one.
fn chunk_length(entries: &[Entry]) -> usize {
    let mut bytes = 0;
    let fits = |entry: &&Entry| {
        bytes += serde_json::to_string(&entry.spec).map_or(0, |text| text.len() + 1);
        bytes <= CHUNK_BYTES_MAX
    };
    entries
        .iter()
        .take(CHUNK_JOBS_MAX)
        .take_while(fits)
        .count()
        .max(1)
}

/// Returns the number of jobs that the scheduler creates for an entry: one for each node of a cluster. A refused entry
/// counts as one.
fn nodes_of(entry: &Entry) -> usize {
    cluster_nodes(&entry.spec).map_or(1, |nodes| nodes.len().max(1))
}

/// Returns the items, each with the index of its job. The answer to a request that was refused as a whole may have one
/// item for all.
fn each_its_own(
    items: Vec<SubmitItem>,
    nodes: &[usize],
) -> Result<Vec<(usize, SubmitItem)>, Failure> {
    let owners = nodes.iter().enumerate();
    let owners: Vec<usize> = owners
        .flat_map(|(at, nodes)| std::iter::repeat_n(at, *nodes))
        .collect();
    let jobs = owners.len();
    match items.as_slice() {
        _ if items.len() == jobs => Ok(owners.into_iter().zip(items).collect()),
        [only] if only.job_id == "0" => {
            let all = 0..nodes.len();
            Ok(all.map(|at| (at, only.clone())).collect())
        }
        _ => Err(Failure::new(
            exit::UNREACHABLE,
            format!(
                "the scheduler returned {} items for {jobs} jobs",
                items.len()
            ),
            "some jobs may be stored; check `fairlead jobs` before you repeat the submit",
        )),
    }
}

/// Returns the submit rule that a job met, and its changes, for people.
pub(crate) fn rule_words(item: &SubmitItem) -> Option<String> {
    let applied = item.rule.as_ref()?;
    let shown = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let changes = applied
        .changes
        .iter()
        .map(|(field, edit)| format!("{field} {} -> {}", shown(&edit.submitted), shown(&edit.now)));
    let changes: Vec<String> = changes.collect();
    let changes = if changes.is_empty() {
        "changes nothing".to_owned()
    } else {
        changes.join(", ")
    };
    Some(harmless(&format!("rule {}: {changes}", applied.rule)))
}

/// Prints accepted jobs as compass-ci does, and refused ones as remarks. Equal consecutive refusals are printed once.
pub(crate) struct Teller<'a> {
    context: &'a Context,
    accepted: bool,
    bare: bool,
    last: Option<(String, String)>,
    more: usize,
    /// Warnings about accepted jobs that were printed. Each is printed once.
    warned: BTreeSet<String>,
}

impl<'a> Teller<'a> {
    /// Creates a printer. With `bare` it prints only the ids of accepted jobs.
    pub(crate) fn new(context: &'a Context, bare: bool) -> Self {
        Self {
            context,
            bare,
            accepted: !context.json,
            last: None,
            more: 0,
            warned: BTreeSet::new(),
        }
    }

    /// Creates a printer that prints only refused jobs.
    pub(crate) fn refusals_only(context: &'a Context) -> Self {
        Self {
            accepted: false,
            ..Self::new(context, false)
        }
    }

    pub(crate) fn tell(&mut self, report: &Report) {
        let (file, item) = (&report.file, &report.item);
        if report.accepted() {
            self.flush();
            if self.accepted {
                if self.bare {
                    self.context.output.line(&item.job_id);
                } else {
                    let line = format!("submit {file}, got job id={}", item.job_id);
                    self.context.output.line(&line);
                }
                if !item.hint.is_empty() && self.warned.insert(item.hint.clone()) {
                    self.context.output.remark(&format!(
                        "warning: job {}, and others like it: {}",
                        item.job_id,
                        harmless(&item.hint)
                    ));
                }
                let rule = rule_words(item).filter(|words| self.warned.insert(words.clone()));
                if let Some(words) = rule {
                    self.context.output.remark(&format!(
                        "note: job {}, and others like it: {words}",
                        item.job_id
                    ));
                }
            }
            return;
        }
        let code = if item.code.is_empty() {
            &item.errcode
        } else {
            &item.code
        };
        let refusal = Failure::new(
            exit::REFUSED,
            format!("{} ({code})", harmless(&item.message)),
            harmless(&item.hint),
        );
        let text = refusal.to_string();
        let this = Some((file.clone(), text));
        if this == self.last {
            self.more += 1;
            return;
        }
        self.flush();
        if let Some((file, text)) = &this {
            self.context
                .output
                .remark(&format!("submit {file}: refused: {text}"));
        }
        self.last = this;
    }

    /// Prints the number of further jobs with the same refusal.
    pub(crate) fn flush(&mut self) {
        if let Some((file, _)) = self.last.take()
            && self.more > 0
        {
            self.context.output.remark(&format!(
                "submit {file}: {} refused for the same reason",
                counted(self.more, "more job", "more jobs")
            ));
        }
        self.more = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(bytes: usize) -> Entry {
        let mut spec = Spec::new();
        spec.insert("script".into(), Value::from("x".repeat(bytes)));
        Entry {
            file: "f".into(),
            spec,
            params: Vec::new(),
        }
    }

    fn item(id: &str) -> SubmitItem {
        SubmitItem {
            job_id: id.into(),
            message: String::new(),
            errcode: String::new(),
            code: String::new(),
            hint: String::new(),
            warnings: Vec::new(),
            version: String::new(),
            job_state: String::new(),
            result_root: String::new(),
            submit_id: String::new(),
            cluster_id: String::new(),
            shard_of: String::new(),
            rerun_of: String::new(),
            reused_from: String::new(),
            joined: String::new(),
            rule: None,
            outlook: None,
        }
    }

    #[test]
    fn requests_are_bounded_by_jobs_and_by_bytes() {
        assert_eq!(chunk_length(&vec![entry(1); 2500]), 1000);
        assert_eq!(chunk_length(&vec![entry(3 << 20); 5]), 2);
        assert_eq!(chunk_length(&[entry(9 << 20)]), 1);
    }

    #[test]
    fn one_refusal_may_stand_for_all_but_one_acceptance_may_not() {
        let owners = |items: &[&str], nodes: &[usize]| {
            let items = items.iter().map(|id| item(id)).collect();
            let owned = each_its_own(items, nodes).ok()?;
            Some(owned.into_iter().map(|(at, _)| at).collect::<Vec<_>>())
        };
        assert_eq!(owners(&["0"], &[1, 2, 1]), Some(vec![0, 1, 2]));
        assert_eq!(owners(&["7"], &[1, 1, 1]), None);
        assert_eq!(owners(&[], &[1]), None);
        assert_eq!(owners(&["7", "8"], &[1, 1]), Some(vec![0, 1]));
        assert_eq!(owners(&["7", "8", "9"], &[2, 1]), Some(vec![0, 0, 1]));
    }
}
