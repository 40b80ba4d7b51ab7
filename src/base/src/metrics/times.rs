//! How long things took: waits and runs of jobs, claims, requests to this replica and to the store. And refusals.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use fairlead_api::{Endpoint, ErrorCode};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Bounds of the buckets for waits and runs of jobs, s: from a tenth of a second to a week.
const JOB_TIMES_S: [f64; 14] = [
    0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 10_800.0, 28_800.0, 86_400.0,
    604_800.0,
];
/// Bounds of the buckets for requests to the store and for claims, s.
const STORE_TIMES_S: [f64; 13] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 10.0, 30.0,
];
/// Bounds of the buckets for requests to this replica, s. Requests that wait for work or for changes are among them.
const HTTP_TIMES_S: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Classes of queues as label values.
const CLASSES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// One label and its value.
pub(super) type Label = [(&'static str, &'static str); 1];

type Times<const N: usize> =
    Family<[(&'static str, &'static str); N], Histogram, fn() -> Histogram>;

/// Metrics of requests to the store.
#[derive(Debug, Clone)]
pub struct StoreTimes {
    seconds: Times<2>,
    in_flight: Family<Label, Gauge>,
    all_in_flight: Arc<AtomicI64>,
}

impl StoreTimes {
    fn new() -> Self {
        Self {
            seconds: Family::new_with_constructor(|| Histogram::new(STORE_TIMES_S)),
            in_flight: Family::default(),
            all_in_flight: Arc::default(),
        }
    }

    /// Counts a request of this kind that begins (1) or has ended (-1).
    pub fn in_flight(&self, kind: &'static str, by: i64) {
        self.in_flight.get_or_create(&[("kind", kind)]).inc_by(by);
        self.all_in_flight.fetch_add(by, Ordering::Relaxed);
    }

    /// Returns the number of requests of all kinds that are not answered yet.
    pub fn all_in_flight(&self) -> u64 {
        u64::try_from(self.all_in_flight.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Notes the result and the time of a request of this kind.
    pub fn ended(&self, kind: &'static str, result: &'static str, took: Duration) {
        let labels = [("kind", kind), ("result", result)];
        let time = self.seconds.get_or_create(&labels);
        time.observe(took.as_secs_f64());
    }
}

/// Metrics of all times.
#[derive(Debug)]
pub struct AllTimes {
    waits: Times<1>,
    runs: Times<1>,
    claims: Histogram,
    http: Times<3>,
    refusals: Family<Label, Counter>,
    /// Metrics of requests to the store.
    pub store: StoreTimes,
}

impl AllTimes {
    pub(super) fn new() -> Self {
        let all = Self {
            waits: Family::new_with_constructor(|| Histogram::new(JOB_TIMES_S)),
            runs: Family::new_with_constructor(|| Histogram::new(JOB_TIMES_S)),
            claims: Histogram::new(STORE_TIMES_S),
            http: Family::new_with_constructor(|| Histogram::new(HTTP_TIMES_S)),
            refusals: Family::default(),
            store: StoreTimes::new(),
        };
        // An alert needs the first one, too: a number that appears did not grow.
        let full = [("code", ErrorCode::DataFull.as_str())];
        drop(all.refusals.get_or_create(&full));
        all
    }

    pub(super) fn register(&self, to: &mut Registry) {
        let mut seconds = |name: &str, help: &str, times: Times<1>| {
            to.register_with_unit(name, help, Unit::Seconds, times);
        };
        let help = "Time from when a job could run until a host got it, by the class of its queue";
        seconds("wait", help, self.waits.clone());
        let help = "Time from dispatch to end of an attempt, by its health";
        seconds("run", help, self.runs.clone());
        let help = "Time that a claim took at the store, with all that went along in its batch";
        to.register_with_unit("claim", help, Unit::Seconds, self.claims.clone());
        let help = "Time until the head of an answer was ready. Requests that wait for work or changes take as long as they wait";
        to.register_with_unit("http_request", help, Unit::Seconds, self.http.clone());
        let help = "Time of requests to the store by kind and result";
        let store = self.store.seconds.clone();
        to.register_with_unit("store_request", help, Unit::Seconds, store);
        let help = "Requests to the store that are not answered yet, by kind";
        to.register(
            "store_requests_in_flight",
            help,
            self.store.in_flight.clone(),
        );
        let help = "Refused requests by the code of the error";
        to.register("refusals", help, self.refusals.clone());
    }

    /// Notes the time that a job of a queue of this class could run before a host got it, ms.
    pub fn waited(&self, class: u8, ms: u64) {
        let class = CLASSES.get(usize::from(class)).copied().unwrap_or("9");
        let time = self.waits.get_or_create(&[("class", class)]);
        time.observe(Duration::from_millis(ms).as_secs_f64());
    }

    /// Notes the end of an attempt with this health, and the time since its dispatch, ms.
    pub fn ran(&self, health: &'static str, ms: u64) {
        let time = self.runs.get_or_create(&[("health", health)]);
        time.observe(Duration::from_millis(ms).as_secs_f64());
    }

    /// Notes the time in which a batch of claims was answered.
    pub fn claimed(&self, took: Duration) {
        self.claims.observe(took.as_secs_f64());
    }

    /// Notes the time in which a request was answered. `endpoint`: `None` if no such path exists.
    pub fn answered(&self, endpoint: Option<&Endpoint>, status: u16, took: Duration) {
        let method = endpoint.and_then(|endpoint| endpoint.methods.first().copied());
        let labels = [
            ("method", method.unwrap_or("other")),
            ("path", endpoint.map_or("other", |endpoint| endpoint.path)),
            ("status", class_of(status)),
        ];
        let time = self.http.get_or_create(&labels);
        time.observe(took.as_secs_f64());
    }

    /// Notes a job of a submit that was refused with this code.
    pub fn refused_item(&self, code: &str) {
        let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
        if let Some(known) = known {
            self.refused(*known);
        }
    }

    /// Notes a request that was refused with this code.
    pub fn refused(&self, code: ErrorCode) {
        self.refusals
            .get_or_create(&[("code", code.as_str())])
            .inc();
    }
}

const fn class_of(status: u16) -> &'static str {
    match status {
        0..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}
