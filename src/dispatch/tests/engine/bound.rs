//! A job that fits a host starts within a bound of the moment when it is first in its class: the engine's patience, and
//! four times the longest run on that host.

use crate::lab::*;
use fairlead_dispatch::*;
use proptest::prelude::*;

/// How long a job waits before it reserves a host, s.
const PATIENCE_S: u64 = 30;
/// What messages and looks take, s.
const SLACK_S: u64 = 5;
/// The job that must not wait for ever, and when it comes, s.
const LARGE: u64 = 1_000_000;
const COMES_S: u64 = 30;

/// A stream of smaller jobs on one host.
#[derive(Debug, Clone)]
struct Stream {
    /// Jobs each second, and their accounts.
    rate: u64,
    accounts: u64,
    /// What one of them needs, MB.
    memory_mb: u32,
    /// How long most of them run, and one in so many, s. One suite has both.
    short_s: u64,
    long_s: u64,
    one_in: u64,
}

fn streams() -> impl Strategy<Value = Stream> {
    let sizes = prop_oneof![Just(500_u32), Just(1_000), Just(2_500), 300_u32..=9_000];
    (
        1_u64..=4,
        1_u64..=4,
        sizes,
        1_u64..=10,
        10_u64..=90,
        2_u64..=20,
    )
        .prop_map(
            |(rate, accounts, memory_mb, short_s, long_s, one_in)| Stream {
                rate,
                accounts,
                memory_mb,
                short_s,
                long_s,
                one_in,
            },
        )
}

impl Stream {
    fn job(&self, key: u64, now: u64) -> JobFacts {
        JobFacts {
            memory_mb: self.memory_mb,
            submitted: Millis(now),
            timeout_s: self.long_s,
            ..job(key, &format!("user-{}", key % self.accounts))
        }
    }

    fn run_s(&self, key: u64) -> u64 {
        // Spread over the accounts.
        if (key / self.accounts).is_multiple_of(self.one_in) {
            self.long_s
        } else {
            self.short_s
        }
    }

    /// How long the large job waits beside these, s; none: longer than `most_s`.
    fn wait_s(&self, memory_mb: u32, most_s: u64) -> Option<u64> {
        let config = EngineConfig {
            reserve_after_ms: PATIENCE_S * 1_000,
            ..EngineConfig::default()
        };
        let mut lab = Lab::with(config, Policy::default());
        let began = lab.now;
        let mut running: Vec<(u64, u64)> = vec![];
        for second in 0..COMES_S + most_s {
            lab.now = began + second * 1_000;
            for (_, job) in running.extract_if(.., |(end, _)| *end <= second) {
                lab.end(JobKey(job));
            }
            let from = second * self.rate;
            lab.learn((from..from + self.rate).map(|key| self.job(key, began + second * 1_000)));
            if second == COMES_S {
                lab.learn([JobFacts {
                    memory_mb,
                    submitted: Millis(lab.now),
                    ..job(LARGE, "large")
                }]);
            }
            let used = self.memory_mb * u32::try_from(running.len()).expect("few jobs");
            let offer = Offer {
                jobs_max: 100,
                free_memory_mb: 20_000 - used,
                ..vm_host("h")
            };
            for job in lab.serve(offer) {
                if job == LARGE {
                    return Some(second - COMES_S);
                }
                running.push((second + self.run_s(job), job));
            }
        }
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_job_that_fits_a_host_starts_within_a_bound(
        stream in streams(),
        memory_mb in prop_oneof![Just(20_000_u32), 10_000_u32..=20_000],
    ) {
        let bound_s = PATIENCE_S + 4 * stream.long_s + SLACK_S;
        let waited = stream.wait_s(memory_mb, bound_s);
        prop_assert!(waited.is_some(), "it waits for more than {bound_s} s");
    }
}
