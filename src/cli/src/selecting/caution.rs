//! The question before many jobs are changed.

use std::io::{self, BufRead, IsTerminal};

use fairlead_api::JobSummary;

use crate::{
    context::Context,
    exit::{self, Failure},
    table::cut,
};

/// Number of jobs that are shown before the question.
const SHOWN: usize = 5;
/// Width of a job's parameters there, columns.
const PARAMS_WIDTH: usize = 60;

/// Whether to ask first.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct Caution {
    /// Do not ask
    #[arg(short = 'y', long)]
    yes: bool,
    /// Show which jobs match, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Caution {
    /// Prints the number of matching jobs, and asks. Returns false if the command must not go on.
    pub(crate) fn allows(
        self,
        jobs: &[JobSummary],
        act: &str,
        context: &Context,
    ) -> Result<bool, Failure> {
        let output = &context.output;
        output.remark(&format!("{} match", counted(jobs.len())));
        if self.dry_run || jobs.is_empty() {
            return Ok(false);
        }
        if self.yes {
            return Ok(true);
        }
        for job in jobs.iter().take(SHOWN) {
            let params = cut(&job.params, PARAMS_WIDTH);
            output.remark(&format!(
                "  {}  {}  {}  {params}",
                job.job_id, job.job_stage, job.suite
            ));
        }
        if jobs.len() > SHOWN {
            output.remark(&format!("  … and {} more", jobs.len() - SHOWN));
        }
        let what = format!("{act} of {}", counted(jobs.len()));
        let question = format!("{act} {}", counted(jobs.len()));
        let hint = "repeat the command with --yes, or with --dry-run to see all of them";
        ask(&question, &what, hint, context)?;
        Ok(true)
    }
}

/// Asks for agreement. Fails if nobody can answer, or if the answer is no.
pub(crate) fn agrees(question: &str, hint: &str, context: &Context) -> Result<(), Failure> {
    ask(question, question, hint, context)
}

fn ask(question: &str, what: &str, hint: &str, context: &Context) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{what} was not confirmed"), hint));
    }
    context.output.ask(&format!("{question}? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    let is_yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if read.is_err() || !is_yes {
        return Err(Failure::new(
            exit::USAGE,
            "nothing was changed",
            "answer y, or give --yes",
        ));
    }
    Ok(())
}

/// Returns `1 job` or `14 jobs`.
fn counted(jobs: usize) -> String {
    fairlead_job::units::counted(jobs, "job", "jobs")
}
