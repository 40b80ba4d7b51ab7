//! The options that name jobs, and the jobs that they find.

use fairlead_api::{
    JobSummary,
    client::{Client, JobQuery},
};
use fairlead_job::Health;

use super::condition::Condition;
use crate::{amounts::length_ms, clock, context::Context, exit::Failure};

/// Most jobs that a command acts on at once.
pub(crate) const MATCHES_MAX: usize = 10_000;
/// Jobs of one request.
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

/// The jobs that were found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) jobs: Vec<JobSummary>,
    /// How many match but for conditions.
    pub(crate) total: u64,
    /// How many older jobs no search by parameters knows.
    pub(crate) unsearched: u64,
    /// Where the next page begins.
    pub(crate) next: Option<String>,
}

impl Selector {
    /// The parameters among the words.
    fn parameters(&self) -> impl Iterator<Item = &String> {
        self.words.iter().filter(|word| word.contains('='))
    }

    /// The ids among the words, for a command that means no others then.
    pub(crate) fn ids(&self) -> Vec<String> {
        let ids = self.words.iter().filter(|word| !word.contains('='));
        ids.cloned().collect()
    }

    /// Whether nothing but ids, or nothing at all, is said. `--failed` beside ids is the command's own business.
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

    /// Whether neither ids nor filters are said.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.is_plain()
    }

    /// Refuses a command line that names no jobs, or ids beside filters.
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

    /// The filters as a query. An account that the flags name counts for a list only.
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

    /// The ids that are given, or those of the jobs that the filters find.
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

    /// All jobs that the filters find, oldest first. More than [`MATCHES_MAX`] are refused.
    pub(crate) async fn find(
        &self,
        context: &Context,
        client: &Client,
        wanted: impl FnOnce(JobQuery) -> JobQuery,
    ) -> Result<Found, Failure> {
        let query = JobQuery {
            order: Some("oldest".to_owned()),
            // A shard is stopped and run again with its parent.
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

    /// The jobs of a query that meet the conditions. At most `most` are asked for.
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
        // Conditions leave jobs out: of those that meet them as many are wanted.
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

/// All healths of jobs that failed.
fn failures() -> Vec<String> {
    let failed = Health::ALL.iter().filter(|health| health.cause().is_some());
    failed.map(ToString::to_string).collect()
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
    fn neither_success_nor_a_cancel_is_a_failure() {
        let failures = failures();
        assert!(failures.contains(&"fail".to_owned()) && failures.len() > 5);
        for word in ["success", "unknown", "cancel"] {
            assert!(!failures.contains(&word.to_owned()), "{word}");
        }
    }
}
