//! Compares random histories with a naive model: a map of states.

use std::collections::BTreeMap;

use fairlead_job::{JobId, Stage};
use fairlead_store::{
    Counts, Find, ItemError, JobState, JobStore, Patch, Pull, PullBy, StatePatch, Version,
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};

use super::{id, job, state_with};

const CASES: u32 = 3;
const JOBS: u64 = 12;

#[derive(Debug, Clone)]
enum Step {
    Submit(u64, u8),
    Patch { n: u64, stale: bool, to: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        prop_oneof![
            (1..=JOBS, any::<u8>()).prop_map(|(n, kind)| Step::Submit(n, kind % 4)),
            (1..=JOBS, prop::bool::weighted(0.2), any::<u8>())
                .prop_map(|(n, stale, to)| Step::Patch { n, stale, to }),
        ];
    prop::collection::vec(step, 20..40)
}

/// Kinds of jobs differ in all that counts, pulls and finds look at.
fn of_kind(n: u64, kind: u8) -> JobState {
    state_with(n, |s| {
        s.account = format!("a{}", kind % 2);
        s.queue = format!("q{}", kind % 3);
        s.class = kind;
        s.memory_mb = 500 * u32::from(kind);
        s.cpus = 3 - u32::from(kind % 3);
        s.host_keys = vec![format!("k{}", kind % 2), "k9".into()];
        s.tags = if kind == 3 { vec!["t".into()] } else { vec![] };
    })
}

fn changed(before: &JobState, to: u8) -> JobState {
    let mut after = before.clone();
    match to % 5 {
        0 => after.stage = Stage::Dispatch,
        1 => after.stage = Stage::Submit,
        2 => after.ready = !after.ready,
        3 => after.priority = i16::from(to) - 100,
        _ => after.exit_code = to.is_multiple_of(2).then_some(i32::from(to)),
    }
    after
}

#[derive(Debug, Default)]
struct Model(BTreeMap<JobId, (JobState, Version)>);

impl Model {
    async fn step(&mut self, store: &dyn JobStore, step: &Step) {
        match step {
            Step::Submit(n, kind) => {
                let state = of_kind(*n, *kind);
                let result = store.submit(vec![job(state.clone())]).await.remove(0);
                let result = result.map(|created| created.version);
                match self.0.get(&state.job_id) {
                    None => {
                        let version = result.unwrap();
                        self.0.insert(state.job_id, (state, version));
                    }
                    Some((there, version)) if *there == state => {
                        let again = result.unwrap();
                        assert!(again >= *version);
                        self.0.insert(state.job_id, (state, again));
                    }
                    Some(_) => assert!(matches!(result, Err(ItemError::Conflict { .. }))),
                }
            }
            Step::Patch { n, stale, to } => {
                let known = self.0.get(&id(*n)).cloned();
                let (before, version) = known
                    .clone()
                    .unwrap_or((of_kind(*n, 0), Version::default()));
                let after = changed(&before, *to);
                let mut expect = version;
                expect.seq_no += u64::from(*stale) * 1_000_000;
                expect.primary_term = expect.primary_term.max(1);
                let set = StatePatch::between(&before, &after);
                let patch = Patch {
                    id: id(*n),
                    expect,
                    set,
                };
                let result = store.patch(vec![patch]).await.remove(0);
                match known {
                    None => assert_eq!(result, Err(ItemError::Missing)),
                    Some(_) if *stale => {
                        assert!(
                            matches!(result, Err(ItemError::Conflict { .. })),
                            "{result:?}"
                        );
                    }
                    Some(_) => {
                        self.0.insert(id(*n), (after, result.unwrap()));
                    }
                }
            }
        }
    }

    /// Waiting jobs, best first.
    fn waiting(&self) -> Vec<&JobState> {
        let all = self.0.values().map(|(state, _)| state);
        let mut list: Vec<_> = all
            .filter(|s| s.ready && s.stage == Stage::Submit)
            .collect();
        list.sort_by_key(|s| (u8::MAX - s.class, -i32::from(s.priority), s.job_id));
        list
    }

    fn counts(&self) -> Counts {
        let mut by = [const { BTreeMap::<String, u64>::new() }; 3];
        let mut pairs = BTreeMap::<(String, String), u64>::new();
        for state in self.waiting() {
            let pair = (state.queue.clone(), state.account.clone());
            *pairs.entry(pair).or_default() += 1;
            *by[0].entry(state.account.clone()).or_default() += 1;
            *by[1].entry(state.queue.clone()).or_default() += 1;
            for key in &state.host_keys {
                *by[2].entry(key.clone()).or_default() += 1;
            }
        }
        let [accounts, queues, host_keys] = by.map(|map| map.into_iter().collect());
        Counts {
            total: self.waiting().len() as u64,
            accounts,
            queues,
            pairs: pairs
                .into_iter()
                .map(|((queue, account), n)| (queue, account, n))
                .collect(),
            host_keys,
            partial: false,
        }
    }

    async fn compare(&self, store: &dyn JobStore) {
        store.refresh().await.unwrap();
        for (id, (state, version)) in &self.0 {
            let read = super::read_one(store, *id).await;
            assert_eq!((&read.state, &read.version), (state, version));
        }
        assert_eq!(store.counts().await.unwrap(), self.counts());
        let pull = Pull {
            by: PullBy::All,
            limit: 100,
            after: None,
        };
        let page = store.pull(&[pull]).await.unwrap().remove(0);
        let pulled: Vec<_> = page.jobs.iter().map(|j| j.state.clone()).collect();
        assert_eq!(pulled.iter().collect::<Vec<_>>(), self.waiting());
        let offer = Find {
            host: "h1".to_owned(),
            keys: vec!["k1".into(), "k9".into()],
            arch: String::new(),
            free_memory_mb: 1_000,
            free_cpus: Some(2),
            tags: vec![],
            devices: vec![],
            accounts: vec![],
            limit: 100,
            pairs_max: u32::MAX,
            after: None,
        };
        let page = store.find(&[offer]).await.unwrap().remove(0);
        let found: Vec<_> = page.jobs.iter().map(|j| j.state.clone()).collect();
        let fits = |s: &&JobState| s.memory_mb <= 1_000 && s.cpus <= 2 && s.tags.is_empty();
        let wanted: Vec<_> = self.waiting().into_iter().filter(fits).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), wanted);
    }
}

#[expect(clippy::print_stderr, reason = "shown when the test fails")]
pub(crate) async fn random_histories_equal_a_naive_model(store: &dyn JobStore) {
    // One store serves all cases: each has ids of its own, which also tries them among each other.
    let mut runner = TestRunner::new(Config::default());
    let mut model = Model::default();
    for case in 0..CASES {
        let history = steps().new_tree(&mut runner).unwrap().current();
        for step in &history {
            model.step(store, step).await;
        }
        eprintln!("case {case}: {history:?}");
        model.compare(store).await;
    }
}
