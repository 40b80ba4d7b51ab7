//! The options that name jobs, and the jobs that they find.

use fairlead_api::{
    JobSummary,
    client::{Client, JobQuery},
};
use fairlead_job::{Health, Stage};

use super::condition::Condition;
use crate::{amounts::length_ms, clock, context::Context, exit::Failure, words::quoted};

/// Maximum number of jobs that a command acts on at once.
pub(crate) const MATCHES_MAX: usize = 10_000;
/// Number of jobs in one request.
const PAGE_JOBS: u32 = 500;

/// Which jobs. Filters may hold several words with commas.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Which jobs")]
pub(crate) struct Selector {
    /// Ids of jobs, or parameters that jobs must have, such as mode=read
    #[arg(value_name = "ID|KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// Only jobs of this submit
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) submit_id: Vec<String>,
    /// Only jobs of this suite
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    suite: Vec<String>,
    /// Only jobs of this account
    #[arg(long, value_name = "ACCOUNT", value_delimiter = ',')]
    of: Vec<String>,
    /// Only your own jobs
    #[arg(long, conflicts_with = "of")]
    mine: bool,
    /// Only jobs of this queue, or with this label
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    queue: Vec<String>,
    /// Only jobs that this host has or had
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    host: Vec<String>,
    /// Only jobs of this stage: submit, dispatch, boot, setup, running, finish, cancel …; with '!' before it all others
    #[arg(long, value_name = "STAGE", value_delimiter = ',')]
    stage: Vec<String>,
    /// Only jobs of this health: unknown, success, fail, cancel, oom …; with '!' before it all others
    #[arg(long, value_name = "HEALTH", value_delimiter = ',')]
    health: Vec<String>,
    /// Only jobs that failed
    #[arg(long, conflicts_with = "health")]
    pub(crate) failed: bool,
    /// Only jobs of this group
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    group_id: Vec<String>,
    /// Only jobs of this sequence
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    sequence: Vec<String>,
    /// Only jobs for this group of testboxes
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tbox_group: Vec<String>,
    /// Only jobs with this kernel crash; '*' at its end: all that begin so
    #[arg(long, value_name = "TITLE")]
    signature: Option<String>,
    /// Only jobs submitted within this time: 90s, 10m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    since: Option<u64>,
    /// Only jobs submitted before this time ago: 90s, 10m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    until: Option<u64>,
    /// Only jobs that meet this, such as 'threads>4' or 'seconds>=60'; may be repeated
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<Condition>,
}

/// Jobs that were found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) jobs: Vec<JobSummary>,
    /// Number of jobs that match the filters without the conditions.
    pub(crate) total: u64,
    /// Number of older jobs that searches by parameters cannot find.
    pub(crate) unsearched: u64,
    /// Position of the next page.
    pub(crate) next: Option<String>,
}

impl Selector {
    /// Returns the parameters among the words.
    fn parameters(&self) -> impl Iterator<Item = &String> {
        self.words.iter().filter(|word| word.contains('='))
    }

    /// Returns the ids among the words. A command with ids takes no other jobs.
    pub(crate) fn ids(&self) -> Vec<String> {
        let ids = self.words.iter().filter(|word| !word.contains('='));
        ids.cloned().collect()
    }

    /// Returns true if there are only ids, or nothing. Each command handles `--failed` beside ids by itself.
    pub(crate) fn is_plain(&self) -> bool {
        let lists = [
            &self.submit_id,
            &self.suite,
            &self.of,
            &self.queue,
            &self.host,
            &self.stage,
            &self.health,
            &self.group_id,
            &self.sequence,
            &self.tbox_group,
        ];
        lists.iter().all(|list| list.is_empty())
            && self.parameters().next().is_none()
            && self.conditions.is_empty()
            && self.signature.is_none()
            && self.since.is_none()
            && self.until.is_none()
            && !self.mine
            && (!self.failed || !self.ids().is_empty())
    }

    /// Returns true if there are conditions, which only this command can check.
    pub(crate) fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Returns true if there are neither ids nor filters.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.is_plain()
    }

    /// Returns the command-line words with the same meaning.
    pub(crate) fn said(&self) -> String {
        let lists = [
            ("--submit-id", &self.submit_id),
            ("--suite", &self.suite),
            ("--of", &self.of),
            ("--queue", &self.queue),
            ("--host", &self.host),
            ("--stage", &self.stage),
            ("--health", &self.health),
            ("--group-id", &self.group_id),
            ("--sequence", &self.sequence),
            ("--tbox-group", &self.tbox_group),
        ];
        let mut words: Vec<String> = Vec::new();
        for (option, values) in lists {
            if !values.is_empty() {
                words.extend([option.to_owned(), values.join(",")]);
            }
        }
        for (option, is_said) in [("--mine", self.mine), ("--failed", self.failed)] {
            words.extend(is_said.then(|| option.to_owned()));
        }
        let seconds = |ms: u64| format!("{}s", ms / 1000);
        let single = [
            ("--signature", self.signature.clone()),
            ("--since", self.since.map(seconds)),
            ("--until", self.until.map(seconds)),
        ];
        for (option, value) in single {
            words.extend(
                value
                    .into_iter()
                    .flat_map(|value| [option.to_owned(), value]),
            );
        }
        for condition in &self.conditions {
            words.extend(["--where".to_owned(), condition.to_string()]);
        }
        words.extend(self.words.iter().cloned());
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    /// Fails if the command line names no jobs, or ids beside filters.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_empty() {
            return Err(Failure::usage(
                "no job is named",
                "give ids, or filters such as --submit-id ID, --suite NAME or --mine",
            ));
        }
        if !self.is_plain() && !self.ids().is_empty() {
            return Err(Failure::usage(
                format!("ids ({}) and filters are both given", self.ids().join(", ")),
                "give ids, or filters; a parameter is KEY=VALUE",
            ));
        }
        Ok(())
    }

    /// Returns the filters as a query. The account from the flags is only a filter of lists.
    pub(crate) async fn query(
        &self,
        context: &Context,
        client: &Client,
    ) -> Result<JobQuery, Failure> {
        let mut account = self.of.clone();
        if self.mine {
            account.extend(context.own_account(&context.settings()?, client).await?);
        }
        let health = if self.failed {
            failures()
        } else {
            self.health.clone()
        };
        let ago = |ms: u64| clock::now_ms().saturating_sub(ms);
        Ok(JobQuery {
            stage: self.stage.clone(),
            health,
            account,
            queue: self.queue.clone(),
            host: self.host.clone(),
            suite: self.suite.clone(),
            submit_id: self.submit_id.clone(),
            group_id: self.group_id.clone(),
            sequence: self.sequence.clone(),
            tbox_group: self.tbox_group.clone(),
            kv: self.parameters().cloned().collect(),
            with_kv: !self.conditions.is_empty(),
            signature: self.signature.clone(),
            since_ms: self.since.map(ago),
            until_ms: self.until.map(ago),
            ..JobQuery::default()
        })
    }

    /// Returns the given ids, or those of the jobs that the filters find.
    pub(crate) async fn named(
        &self,
        context: &Context,
        client: &Client,
    ) -> Result<Vec<String>, Failure> {
        self.check()?;
        if self.is_plain() {
            return Ok(self.ids());
        }
        let found = self.find(context, client, |query| query).await?;
        context
            .output
            .remark(&format!("{} jobs match", found.jobs.len()));
        Ok(found.jobs.into_iter().map(|job| job.job_id).collect())
    }

    /// Returns all jobs that the filters find, oldest first. Fails for more than [`MATCHES_MAX`].
    pub(crate) async fn find(
        &self,
        context: &Context,
        client: &Client,
        wanted: impl FnOnce(JobQuery) -> JobQuery,
    ) -> Result<Found, Failure> {
        let query = JobQuery {
            order: Some("oldest".to_owned()),
            // A shard is stopped and rerun with its parent.
            parts: Some("no_shards".to_owned()),
            ..self.query(context, client).await?
        };
        let found = self.collect(client, wanted(query), MATCHES_MAX).await?;
        if found.next.is_some() {
            return Err(Failure::usage(
                format!(
                    "{} jobs match; at most {MATCHES_MAX} are taken at once",
                    found.total
                ),
                "narrow the filters, for example by --submit-id or --since",
            ));
        }
        Ok(found)
    }

    /// Returns the jobs of a query that meet the conditions. At most `most` jobs are requested.
    pub(crate) async fn collect(
        &self,
        client: &Client,
        mut query: JobQuery,
        most: usize,
    ) -> Result<Found, Failure> {
        let mut found = Found {
            jobs: Vec::new(),
            total: 0,
            unsearched: 0,
            next: None,
        };
        let mut asked = 0;
        // Conditions exclude jobs, so more must be read to get as many that meet them.
        let wanted = most;
        let most = if self.conditions.is_empty() {
            most
        } else {
            most.max(MATCHES_MAX)
        };
        loop {
            let left = u32::try_from(most.saturating_sub(asked)).unwrap_or(u32::MAX);
            query.limit = Some(left.min(PAGE_JOBS));
            let page = client.jobs(&query).await?;
            asked += page.jobs.len();
            found.total = page.total;
            found.unsearched = page.unsearched.unwrap_or(0);
            found.next.clone_from(&page.next);
            let is_last = page.next.is_none() || page.jobs.is_empty() || asked >= most;
            let met = |job: &JobSummary| self.conditions.iter().all(|one| one.is_met(job));
            found.jobs.extend(page.jobs.into_iter().filter(met));
            if is_last || found.jobs.len() >= wanted {
                found.jobs.truncate(wanted);
                return Ok(found);
            }
            query.after = page.next;
        }
    }
}

/// Returns all healths of failed jobs.
pub(crate) fn failures() -> Vec<String> {
    let failed = Health::ALL.iter().filter(|health| health.cause().is_some());
    failed.map(ToString::to_string).collect()
}

/// Returns the stages in which a testbox has a job.
pub(crate) fn held_stages() -> Vec<String> {
    let held = Stage::ALL.iter().filter(|stage| stage.is_held());
    held.map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(words: &[&str]) -> Selector {
        Selector {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Selector::default()
        }
    }

    #[test]
    fn ids_and_filters_are_told_apart() {
        assert!(selector(&[]).check().is_err());
        assert!(selector(&["1", "2"]).check().is_ok());
        assert!(selector(&["nr_threads=4"]).check().is_ok());
        assert!(selector(&["1", "nr_threads=4"]).check().is_err());
        let failed = Selector {
            failed: true,
            ..selector(&["1"])
        };
        assert!(failed.is_plain() && failed.check().is_ok());
        let failed = Selector {
            failed: true,
            ..selector(&[])
        };
        assert!(!failed.is_plain() && failed.check().is_ok());
    }

    #[test]
    fn a_selector_is_said_as_it_was_given() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            selector: Selector,
        }
        let line = [
            "--submit-id 0199-a,0199-b --suite unixbench --mine",
            "--failed --since 7200s --where 'seconds>=60' mode=read",
            "--signature 'BUG: sleeping*' --health '!success'",
            "2611280101234500001",
        ];
        for said in line {
            let plain = said.replace('\'', "");
            let words = match said.split_once(" '") {
                Some(_) => shell_words(said),
                None => plain.split(' ').map(str::to_owned).collect(),
            };
            let words = std::iter::once("fairlead".to_owned()).chain(words);
            let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
            let again = line.selector.said();
            let words = std::iter::once("fairlead".to_owned()).chain(shell_words(&again));
            let twice = <Line as clap::Parser>::try_parse_from(words).unwrap();
            assert_eq!(twice.selector.said(), again);
            assert_eq!(again.split(' ').count(), said.split(' ').count(), "{again}");
        }
    }

    /// Splits a line into words, some of them in single quotes.
    fn shell_words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (n, part) in line.split('\'').enumerate() {
            if n % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    #[test]
    fn neither_success_nor_a_cancel_is_a_failure() {
        let failures = failures();
        assert!(failures.contains(&"fail".to_owned()) && failures.len() > 5);
        for word in ["success", "unknown", "cancel"] {
            assert!(!failures.contains(&word.to_owned()), "{word}");
        }
    }
}
