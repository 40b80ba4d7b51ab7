//! Names that the lab knows. One request or two, within a short time; whatever goes wrong, there are no names.

use std::{collections::BTreeSet, ffi::OsString, time::Duration};

use clap::{FromArgMatches, Parser};
use clap_complete::CompletionCandidate;
use fairlead_api::{
    JobSummary,
    client::{Client, ClientError, JobQuery},
};
use fairlead_job::{Health, Stage};

use crate::{
    selecting::held_stages,
    settings::{Environment, Flags, Settings, lab_names},
    table::{cut, harmless},
};

/// Time limit of a completion. A longer wait would look like a hang.
const ASK_LIMIT: Duration = Duration::from_millis(700);
/// Maximum number of offered jobs, newest first.
const JOBS_MAX: u32 = 100;
/// Width of the description beside a word, columns.
const HELP_WIDTH: usize = 60;

/// Kind of names to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Recent jobs.
    Jobs,
    /// Recent jobs that wait.
    Waiting,
    /// Jobs that testboxes have.
    Running,
    /// Recent submits.
    Submits,
    /// Recent jobs, after their submits.
    JobsAndSubmits,
    /// `KEY=VALUE` of recent jobs.
    Parameters,
    Suites,
    Accounts,
    Queues,
    Hosts,
    Timers,
    /// Inputs and outputs that the account has.
    Contents,
    /// No names.
    Nothing,
}

/// A word, and its description.
type Named = (String, String);

/// Returns the names of one kind.
pub(super) fn names(kind: Kind) -> Vec<CompletionCandidate> {
    let Some(client) = client(std::env::args_os()) else {
        return Vec::new();
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let asked = runtime.block_on(async {
        let asked = tokio::time::timeout(ASK_LIMIT, asked(kind, &client)).await;
        asked.unwrap_or_else(|_| Ok(Vec::new()))
    });
    runtime.shutdown_background();
    candidates(asked.unwrap_or_default())
}

/// Returns the labs that this machine knows by name.
pub(super) fn labs() -> Vec<CompletionCandidate> {
    let names = lab_names(&flags(std::env::args_os()), &Environment::of_process());
    candidates(
        names
            .into_iter()
            .map(|name| (name, String::new()))
            .collect(),
    )
}

fn candidates(names: Vec<Named>) -> Vec<CompletionCandidate> {
    // A name with a blank or a special character would not be one word in a shell.
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.@:+=/,%".contains(c))
    };
    let names = names.into_iter().filter(|(name, _)| is_word(name));
    names
        .map(|(name, help)| {
            let help = cut(&harmless(&help), HELP_WIDTH);
            let help = Some(help).filter(|help| !help.trim().is_empty());
            CompletionCandidate::new(name).help(help.map(Into::into))
        })
        .collect()
}

/// Returns the flags on the command line, as far as they can be parsed.
fn flags(words: impl Iterator<Item = OsString>) -> Flags {
    #[derive(Debug, Parser)]
    #[command(ignore_errors = true, disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }
    let given: Vec<OsString> = words.skip_while(|word| word != "--").skip(1).collect();
    // Subcommands would end the parsing of flags, so only flags and their values are kept.
    let names = [
        "--server",
        "--token",
        "--token-file",
        "--account",
        "--lab",
        "--config",
    ];
    let mut kept = vec![OsString::from("fairlead")];
    let mut words = given.into_iter().skip(1).peekable();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if names.contains(&&*text) {
            kept.push(word);
            kept.extend(words.next());
        } else if names
            .iter()
            .any(|name| text.starts_with(&format!("{name}=")))
        {
            kept.push(word);
        }
    }
    let matches = <Line as clap::CommandFactory>::command().try_get_matches_from(kept);
    let line = matches.and_then(|matches| Line::from_arg_matches(&matches));
    line.map(|line| line.flags).unwrap_or_default()
}

fn client(words: impl Iterator<Item = OsString>) -> Option<Client> {
    let settings = Settings::resolve(&flags(words), &Environment::of_process()).ok()?;
    let mut config = settings.client_config();
    config.retry_for = Duration::ZERO;
    (config.connect_timeout, config.request_timeout) = (ASK_LIMIT, ASK_LIMIT);
    Client::new(config).ok()
}

async fn asked(kind: Kind, client: &Client) -> Result<Vec<Named>, ClientError> {
    let newest = |stage: Vec<String>| JobQuery {
        stage,
        order: Some("newest".to_owned()),
        parts: Some("no_shards".to_owned()),
        limit: Some(JOBS_MAX),
        ..JobQuery::default()
    };
    let recent = async |stage: Vec<String>| {
        let list = client.jobs(&newest(stage)).await?;
        Ok::<_, ClientError>(list.jobs)
    };
    Ok(match kind {
        Kind::Jobs => recent(Vec::new()).await?.iter().map(said_of_job).collect(),
        Kind::Waiting => {
            let waiting = recent(vec![Stage::Submit.to_string()]).await?;
            waiting.iter().map(said_of_job).collect()
        }
        Kind::Running => {
            let running = recent(held_stages()).await?;
            running.iter().map(said_of_job).collect()
        }
        Kind::Submits => submits(&recent(Vec::new()).await?),
        Kind::JobsAndSubmits => {
            let jobs = recent(Vec::new()).await?;
            let mut names = submits(&jobs);
            names.extend(jobs.iter().map(said_of_job));
            names
        }
        Kind::Parameters => {
            let jobs = recent(Vec::new()).await?;
            once(jobs.iter().flat_map(|job| job.params.split(' ')))
        }
        Kind::Suites => once(
            recent(Vec::new())
                .await?
                .iter()
                .map(|job| job.suite.as_str()),
        ),
        Kind::Accounts => accounts(client, &recent(Vec::new()).await?).await,
        Kind::Queues => {
            let queues = client.queues().await?;
            once(queues.iter().map(|queue| queue.name.as_str()))
        }
        Kind::Hosts => {
            let hosts = client.hosts(&[]).await?;
            once(hosts.iter().map(|host| host.hostname.as_str()))
        }
        Kind::Timers => {
            let list = client.timers(None, None).await?;
            once(list.timers.iter().map(|timer| timer.timer.as_str()))
        }
        Kind::Contents => {
            let list = client.contents("", None, Some(u64::from(JOBS_MAX))).await?;
            let named = list.content.into_iter().map(|one| (one.id, one.name));
            named.collect()
        }
        Kind::Nothing => Vec::new(),
    })
}

/// Returns accounts with recent jobs, and those that an admin sees. An open lab lists none.
async fn accounts(client: &Client, jobs: &[JobSummary]) -> Vec<Named> {
    let accounts = client.accounts().await.unwrap_or_default();
    let known = accounts.iter().map(|account| account.my_account.as_str());
    once(known.chain(jobs.iter().map(|job| job.my_account.as_str())))
}

/// Returns a job with its stage and distinguishing data.
fn said_of_job(job: &JobSummary) -> Named {
    let how = if job.job_health == Health::Unknown {
        job.job_stage.as_str()
    } else {
        job.job_health.as_str()
    };
    let help = format!("{how} {} {}", job.suite, job.params);
    (job.job_id.clone(), help)
}

/// Returns the submits of jobs, newest first.
fn submits(jobs: &[JobSummary]) -> Vec<Named> {
    let mut names: Vec<Named> = Vec::new();
    for job in jobs.iter().filter(|job| !job.submit_id.is_empty()) {
        if names.iter().all(|(name, _)| *name != job.submit_id) {
            names.push((job.submit_id.clone(), format!("submit of {}", job.suite)));
        }
    }
    names
}

/// Returns each name once, in order.
fn once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Named> {
    let names: BTreeSet<&str> = names.collect();
    let names = names
        .into_iter()
        .map(|name| (name.to_owned(), String::new()));
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags_of(line: &str) -> Flags {
        flags(line.split(' ').map(OsString::from))
    }

    #[test]
    fn flags_on_the_line_say_which_lab_is_asked() {
        let found = flags_of(
            "fairlead -- fairlead jobs --server http://a:1 --stage running --lab=ci --of ",
        );
        assert_eq!(found.server, ["http://a:1"]);
        assert_eq!(found.lab.as_deref(), Some("ci"));
        let nothing = flags_of("fairlead -- fairlead jobs --server");
        assert!(nothing.server.is_empty());
    }

    #[test]
    fn only_whole_words_are_offered() {
        let names = ["server-1", "", "a b", "a;b", "$(x)", "nr=4", "\u{1b}[2J"];
        let names = names.map(|name| (name.to_owned(), "said\u{1b} beside".to_owned()));
        let offered = candidates(names.to_vec());
        let words: Vec<_> = offered
            .iter()
            .map(|word| word.get_value().to_owned())
            .collect();
        assert_eq!(words, ["server-1", "nr=4"]);
        let help = offered[0].get_help().unwrap().to_string();
        assert_eq!(help, "said  beside");
    }

    #[test]
    fn a_submit_is_offered_once() {
        let job = serde_json::json!({
            "job_id": "1", "job_stage": "finish", "job_health": "success", "job_data_readiness": "complete",
            "my_account": "a", "queue": "q", "priority": 2, "suite": "s", "testbox": "t", "tbox_group": "g",
            "attempt": 1, "memory_mb": 4096, "submit_ms": 1000, "submit_id": "0199-a", "params": "nr=4",
        });
        let job: JobSummary = serde_json::from_value(job).unwrap();
        assert_eq!(
            said_of_job(&job),
            ("1".to_owned(), "success s nr=4".to_owned())
        );
        let names = submits(&[job.clone(), job]);
        assert_eq!(names, [("0199-a".to_owned(), "submit of s".to_owned())]);
    }
}
