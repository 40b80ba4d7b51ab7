//! Compares two documents per job, state and body, with one document, by Elasticsearch alone.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{
    figure::{Figure, Goal},
    raw::{Raw, cpu_s},
    sample::{Run, Sample},
};
use fairlead_cluster::launch::Process;

/// Of a bulk: jobs that are created or claimed.
const BATCH: usize = 100;
/// About how large a body is, bytes: those of lkp-tests' jobs have 5,000 to 15,000.
const BODY_BYTES: usize = 8_000;
/// States that one pull reads, at most.
const PULL: usize = 1_000;

/// Both layouts side by side, ours first.
#[derive(Debug)]
pub(super) struct Layouts {
    creates: Figure,
    claims: Figure,
    claim_cpu: Figure,
    pull: Figure,
    /// Where jobs of one document are.
    whole: String,
    /// What all bodies hold.
    filling: String,
}

/// What one layout took.
struct Took {
    creates: f64,
    claims: f64,
    claim_cpu_micros: f64,
    pull_ms: f64,
}

impl Layouts {
    /// Makes the index for jobs of one document.
    pub(super) async fn new(raw: &Raw, sample: &Sample) -> anyhow::Result<Self> {
        let whole = sample.jobs_index.replace("-jobs-", "-whole-");
        let body = json!({"type": "object", "enabled": false});
        raw.copy_index(&sample.jobs_index, &whole, &[("body", body)])
            .await?;
        let figure = |what: &str, of: &str| {
            let what = format!("{what} of 8 kB, two documents a job, Elasticsearch alone");
            Figure::new(what, of, Goal::None)
        };
        let mut filling = String::new();
        let mut n: u64 = 1;
        while filling.len() < BODY_BYTES {
            // As compressible as text is, and not more.
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let _ = write!(filling, "{:x} ", n >> 40);
        }
        Ok(Self {
            creates: figure("creates/s", "one document"),
            claims: figure("claims/s", "one document"),
            claim_cpu: figure("processor time a claim, µs,", "one document"),
            pull: figure("reading 1,000 states, ms,", "one document"),
            whole,
            filling,
        })
    }

    pub(super) fn all(self) -> [Figure; 4] {
        [self.creates, self.claims, self.claim_cpu, self.pull]
    }

    /// Measures both once more.
    pub(super) async fn measure(
        &mut self,
        raw: &Raw,
        sample: &Sample,
        elasticsearch: &[Process],
        count: usize,
    ) -> anyhow::Result<()> {
        let (run, filling) = (sample.next_run(), &self.filling);
        let two = |n: usize| sample.create_filled(run, n, filling);
        let index = &sample.jobs_index;
        let two = took(raw, sample, run, (index, count), (2, &two), elasticsearch).await?;
        let (run, whole) = (sample.next_run(), &self.whole);
        let one = |n: usize| sample.create_whole(run, n, whole, filling);
        let one = took(raw, sample, run, (whole, count), (1, &one), elasticsearch).await?;
        self.creates.push(two.creates, one.creates);
        self.claims.push(two.claims, one.claims);
        self.claim_cpu
            .push(two.claim_cpu_micros, one.claim_cpu_micros);
        self.pull.push(two.pull_ms, one.pull_ms);
        Ok(())
    }
}

async fn took(
    raw: &Raw,
    sample: &Sample,
    run: Run,
    (index, count): (&str, usize),
    (documents, create): (usize, &dyn Fn(usize) -> String),
    elasticsearch: &[Process],
) -> anyhow::Result<Took> {
    let (creates, states) = raw.create_by(count, BATCH, documents, create).await?;
    raw.refresh(index).await?;
    let query = pull(&run.id(0), count.min(PULL));
    let pull_ms = raw.search_ms(index, &query).await?;
    let before = cpu_s(elasticsearch);
    let claim = |n: usize, version| sample.claim_in(index, run, n, version);
    let claims = raw.claim_by(&states, BATCH, claim).await?;
    let used_s = cpu_s(elasticsearch) - before;
    Ok(Took {
        creates,
        claims,
        claim_cpu_micros: used_s * 1e6 / f64::from(u32::try_from(count)?),
        pull_ms,
    })
}

/// States in the order of their ids, without bodies.
fn pull(from: &str, size: usize) -> Value {
    json!({
        "size": size, "track_total_hits": false, "seq_no_primary_term": true,
        "_source": {"excludes": ["body"]}, "query": {"range": {"job_id": {"gte": from}}},
        "sort": [{"job_id": "asc"}],
    })
}
