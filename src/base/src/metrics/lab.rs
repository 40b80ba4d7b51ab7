//! Gauges of the lab by name: waiting and running jobs, shares, hosts. They are set each time that somebody asks.

use std::{collections::BTreeMap, sync::atomic::AtomicU64};

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

/// Maximum number of queues, and of groups of hosts, that have their own series. All others share one.
pub(crate) const METRIC_NAMES_MAX: usize = 50;
/// Name of the series that the others share.
const OTHER: &str = "other";
/// Thousandths in one.
const PERMILLE: f64 = 1000.0;

type Pair = [(&'static str, String); 2];
type One = [(&'static str, String); 1];
type Ratio = Gauge<f64, AtomicU64>;

/// Values read for one scrape.
#[derive(Debug, Default)]
pub struct Readings {
    /// Waiting jobs by queue and reason.
    pub waiting: BTreeMap<(String, &'static str), u64>,
    /// Readings by queue.
    pub queues: BTreeMap<String, QueueReading>,
    /// Hosts by state and group.
    pub hosts: BTreeMap<(String, String), u64>,
    /// Jobs that wait for a time, a turn or other jobs.
    pub not_ready: u64,
    /// True if the whole lab is paused.
    pub is_paused: bool,
}

/// Readings of a queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueReading {
    /// Its jobs on hosts.
    pub running: u64,
    /// Time since the longest-waiting job could run, s.
    pub oldest_s: u64,
    /// Share for its weight, thousandths of its class.
    pub wanted_permille: u32,
    /// Its share of all testbox time of an hour, thousandths.
    pub got_permille: u32,
}

impl QueueReading {
    fn add(&mut self, other: Self) {
        self.running += other.running;
        self.oldest_s = self.oldest_s.max(other.oldest_s);
        self.wanted_permille += other.wanted_permille;
        self.got_permille += other.got_permille;
    }
}

/// The gauges.
#[derive(Debug, Default)]
pub struct LabGauges {
    waiting: Family<Pair, Gauge>,
    running: Family<One, Gauge>,
    oldest: Family<One, Gauge>,
    wanted: Family<One, Ratio>,
    got: Family<One, Ratio>,
    hosts: Family<Pair, Gauge>,
    not_ready: Gauge,
    paused: Gauge,
}

impl LabGauges {
    pub(super) fn register(&self, to: &mut Registry) {
        let help = "Waiting jobs by queue and by what keeps them back; not_cached: known to the store alone";
        to.register("jobs_waiting", help, self.waiting.clone());
        let help = "Jobs on hosts by queue, in the whole lab";
        to.register("jobs_running", help, self.running.clone());
        let help = "How long the job that waits longest for a host could run by now, by queue";
        to.register("oldest_wait_seconds", help, self.oldest.clone());
        let help = "The share of dispatches of its class that the weight of a queue wants, 0 to 1; 0: it has no jobs";
        to.register("queue_share_wanted_ratio", help, self.wanted.clone());
        let help = "The share of all testbox time that a queue got in the last hour, 0 to 1";
        to.register("queue_share_got_ratio", help, self.got.clone());
        let help = "Hosts by state and group";
        to.register("hosts", help, self.hosts.clone());
        let help = "Jobs that wait for a time, a turn or other jobs";
        to.register("jobs_not_ready", help, self.not_ready.clone());
        let help = "1 if the whole lab is paused";
        to.register("lab_paused", help, self.paused.clone());
    }

    /// Sets these readings, and removes earlier ones. `is_named`: queues and groups by name.
    pub fn set(&self, readings: &Readings, is_named: bool) {
        let most = if is_named { METRIC_NAMES_MAX } else { 0 };
        let mut jobs: BTreeMap<&str, u64> = BTreeMap::new();
        for ((queue, _), waiting) in &readings.waiting {
            *jobs.entry(queue).or_default() += waiting;
        }
        for (queue, reading) in &readings.queues {
            *jobs.entry(queue).or_default() += reading.running;
        }
        let queues = Named::most(&jobs, most);
        let mut waiting: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for ((queue, reason), jobs) in &readings.waiting {
            *waiting.entry((queues.name(queue), *reason)).or_default() += jobs;
        }
        self.waiting.clear();
        for ((queue, reason), jobs) in waiting {
            let labels = [("queue", queue.to_owned()), ("reason", reason.to_owned())];
            self.waiting.get_or_create(&labels).set(number(jobs));
        }
        self.set_queues(readings, &queues);
        self.set_hosts(&readings.hosts, most);
        self.not_ready.set(number(readings.not_ready));
        self.paused.set(i64::from(readings.is_paused));
    }

    fn set_queues(&self, readings: &Readings, queues: &Named<'_>) {
        let mut rows: BTreeMap<&str, QueueReading> = BTreeMap::new();
        for (queue, reading) in &readings.queues {
            rows.entry(queues.name(queue)).or_default().add(*reading);
        }
        self.running.clear();
        self.oldest.clear();
        self.wanted.clear();
        self.got.clear();
        for (queue, row) in rows {
            let labels = [("queue", queue.to_owned())];
            let ratio = |permille: u32| f64::from(permille) / PERMILLE;
            self.running.get_or_create(&labels).set(number(row.running));
            self.oldest.get_or_create(&labels).set(number(row.oldest_s));
            let wanted = self.wanted.get_or_create(&labels);
            wanted.set(ratio(row.wanted_permille));
            self.got.get_or_create(&labels).set(ratio(row.got_permille));
        }
    }

    fn set_hosts(&self, hosts: &BTreeMap<(String, String), u64>, most: usize) {
        let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, group), hosts) in hosts {
            *sizes.entry(group).or_default() += hosts;
        }
        let groups = Named::most(&sizes, most);
        let mut rows: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for ((state, group), hosts) in hosts {
            *rows.entry((state, groups.name(group))).or_default() += hosts;
        }
        self.hosts.clear();
        for ((state, group), hosts) in rows {
            let labels = [("state", state.to_owned()), ("group", group.to_owned())];
            self.hosts.get_or_create(&labels).set(number(hosts));
        }
    }
}

/// Names that have their own series.
struct Named<'a>(Vec<&'a str>);

impl<'a> Named<'a> {
    /// Returns the names with the largest counts.
    fn most(counts: &BTreeMap<&'a str, u64>, most: usize) -> Self {
        let mut names: Vec<&str> = counts.keys().copied().collect();
        names.sort_by_key(|name| (std::cmp::Reverse(counts.get(name).copied()), *name));
        names.truncate(most);
        names.sort_unstable();
        Self(names)
    }

    fn name<'b>(&self, name: &'b str) -> &'b str {
        if self.0.binary_search(&name).is_ok() {
            name
        } else {
            OTHER
        }
    }
}

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(readings: &Readings, is_named: bool) -> String {
        let gauges = LabGauges::default();
        let mut registry = Registry::default();
        gauges.register(&mut registry);
        gauges.set(readings, is_named);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    fn readings(queues: usize) -> Readings {
        let mut all = Readings::default();
        for n in 0..queues {
            let name = format!("q{n:03}");
            let reading = QueueReading {
                got_permille: 10,
                ..QueueReading::default()
            };
            all.waiting.insert((name.clone(), "host"), n as u64 + 1);
            all.queues.insert(name, reading);
        }
        all.hosts.insert(("idle".to_owned(), "g".to_owned()), 7);
        all
    }

    #[test]
    fn queues_with_few_jobs_share_a_series() {
        let text = shown(&readings(METRIC_NAMES_MAX + 2), true);
        let series = text.matches("jobs_waiting{").count();
        assert_eq!(series, METRIC_NAMES_MAX + 1, "{text}");
        assert!(text.contains("jobs_waiting{queue=\"other\",reason=\"host\"} 3"));
        assert!(text.contains("queue_share_got_ratio{queue=\"other\"} 0.02"));
        assert!(text.contains("hosts{state=\"idle\",group=\"g\"} 7"));
    }

    #[test]
    fn strangers_see_sums_and_no_names() {
        let text = shown(&readings(2), false);
        assert!(text.contains("jobs_waiting{queue=\"other\",reason=\"host\"} 3"));
        assert!(text.contains("hosts{state=\"idle\",group=\"other\"} 7"));
        assert!(!text.contains("q001"), "{text}");
    }
}
