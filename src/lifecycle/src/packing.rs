//! Packs tests into shards, the longest first. Pure: the same tests and times give the same plan.

use std::{collections::BTreeSet, time::Duration};

/// Maximum number of tests in a list.
pub const TESTS_MAX: usize = 20_000;
/// Maximum length of a test's name, bytes.
const NAME_BYTES_MAX: usize = 512;
/// Assumed time of a test if no time is known.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Maximum time of a test. Longer claims are not believed.
const LONGEST: Duration = Duration::from_hours(24);

/// Returns the tests of a printed list: one on each line, without surrounding blanks. Empty lines, lines that begin
/// with `#`, and repeated names are ignored.
pub fn read_list(output: &str) -> Result<Vec<String>, String> {
    let lines = output.lines().map(str::trim);
    let named = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut known = BTreeSet::new();
    let mut tests = Vec::new();
    for name in named {
        if name.len() > NAME_BYTES_MAX {
            let begin: String = name.chars().take(40).collect();
            return Err(format!(
                "its list names a test of {} bytes; at most {NAME_BYTES_MAX} are possible: {begin}…",
                name.len()
            ));
        }
        if known.insert(name) {
            tests.push(name.to_owned());
        }
    }
    match tests.len() {
        0 => Err("its list names no test".to_owned()),
        many if many > TESTS_MAX => Err(format!(
            "its list names {many} tests; at most {TESTS_MAX} are possible"
        )),
        _ => Ok(tests),
    }
}

/// Packs all tests into at most `shards` shards, none of them empty. A test of unknown time counts as the median of the
/// others.
pub fn pack(
    tests: &[String],
    seconds: impl Fn(&str) -> Option<f64>,
    shards: u16,
) -> Vec<Vec<String>> {
    let time = |name: &str| {
        let said = seconds(name).filter(|s| *s >= 0.0);
        said.and_then(|s| Duration::try_from_secs_f64(s).ok())
            .filter(|time| *time <= LONGEST)
    };
    let mut known: Vec<Duration> = tests.iter().filter_map(|name| time(name)).collect();
    known.sort_unstable();
    let median = known.get(known.len() / 2).copied().unwrap_or(UNKNOWN);
    let mut timed: Vec<(Duration, &String)> = tests
        .iter()
        .map(|name| (time(name).unwrap_or(median), name))
        .collect();
    // Sorts the longest first, and equal ones by their names.
    timed.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let bins = usize::from(shards).clamp(1, tests.len().max(1));
    let mut plan = vec![(Duration::ZERO, Vec::new()); bins];
    for (time, name) in timed {
        let least = plan.iter_mut().min_by_key(|bin| (bin.0, bin.1.len()));
        if let Some(bin) = least {
            bin.0 = bin.0.saturating_add(time);
            bin.1.push(name.clone());
        }
    }
    plan.into_iter().map(|(_, tests)| tests).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(many: usize) -> Vec<String> {
        (0..many).map(|n| format!("t{n}")).collect()
    }

    #[test]
    fn a_list_is_one_test_a_line() {
        let list = read_list(" a/b \n\n# note\nc d\na/b\r\n").unwrap();
        assert_eq!(list, ["a/b", "c d"]);
        assert!(read_list("# nothing\n").unwrap_err().contains("no test"));
        assert!(
            read_list(&"x".repeat(600))
                .unwrap_err()
                .contains("600 bytes")
        );
        let many: Vec<String> = (0..=TESTS_MAX).map(|n| n.to_string()).collect();
        assert!(
            read_list(&many.join("\n"))
                .unwrap_err()
                .contains("20001 tests")
        );
    }

    #[test]
    fn a_skewed_suite_is_even_or_its_longest_test_alone() {
        // Ten tests take as long as all others together.
        let tests = names(1_000);
        let time = |name: &str| {
            let n: f64 = name[1..].parse().unwrap();
            if n < 10.0 { 99.0 } else { 1.0 + n / 1_000.0 }
        };
        let plan = pack(&tests, |name| Some(time(name)), 20);
        let sums: Vec<f64> = plan
            .iter()
            .map(|bin| bin.iter().map(|name| time(name)).sum())
            .collect();
        let mean = sums.iter().sum::<f64>() / 20.0;
        let slowest = sums.iter().copied().fold(0.0, f64::max);
        assert!(slowest <= (1.1 * mean).max(99.0), "{slowest} of {mean}");
    }

    proptest! {
        #[test]
        fn each_test_runs_once_whatever_the_times_say(
            many in 1_usize..300,
            shards in 1_u16..50,
            times in proptest::collection::vec(prop_oneof![
                any::<f64>().prop_map(Some), Just(None), (0.0..100.0).prop_map(Some),
            ], 300),
        ) {
            let tests = names(many);
            let time = |name: &str| times[name[1..].parse::<usize>().unwrap()];
            let plan = pack(&tests, time, shards);
            let mut ran: Vec<&String> = plan.iter().flatten().collect();
            ran.sort_unstable();
            let mut all: Vec<&String> = tests.iter().collect();
            all.sort_unstable();
            prop_assert_eq!(ran, all);
            prop_assert!(plan.len() <= usize::from(shards) && plan.iter().all(|bin| !bin.is_empty()));
            prop_assert_eq!(&plan, &pack(&tests, time, shards));
        }
    }
}
