//! Follows jobs to their ends with a progress bar, and tells why some failed: for `submit -m`, `rerun -m` and `wait`.

use std::time::Duration;

use fairlead_api::client::Client;

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    follow::{Follower, Tracked},
    progress::Progress,
    results::{self, Ending, Ways},
    signals::Signals,
    tail::{Tails, last_lines},
};

/// Jobs that a command follows.
pub(crate) struct Attached {
    pub(crate) jobs: Vec<Tracked>,
    pub(crate) submit_ids: Vec<String>,
    /// Name of the jobs on a command line: `--submit-id X`, or ids.
    pub(crate) name: String,
    /// Time limit. `None`: no limit.
    pub(crate) limit: Option<Duration>,
}

/// Reason why following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// All jobs have ended.
    Over,
    /// The user pressed Ctrl-C. The jobs go on.
    Interrupted,
    /// The time limit was reached. The jobs go on.
    Late,
}

impl Attached {
    /// Follows the jobs until all are done, and returns their ends.
    pub(crate) async fn follow(
        self,
        client: &Client,
        signals: &mut Signals,
        context: &Context,
    ) -> Result<(Vec<Ending>, Left), Failure> {
        let began = clock::monotonic();
        let mut progress = Progress::new(context, self.jobs.len());
        let mut tails = Tails::default();
        let mut follower = Follower::new(self.jobs, self.submit_ids);
        let left = loop {
            tokio::select! {
                () = signals.next() => break Left::Interrupted,
                looked = look(&mut follower, client, &mut progress, &mut tails) => looked?,
            }
            if follower.done() {
                break Left::Over;
            }
            let waited = clock::monotonic().duration_since(began);
            if self.limit.is_some_and(|limit| waited >= limit) {
                break Left::Late;
            }
            let rest = self
                .limit
                .map_or(Duration::MAX, |limit| limit.saturating_sub(waited));
            tokio::select! {
                () = signals.next() => break Left::Interrupted,
                () = clock::pause(follower.pause().min(rest)) => {}
            }
        };
        progress.end();
        let jobs = follower.jobs().iter();
        let mut endings: Vec<Ending> = jobs.map(|job| Ending::of(job, str::to_owned)).collect();
        last_lines(&mut endings, client).await;
        if !context.json {
            let ways = Ways {
                took: clock::monotonic().duration_since(began),
                results: format!("fairlead results {}", self.name),
                again: format!("fairlead rerun {} --failed", self.name),
            };
            let text = results::text(&endings, &ways, |ending| {
                format!("fairlead rerun {}", ending.job_id)
            });
            context.output.line(&text);
        }
        if left != Left::Over {
            let again = format!("fairlead wait {}", self.name);
            context.output.remark(&results::left(&endings, &again));
        }
        Ok((endings, left))
    }
}

/// Returns the exit code for jobs that were followed.
pub(crate) fn code(endings: &[Ending], left: Left) -> u8 {
    match left {
        Left::Over => results::code(endings),
        Left::Interrupted => exit::INTERRUPTED,
        Left::Late => exit::TOO_LATE,
    }
}

/// Reads the states once. An unreachable scheduler is awaited, because it will return and the jobs go on.
async fn look(
    follower: &mut Follower,
    client: &Client,
    progress: &mut Progress<'_>,
    tails: &mut Tails,
) -> Result<(), Failure> {
    match follower.look(client).await {
        Ok(()) => {
            progress.show(follower.jobs());
            tails.look(client, progress).await;
            follower.check_missing()
        }
        Err(error) if error.may_pass() => {
            progress.remark(&format!("{error}; trying again"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
