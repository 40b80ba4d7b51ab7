//! `fairlead log`: the output of jobs. Following resumes where it broke, at the byte, and goes on with the next attempt
//! until the job has ended.

use std::time::Duration;

use fairlead_api::client::{Client, ClientError};
use fairlead_job::Stage;
use serde_json::Value;

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    printable::LogFilter,
    selecting::Selector,
    tail::end_of,
};

/// Delay before a broken stream is requested again.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of consecutive breaks of a stream without a byte in between.
const RESUMES_MAX: u32 = 20;

/// Of which jobs, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal, escape sequences and characters that reorder text are removed, because they could
hide or forge lines. A pipe or a file gets every byte.")]
pub(crate) struct LogArgs {
    #[command(flatten)]
    selector: Selector,
    /// Follow all attempts until the job ends
    #[arg(short, long)]
    follow: bool,
    /// Only this attempt [default: the current one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    attempt: Option<u16>,
    /// Start at this byte
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    offset: u64,
    /// Only the last lines
    #[arg(long, value_name = "N", conflicts_with_all = ["follow", "offset", "attempt"], value_parser = clap::value_parser!(u16).range(1..=10_000))]
    tail: Option<u16>,
    /// Keep every byte, also on a terminal
    #[arg(long)]
    raw: bool,
}

pub(crate) async fn run(args: &LogArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let ids = args.selector.named(context, &client).await?;
    let is_filtered = context.output.is_terminal() && !args.raw;
    for id in &ids {
        if ids.len() > 1 {
            context.output.line(&format!("==> job {id} <=="));
        }
        if let Some(lines) = args.tail {
            let end = end_of(id, usize::from(lines), &client).await;
            for line in end.map_err(Failure::from)? {
                context.output.line(&line);
            }
            continue;
        }
        let log = LogFollow {
            id: id.clone(),
            attempt: args.attempt,
            offset: args.offset,
            broken: 0,
            filter: is_filtered.then(LogFilter::default),
        };
        log.run(args, &client, context).await?;
    }
    Ok(exit::OK)
}

/// Next step after the end of a stream.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// End of the command.
    End,
    /// Continue with the same attempt, because its replica stopped.
    Again,
    /// Print the output of this attempt.
    Attempt(u16),
}

/// Position in a log.
struct LogFollow {
    /// Id of the job.
    id: String,
    /// Attempt being read. `None`: the one that the scheduler selects.
    attempt: Option<u16>,
    offset: u64,
    broken: u32,
    /// Filter for a terminal.
    filter: Option<LogFilter>,
}

impl LogFollow {
    /// Copies the output of the job to its end.
    async fn run(
        mut self,
        args: &LogArgs,
        client: &Client,
        context: &Context,
    ) -> Result<(), Failure> {
        loop {
            match self.step(args, client, context).await {
                Ok(Next::End) => break,
                Ok(Next::Attempt(attempt)) => {
                    self.finish(context);
                    let id = &self.id;
                    context
                        .output
                        .remark(&format!("job {id}: attempt {attempt}"));
                }
                Ok(Next::Again) => clock::pause(RESUME_PAUSE).await,
                Err(error) if args.follow && self.may_resume(&error) => {
                    tracing::debug!(%error, offset = self.offset, "the log stream broke; it resumes");
                    clock::pause(RESUME_PAUSE).await;
                }
                Err(error) => return Err(Failure::from(error)),
            }
        }
        self.finish(context);
        Ok(())
    }

    /// Copies the available output. With `--follow`, returns the next step.
    async fn step(
        &mut self,
        args: &LogArgs,
        client: &Client,
        context: &Context,
    ) -> Result<Next, ClientError> {
        let goes_on = args.follow && args.attempt.is_none();
        if goes_on && self.attempt.is_none() {
            // From here on the attempt is fixed, even if another one starts.
            self.attempt = Standing::of(&self.id, client).await?.map(|now| now.attempt);
        }
        self.copy(args, client, context).await?;
        if !args.follow || context.output.closed() {
            return Ok(Next::End);
        }
        let next = match Standing::of(&self.id, client).await? {
            Some(now) => now.after(self.attempt, goes_on),
            None => Next::End,
        };
        if let Next::Attempt(attempt) = next {
            (self.attempt, self.offset) = (Some(attempt), 0);
        }
        Ok(next)
    }

    async fn copy(
        &mut self,
        args: &LogArgs,
        client: &Client,
        context: &Context,
    ) -> Result<(), ClientError> {
        let mut stream = client
            .log(&self.id, self.attempt, self.offset, args.follow)
            .await?;
        while let Some(bytes) = stream.chunk().await? {
            self.offset += bytes.len() as u64;
            self.broken = 0;
            match &mut self.filter {
                Some(filter) => context.output.bytes(filter.next(&bytes).as_bytes()),
                None => context.output.bytes(&bytes),
            }
            if context.output.closed() {
                break;
            }
        }
        Ok(())
    }

    /// Prints the remaining text in the filter at the end of an attempt's output.
    fn finish(&mut self, context: &Context) {
        if let Some(filter) = &mut self.filter {
            context.output.bytes(filter.end().as_bytes());
            *filter = LogFilter::default();
        }
    }

    /// Returns true if the stream may be requested again. A stream that breaks repeatedly without a byte will not
    /// recover.
    fn may_resume(&mut self, error: &ClientError) -> bool {
        self.broken += 1;
        error.may_pass() && self.broken <= RESUMES_MAX
    }
}

/// State of a job.
#[derive(Debug, Clone, Copy)]
struct Standing {
    attempt: u16,
    has_ended: bool,
}

impl Standing {
    /// Reads the state. `None`: the scheduler does not report it.
    async fn of(id: &str, client: &Client) -> Result<Option<Self>, ClientError> {
        let job = client.job(id).await?;
        let attempt = job.get("attempt").and_then(Value::as_u64);
        let stage = job.get("job_stage").and_then(Value::as_str);
        let stage = stage.and_then(|stage| stage.parse::<Stage>().ok());
        Ok(attempt.zip(stage).map(|(attempt, stage)| Self {
            attempt: u16::try_from(attempt).unwrap_or(u16::MAX),
            has_ended: stage.is_terminal(),
        }))
    }

    /// Returns the step after the output of `read`. The state was read after the end of the stream. So if the job has
    /// ended since, the rest must still be read.
    fn after(self, read: Option<u16>, goes_on: bool) -> Next {
        match read {
            Some(read) if self.attempt > read && goes_on => Next::Attempt(read.saturating_add(1)),
            Some(read) if self.attempt > read => Next::End,
            _ if self.has_ended => Next::End,
            _ => Next::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn following_ends_with_the_job_and_not_with_an_attempt() {
        let now = |attempt, has_ended| Standing { attempt, has_ended };
        assert_eq!(now(2, false).after(Some(1), true), Next::Attempt(2));
        assert_eq!(now(3, true).after(Some(1), true), Next::Attempt(2));
        assert_eq!(now(3, true).after(Some(3), true), Next::End);
        assert_eq!(now(1, false).after(Some(1), true), Next::Again);
        assert_eq!(now(2, false).after(Some(1), false), Next::End);
    }
}
