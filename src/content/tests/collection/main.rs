//! Collections beside puts, jobs and crashes: 1,000 seeds.
//!
//! Tasks go on one request at a time in an order by chance, in virtual time. A task may crash between any two steps: a
//! request was sent or not, and its answer was seen or not. At each write and each delete the store checks what must never
//! be. At the end, after calm, exactly the named things are left. A failed seed is printed.

#![expect(clippy::print_stderr, reason = "a failed seed is printed")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod steps;
mod world;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use fairlead_content::{
    Chunk, Clock, CollectOptions, ContentError, ContentStore, Digest, Entry, Kind, Manifest, Owned,
    Pin,
};
use object_store::path::Path;

use self::{
    steps::{Chance, Tasks, VirtualClock},
    world::{Objects, World},
};

const SEEDS: u64 = 1_000;
const GRACE: Duration = Duration::from_mins(2);
const HOUR_MS: u64 = 3_600_000;
/// How long the pins of puts and submits last.
const PIN_MS: u64 = HOUR_MS / 2;

/// What the people of a lab know.
struct Lab {
    world: Arc<World>,
    clock: Arc<VirtualClock>,
    chance: Chance,
    store: ContentStore,
    /// Manifests whose puts ended well.
    put: RefCell<Vec<Digest>>,
    jobs: RefCell<Vec<u64>>,
    last: Cell<u64>,
    done: RefCell<[u64; 4]>,
}

impl Lab {
    fn new(seed: u64) -> Self {
        let clock = VirtualClock::new();
        let world = World::new(seed, &clock);
        let store = ContentStore::over(Arc::new(Objects(Arc::clone(&world))), None);
        Self {
            store: store.with_clock(Arc::clone(&clock) as Arc<dyn Clock>),
            world,
            clock,
            chance: Chance::new(seed),
            put: RefCell::default(),
            jobs: RefCell::default(),
            last: Cell::default(),
            done: RefCell::default(),
        }
    }

    fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn count(&self, what: usize) {
        self.done.borrow_mut()[what] += 1;
    }

    /// A few of few files, so that puts share chunks and often put again what is old.
    fn files(&self) -> Vec<Bytes> {
        let set = u8::try_from(self.chance.below(24)).unwrap();
        let files = BTreeSet::from([set % 16, (set * 5 + 1) % 16]);
        files
            .into_iter()
            .map(|file| Bytes::from(vec![file; 10]))
            .collect()
    }

    /// A process may have stood still: it opens the store anew.
    fn replica(&self) -> ContentStore {
        let store = ContentStore::over(Arc::new(Objects(Arc::clone(&self.world))), None);
        if self.chance.is(2) {
            return self.store.clone();
        }
        store.with_clock(Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    async fn put(&self) {
        let store = self.replica();
        let files = self.files();
        let put = format!("put-{}", self.number());
        for _ in 0..4 {
            if let Some(id) = self.try_put(&store, &put, &files).await {
                self.put.borrow_mut().push(id);
                self.count(0);
                return;
            }
        }
    }

    async fn try_put(&self, store: &ContentStore, put: &str, files: &[Bytes]) -> Option<Digest> {
        let chunks: Vec<Digest> = files.iter().map(|file| Digest::of(file)).collect();
        // A careless client does not pin.
        if !self.chance.is(5) {
            self.pin(store, put, &chunks).await.ok()?;
        }
        for chunk in store.missing(&chunks).await.ok()? {
            let bytes = files.iter().find(|file| Digest::of(file) == chunk)?;
            store.put_chunk(chunk, bytes.clone()).await.ok()?;
        }
        let (id, _) = store.put_manifest(manifest_of(files)).await.ok()?;
        let owned = Owned {
            keep_until_ms: match self.chance.below(8) {
                0 => self.clock.now_ms() + self.chance.below(6) * HOUR_MS,
                _ => 0,
            },
            ..Owned::default()
        };
        let account = format!("account-{}", self.chance.below(2));
        store.own(&account, id, &owned).await.ok()?;
        if self.chance.is(2) {
            store.unpin(put).await.ok()?;
        }
        Some(id)
    }

    async fn pin(
        &self,
        store: &ContentStore,
        put: &str,
        digests: &[Digest],
    ) -> Result<(), ContentError> {
        let pin = Pin {
            put: put.to_owned(),
            until_ms: self.clock.now_ms() + PIN_MS,
            digests: digests.iter().copied().collect(),
        };
        store.pin(&pin).await
    }

    /// A job, or an answer that is used again, names a manifest that somebody put at some time.
    async fn submit(&self) {
        let ids = self.put.borrow().clone();
        let many = u64::try_from(ids.len()).unwrap();
        let Some(id) = ids.get(usize::try_from(self.chance.below(many)).unwrap()) else {
            return;
        };
        let (store, job) = (self.replica(), self.number());
        let begun = self.clock.now_ms();
        let submit = format!("submit-{job}");
        if self.pin(&store, &submit, &[*id]).await.is_err() {
            return;
        }
        let is_there = matches!(store.about(*id).await, Ok(Some(_)));
        if is_there && self.clock.now_ms() < begun + PIN_MS {
            self.world.mark(job, *id);
            self.jobs.borrow_mut().push(job);
            self.count(1);
            let _ = store.unpin(&submit).await;
        }
    }

    async fn collect(&self) {
        let store = self.replica();
        let options = CollectOptions {
            grace: GRACE,
            dry_run: self.chance.is(10),
            now_ms: self.clock.now_ms(),
            holder: format!("replica-{}", self.chance.below(3)),
        };
        let before = self.world.names();
        if let Ok(told) = store.collect(&options, &*self.world).await {
            self.count(2);
            if told.chunks_removed > 0 && self.world.names() != before {
                self.count(3);
            }
        }
    }

    /// Jobs go.
    fn forget(&self) {
        let jobs = std::mem::take(&mut *self.jobs.borrow_mut());
        let (stay, go): (Vec<u64>, Vec<u64>) = jobs.into_iter().partition(|_| !self.chance.is(2));
        for job in go {
            self.world.unmark(job);
        }
        *self.jobs.borrow_mut() = stay;
    }

    fn history(&self) {
        for _ in 0..5 {
            let mut tasks = Tasks::new(&self.clock, &self.chance, true);
            let mut left = 5 + self.chance.below(12);
            for _ in 0..=self.chance.below(2) {
                tasks.start(self.collect());
            }
            tasks.run(|tasks| {
                if left > 0 && tasks.len() < 4 && self.chance.is(15) {
                    left -= 1;
                    match self.chance.below(5) {
                        0..3 => tasks.start(self.put()),
                        _ => tasks.start(self.submit()),
                    }
                }
            });
            self.forget();
            self.clock
                .pass(HOUR_MS / 2 + self.chance.below(3 * HOUR_MS));
        }
    }

    /// Calm: nothing crashes, and two collections run past the grace period and the ends of the pins. Returns what was
    /// named before the last one: a note may end while that is at work.
    fn calm(&self) -> BTreeSet<Digest> {
        *self.world.faults.lock() = false;
        let mut named = BTreeSet::new();
        for _ in 0..2 {
            self.clock.pass(2 * HOUR_MS);
            named = self.world.named();
            let mut tasks = Tasks::new(&self.clock, &self.chance, false);
            tasks.start(async {
                let options = CollectOptions {
                    grace: GRACE,
                    dry_run: false,
                    now_ms: self.clock.now_ms(),
                    holder: "calm".to_owned(),
                };
                let told = self.store.collect(&options, &*self.world).await;
                told.expect("nothing is wrong with the store");
            });
            tasks.run(|_| {});
        }
        named
    }

    /// What is wrong at the end.
    fn rest(&self, before: &BTreeSet<Digest>) -> Vec<String> {
        let chunks_of = |ids: &BTreeSet<Digest>| -> BTreeSet<Digest> {
            let chunks = ids.iter().flat_map(|id| self.world.chunks_of(*id));
            chunks.collect()
        };
        let named = self.world.named();
        let chunks = chunks_of(&named);
        let mut wrong = self.world.wrong();
        for (kind, all) in [("manifests", &named), ("chunks", &chunks)] {
            let gone = all
                .iter()
                .filter(|digest| !self.world.is_there(kind, **digest));
            wrong.extend(gone.map(|digest| format!("{kind}: {digest} is gone, and is named")));
        }
        for name in self.world.names() {
            if !may_stay(&name, before, &chunks_of(before)) {
                wrong.push(format!("{name} is left, and nobody names it"));
            }
        }
        let terms = self.world.names();
        let terms = terms
            .iter()
            .filter(|name| name.as_ref().starts_with("collect/"));
        if terms.count() > 1 {
            wrong.push("more than the last collector's number is left".to_owned());
        }
        wrong
    }
}

fn may_stay(name: &Path, named: &BTreeSet<Digest>, chunks: &BTreeSet<Digest>) -> bool {
    let parts: Vec<String> = name.parts().map(|part| part.as_ref().to_owned()).collect();
    let digest: Option<Digest> = name.filename().and_then(|name| name.parse().ok());
    match (parts[0].as_str(), digest) {
        ("manifests" | "about" | "owners", Some(id)) => named.contains(&id),
        ("chunks", Some(chunk)) => chunks.contains(&chunk),
        ("collect", _) => parts[1] == "terms",
        _ => false,
    }
}

fn manifest_of(files: &[Bytes]) -> Bytes {
    let entry = |(n, file): (usize, &Bytes)| Entry {
        path: n.to_string(),
        kind: Kind::File {
            executable: false,
            size: u64::try_from(file.len()).unwrap(),
            digest: Digest::of(file),
            chunks: vec![Chunk::of(file)],
        },
    };
    let entries = files.iter().enumerate().map(entry).collect();
    Manifest::new(entries).unwrap().encode().unwrap().into()
}

#[test]
fn nothing_named_goes_and_nothing_else_stays() {
    let (mut sums, mut met) = ([0; 4], 0);
    for seed in 0..SEEDS {
        let lab = Lab::new(seed);
        lab.history();
        let before = lab.calm();
        let wrong = lab.rest(&before);
        if !wrong.is_empty() {
            eprintln!("seed {seed}:\n{}", wrong.join("\n"));
        }
        assert!(wrong.is_empty(), "seed {seed}: {}", wrong[0]);
        met += lab.world.met();
        for (sum, done) in sums.iter_mut().zip(*lab.done.borrow()) {
            *sum += done;
        }
    }
    // The histories are worth something only if all of it happens.
    let [puts, jobs, collections, removals] = sums;
    assert!(puts > 4 * SEEDS && jobs > SEEDS, "{puts} puts, {jobs} jobs");
    assert!(
        collections > SEEDS && removals > SEEDS / 2,
        "{collections}, {removals} removed"
    );
    assert!(met > SEEDS, "{met} times a put met a collection");
}

#[test]
fn a_seed_gives_the_same_history() {
    let names = |seed| {
        let lab = Lab::new(seed);
        lab.history();
        (lab.world.names(), lab.clock.now_ms())
    };
    assert_eq!(names(7), names(7));
    assert_ne!(names(7), names(8));
}
