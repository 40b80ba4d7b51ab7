//! Compares three layouts of a job, by Elasticsearch alone: two indices, both documents in one index, one document.
//!
//! The rounds measure the layouts in turns, and each round begins with another layout. All merges of a layout end before
//! the next one begins.

mod forms;

use futures_util::TryStreamExt;
use serde_json::{Value, json};

use self::forms::{Form, Layout, Texts};
use super::{
    figure::{Figure, Goal, Series},
    raw::{Raw, Version, cpu_s, in_batches, rate, versions},
    report::Report,
    sample::{Run, Sample},
};
use fairlead_cluster::{clock::now, launch::Process};

/// Number of created or claimed jobs in a bulk.
const BATCH: usize = 100;
/// Number of changed jobs before a refresh is timed.
const CHANGES: usize = 1_000;
/// Maximum number of states in one pull.
const PULL: usize = 1_000;
/// Number of pulls in a round.
const PULLS: usize = 5;
/// Maximum number of ended jobs in a bulk, and maximum size of its bodies, bytes. Elasticsearch refuses requests larger
/// than a tenth of its memory.
const FILL: usize = 2_000;
const FILL_BYTES: usize = 4_000_000;
/// Number of progress messages of a filling.
const FILL_TELLS: usize = 10;
/// Measured creates: clients, jobs in a request, and the fraction (1 in N) of all jobs that they create.
const CREATES: [(usize, usize, usize); 3] = [(1, 1, 10), (16, 1, 1), (4, BATCH, 1)];
const BYTES_OF_MB: f64 = 1e6;

/// All layouts beside the present one.
#[derive(Debug)]
pub(super) struct Layouts {
    forms: Vec<Form>,
    texts: Texts,
    figures: Vec<Figure>,
    /// Number of rounds. The nth round begins with the nth layout.
    rounds: usize,
}

/// Measurements of a layout, in the same order for all.
type Took = Vec<(String, f64)>;

/// Elasticsearch, the documents, and the measured processes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alone<'a> {
    pub(super) raw: &'a Raw,
    pub(super) sample: &'a Sample,
    pub(super) elasticsearch: &'a [Process],
}

impl Layouts {
    /// Creates the indices of all layouts, for bodies of this size.
    pub(super) async fn new(alone: Alone<'_>, body_bytes: usize) -> anyhow::Result<Self> {
        let mut forms = Vec::new();
        for layout in Layout::ALL {
            forms.push(Form::make(alone.raw, alone.sample, layout).await?);
        }
        let (texts, figures) = (Texts::new(body_bytes), Vec::new());
        Ok(Self {
            forms,
            texts,
            figures,
            rounds: 0,
        })
    }

    /// Stores `count` ended jobs in each layout.
    pub(super) async fn fill(
        &mut self,
        alone: Alone<'_>,
        count: usize,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let mut all = Vec::new();
        for form in &self.forms {
            say(&format!("{}: {count} jobs have ended", form.layout));
            all.push(filled(alone, form, &self.texts, count, say).await?);
        }
        self.push(all);
        Ok(())
    }

    /// Measures all layouts once more, with `count` jobs. Unless `is_kept`, it is only a warm-up.
    pub(super) async fn measure(
        &mut self,
        alone: Alone<'_>,
        count: usize,
        is_kept: bool,
    ) -> anyhow::Result<()> {
        let first = self.rounds % self.forms.len();
        let mut all = Vec::new();
        for nth in 0..self.forms.len() {
            let at = (first + nth) % self.forms.len();
            if let Some(form) = self.forms.get(at) {
                all.push((at, took(alone, form, &self.texts, count).await?));
            }
        }
        if is_kept {
            self.rounds += 1;
            all.sort_unstable_by_key(|(at, _)| *at);
            self.push(all.into_iter().map(|(_, took)| took).collect());
        }
        Ok(())
    }

    /// Adds a round: each other layout beside the first.
    fn push(&mut self, all: Vec<Took>) {
        let bytes = self.texts.bytes();
        let mut all = all.into_iter().zip(Layout::ALL);
        let Some((first, limit)) = all.next() else {
            return;
        };
        for (took, layout) in all {
            for ((what, ours), (_, theirs)) in took.into_iter().zip(&first) {
                let what =
                    format!("Elasticsearch alone, bodies of {bytes} bytes, {layout}: {what}");
                let known = self.figures.iter().position(|figure| figure.what == what);
                let at = known.unwrap_or(self.figures.len());
                if known.is_none() {
                    let figure = Figure::new(what, limit.to_string(), Goal::None);
                    self.figures.push(figure);
                }
                if let Some(figure) = self.figures.get_mut(at) {
                    figure.push(ours, *theirs);
                }
            }
        }
    }

    /// Returns all figures, with the merges of all rounds. Large merges are rare, so not every round has one.
    pub(super) async fn report(mut self, alone: Alone<'_>) -> anyhow::Result<Report> {
        let mut all = Vec::new();
        for form in &self.forms {
            let (merged_ms, _) = alone.raw.merged_and_stored(&form.indices()).await?;
            all.push(vec![("s of all merges".to_owned(), merged_ms / 1_000.0)]);
        }
        self.push(all);
        Ok(Report {
            figures: self.figures,
            ..Report::default()
        })
    }
}

/// Stores ended jobs as fast as possible, without refreshes meanwhile.
async fn filled(
    alone: Alone<'_>,
    form: &Form,
    texts: &Texts,
    count: usize,
    say: &dyn Fn(&str),
) -> anyhow::Result<Took> {
    let (raw, run) = (alone.raw, alone.sample.next_run());
    let before = (cpu_s(alone.elasticsearch), now());
    raw.refresh_every(&form.states, "-1").await?;
    let line = |n: usize| form.create_ended(&run.id(n), texts.of(n));
    let batch = (FILL_BYTES / texts.bytes().max(1)).clamp(1, FILL);
    let mut bulks = raw.pour(count, batch, &line);
    let (mut there, mut told) = (0, 0);
    while let Some(more) = bulks.try_next().await? {
        there += more;
        if there * FILL_TELLS / count > told {
            told = there * FILL_TELLS / count;
            say(&format!("{}: {there} of {count} jobs", form.layout));
        }
    }
    let seconds = before.1.elapsed().as_secs_f64();
    raw.refresh_every(&form.states, "1s").await?;
    raw.refresh(&form.indices()).await?;
    raw.wait_merged(&form.indices()).await?;
    let used_s = cpu_s(alone.elasticsearch) - before.0;
    let (merged_ms, bytes) = raw.merged_and_stored(&form.indices()).await?;
    let what = |what: &str| format!("{count} ended jobs are stored, {what}");
    Ok(vec![
        (what("jobs/s"), rate(count, seconds)),
        (what("µs of processor time a job"), each_us(used_s, count)),
        (what("s of merges"), merged_ms / 1_000.0),
        (what("MB on disk after merges"), bytes / BYTES_OF_MB),
    ])
}

/// Runs one round of one layout.
async fn took(alone: Alone<'_>, form: &Form, texts: &Texts, count: usize) -> anyhow::Result<Took> {
    let one = One {
        alone,
        form,
        texts,
        run: alone.sample.next_run(),
    };
    let indices = form.indices();
    let (before_ms, _) = alone.raw.merged_and_stored(&indices).await?;
    let before_s = cpu_s(alone.elasticsearch);
    let mut took = Vec::new();
    let (mut from, mut last) = (0, Vec::new());
    for (clients, each, part) in CREATES {
        let count = count.div_ceil(part);
        last = one.create(from, count, clients, each, &mut took).await?;
        from += count;
    }
    one.pull(&mut took).await?;
    one.claim(from - last.len(), &last, &mut took).await?;
    one.refresh(from, &mut took).await?;
    alone.raw.wait_merged(&indices).await?;
    let (merged_ms, bytes) = alone.raw.merged_and_stored(&indices).await?;
    let merged_ms = merged_ms - before_ms;
    let used_s = cpu_s(alone.elasticsearch) - before_s;
    let whole = "processor time of the round with its merges, µs a job".to_owned();
    took.push((whole, each_us(used_s, from + CHANGES)));
    took.push(("ms of merges in the round".to_owned(), merged_ms));
    took.push(("MB on disk after the round".to_owned(), bytes / BYTES_OF_MB));
    Ok(took)
}

fn each_us(seconds: f64, count: usize) -> f64 {
    1e6 / rate(count, seconds)
}

/// One round of one layout. Its jobs have their own ids.
struct One<'a> {
    alone: Alone<'a>,
    form: &'a Form,
    texts: &'a Texts,
    run: Run,
}

impl One<'_> {
    /// Sends bulks that create jobs. Returns the versions of their states.
    async fn created(
        &self,
        (from, count): (usize, usize),
        (clients, each): (usize, usize),
    ) -> anyhow::Result<(f64, Series, Vec<Version>)> {
        let bulks = in_batches(count, each, |n| {
            let n = from + n;
            self.form.create(&self.run.id(n), self.texts.of(n))
        });
        let (seconds, answers, took_ms) = self.alone.raw.send_by(clients, bulks).await?;
        let states = self.form.of_states(versions(answers)?);
        Ok((seconds, took_ms, states))
    }

    async fn create(
        &self,
        from: usize,
        count: usize,
        clients: usize,
        each: usize,
        took: &mut Took,
    ) -> anyhow::Result<Vec<Version>> {
        let before = cpu_s(self.alone.elasticsearch);
        let created = self.created((from, count), (clients, each)).await?;
        let used_s = cpu_s(self.alone.elasticsearch) - before;
        let (seconds, took_ms, states) = created;
        let what = |what: &str| format!("{what}, {clients} clients, {each} a request");
        took.push((what("creates/s"), rate(count, seconds)));
        if each == 1 {
            took.push((what("p50 ms of a create"), took_ms.median()));
            took.push((what("p99 ms of a create"), took_ms.p99()));
        }
        took.push((what("processor time a create, µs"), each_us(used_s, count)));
        Ok(states)
    }

    /// Reads waiting states, as a pull does.
    async fn pull(&self, took: &mut Took) -> anyhow::Result<()> {
        self.alone.raw.refresh(&self.form.states).await?;
        let (mut pulls, pull) = (Series::default(), pull());
        for _ in 0..PULLS {
            let took = self.alone.raw.search_ms(&self.form.states, &pull);
            pulls.push(took.await?);
        }
        took.push((format!("reading {PULL} waiting states, ms"), pulls.median()));
        Ok(())
    }

    async fn claims(&self, from: usize, states: &[Version]) -> anyhow::Result<f64> {
        let Alone { raw, sample, .. } = self.alone;
        let claim = |n: usize, at| self.form.claim(sample, self.run, from + n, at);
        raw.claim_by(states, BATCH, claim).await
    }

    async fn claim(&self, from: usize, states: &[Version], took: &mut Took) -> anyhow::Result<()> {
        let before = cpu_s(self.alone.elasticsearch);
        let claims = self.claims(from, states).await?;
        let used_s = cpu_s(self.alone.elasticsearch) - before;
        took.push((format!("claims/s in bulks of {BATCH}"), claims));
        let each = each_us(used_s, states.len());
        took.push(("processor time a claim, µs".to_owned(), each));
        Ok(())
    }

    /// Times a refresh after creates, and one after claims of the same jobs. Bodies in a separate index are not
    /// refreshed, because nobody searches them.
    async fn refresh(&self, from: usize, took: &mut Took) -> anyhow::Result<()> {
        let (raw, index) = (self.alone.raw, &self.form.states);
        raw.refresh_every(index, "-1").await?;
        raw.refresh(index).await?;
        let (.., states) = self.created((from, CHANGES), (1, BATCH)).await?;
        for what in ["creates", "claims"] {
            if what == "claims" {
                self.claims(from, &states).await?;
            }
            let begin = now();
            raw.refresh(index).await?;
            let ms = begin.elapsed().as_secs_f64() * 1_000.0;
            took.push((format!("ms of a refresh after {CHANGES} {what}"), ms));
        }
        raw.refresh_every(index, "1s").await
    }
}

/// Returns the search for the first waiting states, without bodies.
fn pull() -> Value {
    json!({
        "size": PULL, "track_total_hits": false, "seq_no_primary_term": true,
        "_source": {"excludes": ["body"]},
        "query": {"bool": {"filter": [{"term": {"stage": "submit"}}, {"term": {"ready": true}}]}},
        "sort": [{"class": "desc"}, {"priority": "desc"}, {"job_id.number": "asc"}],
    })
}
