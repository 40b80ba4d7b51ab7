//! Results that jobs may take for their own: by the key of what ran, for each class of machine.
//!
//! A document belongs to one account, or to the whole lab for accounts that share their results. It is only a hint where
//! to look: before a job takes a result, the job that has it is read.

use std::collections::BTreeMap;

use fairlead_job::{JobId, KeyPart};
use fairlead_store::{DocKind, JobState};
use serde::{Deserialize, Serialize};

use crate::{hosts::Host, ids::id_of_texts};
use fairlead_base::storage::{controller::Controller, doc_fields::is_zero, small_doc::SmallDoc};

/// Maximum number of machine classes with a result of one key. The oldest result is dropped first.
const CLASSES_MAX: usize = 8;
/// Time for which a key is kept after its last result, ms. It is the maximum age of a reusable result.
const KEPT_MS: u64 = 366 * 86_400_000;

/// Family of the facts about the images that a host has.
pub const IMAGES: &str = "image";
/// Family of the facts about default images, for jobs that name no image.
const DEFAULT_IMAGES: &str = "default-image";

/// Properties of a machine that a result may depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Class {
    pub group: String,
    pub arch: String,
    pub cpu: String,
    pub kernel: String,
    pub firmware: String,
    pub agent: String,
    /// Executors with their versions.
    pub executors: String,
    /// Default images with their content.
    pub default_images: String,
}

impl Class {
    /// Returns the class of a host. `None`: it does not report its kernel and processor.
    pub fn of(host: &Host) -> Option<Self> {
        let facts = host.all_facts();
        let said = |family: &str| facts.get(family).map(|values| values.join(" "));
        let executors = host.executors.iter().filter(|one| one.problem.is_empty());
        let executors = executors.map(|one| format!("{} {}", one.name, one.version));
        let mut executors: Vec<String> = executors.collect();
        executors.sort_unstable();
        Some(Self {
            group: host.group.clone(),
            arch: host.arch.clone(),
            cpu: said("cpu-model").or_else(|| said("cpu"))?,
            kernel: said("kernel")?,
            firmware: said("firmware").unwrap_or_default(),
            agent: said("agent").unwrap_or_default(),
            executors: executors.join(", "),
            default_images: said(DEFAULT_IMAGES).unwrap_or_default(),
        })
    }

    /// Returns the class that a job keeps from its claim. `None`: its host did not report it.
    pub fn kept_by(state: &JobState) -> Option<Self> {
        serde_json::from_str(&state.host_class).ok()
    }

    /// Returns the class in the form that jobs keep.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns its parts with their names for people.
    fn parts(&self) -> [(&'static str, &str); 8] {
        [
            ("group", &self.group),
            ("arch", &self.arch),
            ("cpu", &self.cpu),
            ("kernel", &self.kernel),
            ("firmware", &self.firmware),
            ("agent", &self.agent),
            ("executors", &self.executors),
            ("default image", &self.default_images),
        ]
    }

    /// Returns each part in which another class differs: its name, this value, and the other value.
    pub fn differing<'c>(&'c self, other: &'c Self) -> Vec<(&'static str, &'c str, &'c str)> {
        let pairs = self.parts().into_iter().zip(other.parts());
        let pairs = pairs.map(|((name, own), (_, others))| (name, own, others));
        pairs.filter(|(_, own, others)| own != others).collect()
    }
}

/// A result on one class of machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub class: Class,
    /// Image that the job named, with its content as hosts report it. Empty: it named none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Job that produced the result.
    pub job: JobId,
    /// True if it succeeded. False: it failed by itself.
    pub is_good: bool,
    /// Content id of its outputs. Empty: it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outputs: String,
    /// Fingerprint of its results and log. Empty: not taken.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub print: String,
    pub end_ms: u64,
    /// Run time of its script, ms.
    #[serde(default)]
    pub ran_ms: u64,
}

/// Known results of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// Results, one for each class, newest last.
    pub results: Vec<Known>,
    /// Job with this key that runs or waits, if one was noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<JobId>,
    /// Reason why results of this key are not reused any more. Empty: they are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bad: String,
    /// Time at which somebody reset the key, UTC epoch ms. 0: never. Jobs that ended before do not count, even if their
    /// results are written later.
    #[serde(skip_serializing_if = "is_zero")]
    pub anew_ms: u64,
    /// Time of its deletion, UTC epoch ms.
    pub at_ms: u64,
}

impl SmallDoc for Entry {
    const KIND: DocKind = DocKind::Reuse;
}

impl Entry {
    /// Adds a result, in any order and any number of times. A failure and a success of the same class show that the key
    /// does not determine the outcome. Returns true if the result counts.
    pub fn learn(&mut self, new: &Known) -> bool {
        if self.running == Some(new.job) {
            self.running = None;
        }
        if new.end_ms < self.anew_ms {
            return false;
        }
        // A job runs on one class. An end that is written again must not count for the host's present class.
        let is_elsewhere = |known: &Known| known.job == new.job && known.class != new.class;
        if self.results.iter().any(is_elsewhere) {
            return false;
        }
        let same = self
            .results
            .iter()
            .position(|known| Self::is_of(known, new));
        let before = same.and_then(|at| self.results.get(at).cloned());
        if let Some(before) = &before
            && before.is_good != new.is_good
            && before.job != new.job
        {
            let (good, failed) = if new.is_good {
                (new, before)
            } else {
                (before, new)
            };
            self.is_bad(&flaky(good, failed));
        }
        let is_newer =
            before.is_none_or(|before| (before.end_ms, before.job) <= (new.end_ms, new.job));
        if is_newer {
            self.results.retain(|known| !Self::is_of(known, new));
            self.results.push(new.clone());
            self.results.sort_by_key(|known| (known.end_ms, known.job));
            let over = self.results.len().saturating_sub(CLASSES_MAX);
            self.results.drain(..over);
        }
        self.kept_until(new.end_ms);
        true
    }

    /// Stops the reuse of this key's results. The first reason stays.
    pub fn is_bad(&mut self, why: &str) {
        if self.bad.is_empty() {
            why.clone_into(&mut self.bad);
        }
    }

    /// Returns true if it holds results, or a reason against reuse.
    pub fn knows_results(&self) -> bool {
        !self.results.is_empty() || !self.bad.is_empty()
    }

    /// Resets the key except for its running job. Returns the reason why results were not reused. Empty: they were.
    pub fn forget(&mut self, now_ms: u64) -> String {
        self.results.clear();
        self.anew_ms = now_ms;
        self.kept_until(now_ms);
        std::mem::take(&mut self.bad)
    }

    /// Notes that a job with this key waits or runs.
    pub fn runs(&mut self, job: JobId, now_ms: u64) {
        self.running = Some(job);
        self.kept_until(now_ms);
    }

    fn is_of(known: &Known, new: &Known) -> bool {
        known.class == new.class && known.image == new.image
    }

    fn kept_until(&mut self, from_ms: u64) {
        self.at_ms = self.at_ms.max(from_ms.saturating_add(KEPT_MS));
    }
}

fn flaky(good: &Known, failed: &Known) -> String {
    let (good, failed) = (good.job, failed.job);
    format!("it is flaky: job {good} succeeded and job {failed} failed")
}

/// Returns the reason why results of a key may not be reused, over the documents of the account and the lab. One may
/// have a success and the other a failure. `None`: results may be reused.
pub fn why_none<'e>(entries: impl Iterator<Item = &'e Entry> + Clone) -> Option<String> {
    let bad = entries.clone().find(|entry| !entry.bad.is_empty());
    if let Some(entry) = bad {
        return Some(entry.bad.clone());
    }
    let results = entries.flat_map(|entry| &entry.results);
    let mut failed = results.clone().filter(|known| !known.is_good);
    failed.find_map(|failed| {
        let is_same = |known: &&Known| known.is_good && Entry::is_of(known, failed);
        results
            .clone()
            .find(is_same)
            .map(|good| flaky(good, failed))
    })
}

/// Returns the id of a key's document: of one account, or of the lab (`None`).
pub fn entry_id(key: &str, account: Option<&str>) -> String {
    let scope = if account.is_some() { "account" } else { "lab" };
    id_of_texts(&[key, scope, account.unwrap_or_default()])
}

/// Ends of jobs with keys that are not stored yet.
pub type PendingResults = Controller<JobId, JobState>;

/// Notes the end of a job that was written.
pub fn note_end(results: &PendingResults, state: &JobState) {
    let reuse = state.reuse.as_ref();
    let has_key = reuse.is_some_and(|reuse| !reuse.key.is_empty());
    if has_key && state.stage.is_terminal() && state.reused_from.is_none() {
        results.look_now(state.job_id, state.clone());
    }
}

/// Returns the parts of a key with their hashes, for people.
pub fn parts_text(parts: &[String; KeyPart::ALL.len()]) -> BTreeMap<String, String> {
    let named = KeyPart::ALL.iter().zip(parts);
    named
        .map(|(part, hash)| (part.as_str().to_owned(), hash.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known(job: u64, class: &str, is_good: bool) -> Known {
        Known {
            class: Class {
                group: class.to_owned(),
                ..Class::default()
            },
            image: String::new(),
            job: JobId::new(job),
            is_good,
            outputs: String::new(),
            print: String::new(),
            end_ms: job,
            ran_ms: 1,
        }
    }

    fn learned(all: &[Known]) -> Entry {
        let mut entry = Entry::default();
        for one in all {
            entry.learn(one);
        }
        entry
    }

    #[test]
    fn success_and_failure_on_one_class_are_flaky_in_any_order() {
        for all in [
            [known(1, "a", true), known(2, "a", false)],
            [known(2, "a", false), known(1, "a", true)],
        ] {
            assert!(
                learned(&all)
                    .bad
                    .contains("job 0000000000000000001 succeeded"),
                "{:?}",
                learned(&all)
            );
        }
        let other_class = learned(&[known(1, "a", true), known(2, "b", false)]);
        assert_eq!(other_class.bad, "");
        let twice = learned(&[known(1, "a", true), known(3, "a", true)]);
        assert_eq!((twice.bad.as_str(), twice.results.len()), ("", 1));
    }

    #[test]
    fn a_key_that_begins_anew_ignores_what_ended_before() {
        let mut entry = learned(&[known(1, "a", true), known(2, "a", false)]);
        entry.runs(JobId::new(6), 4);
        assert!(entry.knows_results());
        assert!(entry.forget(5).contains("flaky"));
        // The result is written late.
        assert!(!entry.learn(&known(4, "a", true)));
        assert!(!entry.knows_results() && entry.running.is_some());
        assert!(entry.learn(&known(6, "a", true)) && entry.running.is_none());
        assert_eq!((entry.results.len(), entry.bad.as_str()), (1, ""));
    }

    #[test]
    fn a_success_and_a_failure_in_two_documents_are_flaky() {
        let [good, failed] = [known(1, "a", true), known(2, "a", false)].map(|one| learned(&[one]));
        let why = |all: &[&Entry]| why_none(all.iter().copied());
        assert_eq!((why(&[&good]), why(&[&failed])), (None, None));
        assert!(why(&[&good, &failed]).is_some_and(|why| why.contains("flaky")));
        let elsewhere = learned(&[known(2, "b", false)]);
        assert_eq!(why(&[&good, &elsewhere]), None, "another class");
    }

    /// Checks that documents of the first version remain readable.
    #[test]
    fn a_document_of_an_earlier_version_is_read() {
        let old = r#"{
            "results": [{
                "class": {
                    "group": "g", "arch": "x86_64", "cpu": "intel-xeon", "kernel": "6.1", "firmware": "f1",
                    "agent": "0.1.0", "executors": "podman 5.2"
                },
                "job": "2611242328437900000", "is_good": true, "outputs": "0f3c", "end_ms": 1764026912000, "ran_ms": 7
            }],
            "running": "2611242328511300000", "bad": "it is flaky", "at_ms": 1795649312000, "format": 1
        }"#;
        let entry: Entry = serde_json::from_str(old).unwrap();
        let result = &entry.results[0];
        assert_eq!(result.job, JobId::new(2_611_242_328_437_900_000));
        assert_eq!(
            (result.class.kernel.as_str(), result.is_good),
            ("6.1", true)
        );
        assert_eq!((result.outputs.as_str(), result.ran_ms), ("0f3c", 7));
        assert_eq!(entry.running, Some(JobId::new(2_611_242_328_511_300_000)));
        assert_eq!(
            (entry.bad.as_str(), entry.at_ms),
            ("it is flaky", 1_795_649_312_000)
        );
    }

    #[test]
    fn a_job_counts_for_the_class_of_its_first_note() {
        let [first, later] = ["a", "b"].map(|class| known(1, class, true));
        assert_eq!(learned(&[first.clone(), later]).results, [first]);
    }

    #[test]
    fn the_newest_classes_stay() {
        let all: Vec<Known> = (1..=12).map(|n| known(n, &n.to_string(), true)).collect();
        let entry = learned(&all);
        let jobs: Vec<u64> = entry.results.iter().map(|one| one.job.get()).collect();
        assert_eq!(jobs, (5..=12).collect::<Vec<_>>());
        assert_eq!(entry.at_ms, 12 + KEPT_MS);
    }

    #[test]
    fn documents_of_accounts_and_of_the_lab_differ() {
        let ids = [Some("a"), Some("b"), None, Some("")].map(|account| entry_id("k", account));
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(ids.iter().position(|other| other == id), Some(n));
        }
        assert_ne!(entry_id("k", None), entry_id("l", None));
    }

    #[test]
    fn a_class_names_what_differs() {
        let host = |kernel: &str| {
            let fact = |family: &str, value: &str| (family.to_owned(), vec![value.to_owned()]);
            Host {
                group: "g".to_owned(),
                facts: [fact("kernel", kernel), fact("cpu-model", "x")].into(),
                ..Host::default()
            }
        };
        let (old, new) = (
            Class::of(&host("6.1")).unwrap(),
            Class::of(&host("6.2")).unwrap(),
        );
        assert_eq!(old.differing(&new), [("kernel", "6.1", "6.2")]);
        assert_eq!(Class::of(&Host::default()), None);
    }

    proptest! {
        /// Checks that the same ends give the same entry in any order and with repeats. Only the two jobs named as
        /// flaky may differ.
        #[test]
        fn order_and_repeats_do_not_count(
            ends in prop::collection::vec((1_u64..9, 0_u8..3, any::<bool>()), 0..10), turn in 0_usize..10
        ) {
            // A job ends only once.
            let ends: BTreeMap<u64, (u8, bool)> = ends.into_iter().map(|(job, class, good)| (job, (class, good))).collect();
            let all: Vec<Known> = ends.into_iter().map(|(job, (class, good))| known(job, &class.to_string(), good)).collect();
            let mut turned = all.clone();
            turned.rotate_left(turn.min(all.len()));
            turned.extend(all.clone());
            let (one, other) = (learned(&all), learned(&turned));
            prop_assert_eq!(&one.results, &other.results);
            let mixed = |class: &str| all.iter().any(|k| k.class.group == class && k.is_good)
                && all.iter().any(|k| k.class.group == class && !k.is_good);
            let is_mixed = ["0", "1", "2"].into_iter().any(mixed);
            prop_assert_eq!(!one.bad.is_empty(), is_mixed);
            prop_assert_eq!(!other.bad.is_empty(), is_mixed);
        }
    }
}
