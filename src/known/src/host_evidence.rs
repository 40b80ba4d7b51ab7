//! Evidence against hosts: suites that fail on one host and pass on others.
//!
//! A test may fail by its own fault, and one account may have broken tests. So a host is suspect only if several suites of
//! several accounts fail there in a row. The last run of each of them elsewhere must have passed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Minimum number of accounts with failures before a host is suspect. One account alone may have broken jobs.
pub const ACCOUNTS_MIN: usize = 2;
/// Number of consecutive failures that make a host suspect.
const FAILURES_MIN: u32 = 6;
/// Minimum number of suites among these failures.
const SUITES_MIN: usize = 3;
/// Maximum number of (suite, account) pairs kept for one host.
const KEPT_MAX: usize = 64;
/// Time for which the result on another host counts, ms: a day.
const TELLS_MS: u64 = 86_400_000;
/// Number of hosts for which a suite's last result is kept.
const HOSTS_MAX: usize = 4;
/// Maximum number of remembered suites, and of hosts with failures.
const NAMES_MAX: usize = 10_000;

/// Result of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    pub host: &'a str,
    pub suite: &'a str,
    pub account: &'a str,
    pub passed: bool,
    /// End time, UTC epoch ms.
    pub at_ms: u64,
}

/// Last result of a suite on a host.
#[derive(Debug)]
struct Last {
    host: String,
    passed: bool,
    at_ms: u64,
}

/// Consecutive failures of one host.
#[derive(Debug, Default)]
struct Row {
    failures: u32,
    /// Suites and accounts of the first failures.
    of: BTreeSet<(String, String)>,
}

/// Results of suites, and consecutive failures of hosts.
#[derive(Debug, Default)]
pub struct HostEvidence {
    suites: BTreeMap<String, VecDeque<Last>>,
    rows: BTreeMap<String, Row>,
}

impl HostEvidence {
    /// Takes in a result. Returns a reason if the host became suspect.
    pub fn note(&mut self, ended: Ended<'_>) -> Option<String> {
        self.note_suite(ended);
        if ended.passed {
            self.forget(ended.host);
            return None;
        }
        if self.rows.len() >= NAMES_MAX && !self.rows.contains_key(ended.host) {
            return None;
        }
        let row = self.rows.entry(ended.host.to_owned()).or_default();
        row.failures = row.failures.saturating_add(1);
        if row.of.len() < KEPT_MAX {
            row.of
                .insert((ended.suite.to_owned(), ended.account.to_owned()));
        }
        if row.failures < FAILURES_MIN {
            return None;
        }
        let row = self.rows.get(ended.host)?;
        let passes = |suite: &str| self.passes_elsewhere(suite, ended);
        let told = row.of.iter().filter(|(suite, _)| passes(suite));
        let (suites, accounts): (BTreeSet<_>, BTreeSet<_>) =
            told.map(|(suite, account)| (suite, account)).unzip();
        (suites.len() >= SUITES_MIN && accounts.len() >= ACCOUNTS_MIN).then(|| {
            format!(
                "{} attempts in a row failed there; {} suites of {} accounts among them pass elsewhere",
                row.failures,
                suites.len(),
                accounts.len()
            )
        })
    }

    /// Forgets the failures of a host.
    pub fn forget(&mut self, host: &str) {
        self.rows.remove(host);
    }

    fn note_suite(&mut self, ended: Ended<'_>) {
        if self.suites.len() >= NAMES_MAX && !self.suites.contains_key(ended.suite) {
            self.suites.pop_first();
        }
        let lasts = self.suites.entry(ended.suite.to_owned()).or_default();
        lasts.retain(|last| last.host != ended.host);
        lasts.push_back(Last {
            host: ended.host.to_owned(),
            passed: ended.passed,
            at_ms: ended.at_ms,
        });
        while lasts.len() > HOSTS_MAX {
            lasts.pop_front();
        }
    }

    /// Returns true if the last run of a suite on another host passed.
    fn passes_elsewhere(&self, suite: &str, ended: Ended<'_>) -> bool {
        let mut lasts = self.suites.get(suite).into_iter().flatten();
        let last = lasts.rfind(|last| last.host != ended.host);
        last.is_some_and(|last| last.passed && ended.at_ms.saturating_sub(last.at_ms) < TELLS_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Suite and account of each job, in order.
    const JOBS: [(&str, &str); 6] = [
        ("boot", "ann"),
        ("disk", "bob"),
        ("net", "ann"),
        ("boot", "bob"),
        ("disk", "ann"),
        ("net", "bob"),
    ];

    fn note(
        all: &mut HostEvidence,
        host: &str,
        (suite, account): (&str, &str),
        passed: bool,
    ) -> bool {
        let ended = Ended {
            host,
            suite,
            account,
            passed,
            at_ms: 1_000,
        };
        all.note(ended).is_some()
    }

    /// Returns true if the host is suspect after these failures.
    fn fails(all: &mut HostEvidence, jobs: &[(&str, &str)]) -> bool {
        let said: Vec<bool> = jobs
            .iter()
            .map(|job| note(all, "bad", *job, false))
            .collect();
        said.into_iter().any(|is_suspect| is_suspect)
    }

    #[test]
    fn a_host_that_fails_what_passes_elsewhere_is_suspect() {
        let mut all = HostEvidence::default();
        assert!(!fails(&mut all, &JOBS), "nobody knows better");
        all.forget("bad");
        for job in JOBS {
            note(&mut all, "good", job, true);
        }
        assert!(!fails(&mut all, &JOBS[..5]));
        assert!(fails(&mut all, &JOBS[5..]));
        // A success on the host starts a new row of failures.
        note(&mut all, "bad", ("other", "ann"), true);
        assert!(!fails(&mut all, &JOBS[..5]));
    }

    #[test]
    fn neither_one_account_nor_few_suites_say_so() {
        for keeps in [
            |job: &(&str, &str)| job.1 == "ann",
            |job: &(&str, &str)| job.0 != "net",
        ] {
            let mut all = HostEvidence::default();
            let jobs: Vec<_> = JOBS.into_iter().filter(keeps).cycle().take(60).collect();
            for job in &jobs {
                note(&mut all, "good", *job, true);
            }
            assert!(!fails(&mut all, &jobs));
        }
    }

    /// A new kernel that breaks everything everywhere.
    #[test]
    fn what_fails_elsewhere_since_says_nothing() {
        let mut all = HostEvidence::default();
        for passed in [true, false] {
            for job in JOBS {
                note(&mut all, "good", job, passed);
            }
        }
        assert!(!fails(&mut all, &JOBS));
    }
}
