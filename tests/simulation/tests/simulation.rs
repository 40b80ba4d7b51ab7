//! Replicas in virtual time: each seed has its own lab, users and faults, and the judge checks every invariant of
//! docs/invariants.md. A check judges the seeds that failed once, a hundred listed ones of all kinds of labs, and fresh ones
//! that follow from the commit. `FAIRLEAD_SIM_SEEDS` and `FAIRLEAD_SIM_FRESH` set their numbers. `scripts/soak` judges
//! fresh seeds for hours.

use std::{
    fs,
    io::{self, Write},
    process::Command,
};

use fairlead_simulation::{
    Counts, FRESH, Kind, Options, Outcome, fresh_from, simulate, simulate_all, workers,
};

/// Number of listed seeds in one run, in addition to [`BROKEN_ONCE`].
const SEEDS: u64 = 100;
/// Number of fresh seeds in one run.
const FRESH_SEEDS: u64 = 300;
/// True if a broken fresh seed fails the test. As long as an hour of `scripts/soak` finds some, a commit would fail for
/// bugs that it did not cause. So they are reported, and kept in [`KEPT`]. It becomes true once an hour is clean.
const FRESH_SEEDS_FAIL: bool = false;
/// File with the broken fresh seeds of the last run. `scripts/test` prints it at its end.
const KEPT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/broken-fresh-seeds");
/// Seeds that once broke a promise. They stay in the list.
const BROKEN_ONCE: [u64; 70] = [
    432, 447, 460, 497, 648, 653, 700, 789, 982, 1_216, 1_500, 2_077, 2_214, 2_536, 2_725, 2_743,
    2_864, 3_077, 3_141, 3_257, 3_433, 3_450, 3_504, 3_667, 3_720, 3_875, 3_910, 4_085, 4_201,
    4_304, 4_355, 4_731, 4_889, 5_030, 5_082, 5_131, 5_137, 5_254, 5_276, 5_349, 5_466, 6_072,
    6_153, 6_161, 6_186, 6_509, 7_524, 7_710, 7_766, 7_884, 8_358, 8_700, 8_965, 9_080, 9_204,
    9_316, 9_555, 9_824, 40_026, 40_187, 40_203, 100_019, 100_030, 100_037, 100_076, 100_248,
    100_394, 100_426, 100_748, 121_888,
];
/// Fresh seeds that broke a promise, found by `scripts/soak` and by checks.
const BROKEN_FRESH: [u64; 7] = [
    9_117_331,
    309_155_251,
    309_155_460,
    707_572_373,
    707_574_740,
    748_794_254,
    748_795_519,
];
/// Maximum number of replicas in a seed.
const REPLICAS_MAX: usize = 4;

const OPTIONS: Options = Options {
    replicas_max: REPLICAS_MAX,
    trace: false,
};

fn run(seed: u64) -> Outcome {
    simulate(seed, OPTIONS).unwrap_or_else(|error| panic!("no runtime for one thread: {error}"))
}

/// Returns the number of seeds.
#[expect(
    clippy::disallowed_methods,
    reason = "other numbers of seeds are asked for by variables"
)]
fn asked(variable: &str, usual: u64) -> u64 {
    let many = std::env::var(variable).ok();
    many.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Prints a line at once, although cargo holds back the output of a test until its end.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Runs seeds, and prints broken ones at once. Returns their number, the counts, and the broken promises.
fn judged(seeds: impl Iterator<Item = u64> + Send) -> (u64, Counts, Vec<String>) {
    let (mut many, mut counts, mut broken) = (0, Counts::default(), Vec::new());
    let done = simulate_all(seeds, workers(), OPTIONS, |outcome| {
        many += 1;
        counts.add(outcome.counts);
        if let Some(what) = outcome.broken(REPLICAS_MAX) {
            say(&what);
            broken.push(what);
        }
    });
    done.unwrap_or_else(|error| panic!("no runtime for one thread: {error}"));
    (many, counts, broken)
}

#[test]
fn no_seed_breaks_a_promise() {
    let many = usize::try_from(asked("FAIRLEAD_SIM_SEEDS", SEEDS)).unwrap();
    let seeds = Kind::listed_seeds()
        .take(many)
        .chain(BROKEN_ONCE)
        .chain(BROKEN_FRESH);
    let (many, counts, broken) = judged(seeds);
    assert!(
        broken.is_empty(),
        "{} of {many} seeds:\n{}",
        broken.len(),
        broken.join("\n")
    );
    // Events that never happen prove nothing.
    assert!(counts.acknowledged > many * 10, "{counts:?}");
    assert!(counts.runs > many * 10, "{counts:?}");
    assert!(counts.wholes > many / 5, "{counts:?}");
    assert!(counts.lost > 0 && counts.given_back > 0, "{counts:?}");
    assert!(
        counts.reused > many && counts.shared > many / 5,
        "{counts:?}"
    );
    assert!(counts.audits > many / 5, "{counts:?}");
    assert!(counts.needed > many / 5, "{counts:?}");
    assert!(
        counts.reused_of_others > 0 && counts.differing > 0,
        "{counts:?}"
    );
}

/// Returns the output of git in this repository. `None`: there is no git, or no repository.
fn git(words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(env!("CARGO_MANIFEST_DIR"))
        .args(words);
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Returns the first fresh seed and the reason for it, derived from the commit. The same seeds judge uncommitted
/// changes. Without git, it is the start of all fresh seeds.
fn fresh_of_this_commit() -> (u64, String) {
    let Some(commit) = git(&["rev-parse", "HEAD"]) else {
        return (FRESH.start, "no git tells a commit".to_owned());
    };
    let number = commit
        .get(..16)
        .and_then(|text| u64::from_str_radix(text, 16).ok());
    let from = fresh_from(number.unwrap_or_default());
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"]).as_deref() == Some("");
    let besides = if is_clean {
        ""
    } else {
        ", and changes that are not committed"
    };
    (from, format!("commit {commit}{besides}"))
}

#[test]
fn fresh_seeds_of_this_commit_are_judged() {
    let (from, why) = fresh_of_this_commit();
    let seeds = from..from + asked("FAIRLEAD_SIM_FRESH", FRESH_SEEDS);
    say(&format!(
        "fresh seeds {from} to {} ({why})",
        seeds.end.saturating_sub(1)
    ));
    let (many, counts, broken) = judged(seeds);
    fs::write(KEPT, broken.join("\n")).unwrap();
    say(&format!(
        "{} of {many} fresh seeds broke a promise",
        broken.len()
    ));
    assert!(
        broken.is_empty() || !FRESH_SEEDS_FAIL,
        "{}",
        broken.join("\n")
    );
    // Events that never happen prove nothing.
    assert!(counts.runs > many * 10, "{counts:?}");
}

#[test]
fn a_seed_has_one_history() {
    for seed in [
        1,
        7,
        397,
        Kind::Pairs.first_seed() + 1,
        Kind::Reuse.first_seed() + 37,
        Kind::Pools.first_seed() + 12,
        Kind::Needs.first_seed() + 3,
    ] {
        let (first, again) = (run(seed), run(seed));
        assert_eq!((first.hash, first.lines), (again.hash, again.lines));
    }
}
