//! The command line: every command and the options that all have. Owns no behaviour.

use clap::{Parser, Subcommand};

use crate::{
    cmd_account, cmd_audit, cmd_backup, cmd_change, cmd_check, cmd_config, cmd_content, cmd_doctor,
    cmd_explain, cmd_get, cmd_group, cmd_hosts, cmd_job, cmd_jobs, cmd_key, cmd_lab, cmd_log,
    cmd_login, cmd_plan, cmd_pools, cmd_prune, cmd_put, cmd_queues, cmd_replay, cmd_rerun,
    cmd_results, cmd_reuse, cmd_run, cmd_scale, cmd_serve, cmd_stop, cmd_submit, cmd_tests,
    cmd_timers, cmd_usage, cmd_version, cmd_wait, cmd_watch, cmd_webhooks, cmd_whoami, completing,
    context::Context,
    exit,
    logging::{self, LogFormat},
    settings::Flags,
};

/// Schedules the jobs of a test lab: people submit job files, and testboxes ask for work
#[derive(Debug, Parser)]
#[command(name = "fairlead", version, after_help = exit::HELP, max_term_width = 100)]
#[command(
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// Print JSON for programs instead of tables for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the jobs of job files on this machine, without a scheduler
    Run(cmd_run::RunArgs),
    /// Run a scheduler
    Serve(Box<cmd_serve::ServeArgs>),
    /// Submit the jobs of job files
    Submit(cmd_submit::SubmitArgs),
    /// List jobs
    Jobs(cmd_jobs::JobsArgs),
    /// Show one job: its stages and times, its results, and its fields
    Job(cmd_job::JobArgs),
    /// Print the output of a job
    Log(cmd_log::LogArgs),
    /// List the test cases of a job
    Tests(cmd_tests::TestsArgs),
    /// Download the results of jobs
    Results(cmd_results::ResultsArgs),
    /// Wait until jobs have ended, and show their results
    Wait(cmd_wait::WaitArgs),
    /// Watch jobs in a table that keeps itself up to date
    Watch(cmd_watch::WatchArgs),
    /// Submit a job again, or what failed of it
    Rerun(cmd_rerun::RerunArgs),
    /// Show or close a group: jobs that are submitted one by one and have one result
    Group(cmd_group::GroupArgs),
    /// Put a folder or a file into the lab, and print its id: jobs name it in `inputs`
    Put(cmd_put::PutArgs),
    /// Get the files of an id, or the outputs of a job
    Get(cmd_get::GetArgs),
    /// List, show, keep and remove what was put
    Content(cmd_content::ContentArgs),
    /// Explain why a job waits, or where it is
    Explain(cmd_explain::ExplainArgs),
    /// Show and change how results of earlier jobs are reused, and explain it for a job
    Reuse(cmd_reuse::ReuseArgs),
    /// Replay a trace in virtual time, and show how long its jobs would have waited
    Replay(cmd_replay::ReplayArgs),
    /// Hold waiting jobs back, until they are released
    Hold(cmd_change::HoldArgs),
    /// Release jobs that were held back
    Release(cmd_change::HoldArgs),
    /// Change the queue, the priority, the needs or the limits of waiting jobs
    Edit(cmd_change::EditArgs),
    /// Cancel waiting jobs
    Cancel(cmd_stop::CancelArgs),
    /// Stop running jobs
    Terminate(cmd_stop::StopArgs),
    /// Submit, list, change and delete timers, which run jobs repeatedly
    Timers(cmd_timers::TimersArgs),
    /// List webhooks, send one again, or test a receiver
    Webhooks(cmd_webhooks::WebhooksArgs),
    /// Show who used the lab: hours, jobs, failures and waits
    Usage(cmd_usage::UsageArgs),
    /// Show how the lab differs from a lab file
    Plan(cmd_plan::PlanArgs),
    /// Make the lab as a lab file says
    Apply(cmd_plan::ApplyArgs),
    /// List queues, or change their policy
    Queues(cmd_queues::QueuesArgs),
    /// List hosts, show why one is idle, close, open and reserve them
    Hosts(cmd_hosts::HostsArgs),
    /// List and change pools of machines that come and go
    Pools(cmd_pools::PoolsArgs),
    /// Show the decisions of pools, and why they were made
    Scale(cmd_scale::ScaleArgs),
    /// Show how the lab is, and pause it as a whole
    Lab(cmd_lab::LabArgs),
    /// Show who did what
    Audit(cmd_audit::AuditArgs),
    /// Add and list accounts and their tokens
    Account(cmd_account::AccountArgs),
    /// Show, import and rotate the keys that seal secrets and sign tokens
    Key(cmd_key::KeyArgs),
    /// Copy the embedded store into a new file, also while a scheduler runs
    Backup(cmd_backup::BackupArgs),
    /// Create an embedded store from a backup
    Restore(cmd_backup::RestoreArgs),
    /// Remove results and logs of old jobs from the data folders
    Prune(cmd_prune::PruneArgs),
    /// Check whether what a store holds fits together: jobs, their parts, and their files
    Check(cmd_check::CheckArgs),
    /// Show who you are in the lab, and with which settings
    Whoami(cmd_whoami::WhoamiArgs),
    /// Check a token, and keep it for later commands
    Login(cmd_login::LoginArgs),
    /// Show settings and their origins
    Config(cmd_config::ConfigArgs),
    /// Check this machine and the schedulers for problems, and tell how to repair each
    Doctor(cmd_doctor::DoctorArgs),
    /// Print the script that completes words of the command line, also names of the lab
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version(cmd_version::VersionArgs),
}

impl Command {
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<u8> {
        if !matches!(self, Self::Serve(_)) {
            logging::start("error", LogFormat::Text, &context.env)?;
        }
        match self {
            Self::Run(args) => cmd_run::run(&args, context).await,
            Self::Serve(args) => cmd_serve::run(&args, context).await,
            Self::Submit(args) => cmd_submit::run(&args, context).await,
            Self::Jobs(args) => cmd_jobs::run(&args, context).await,
            Self::Job(args) => cmd_job::run(&args, context).await,
            Self::Log(args) => cmd_log::run(&args, context).await,
            Self::Tests(args) => cmd_tests::run(&args, context).await,
            Self::Results(args) => cmd_results::run(&args, context).await,
            Self::Wait(args) => cmd_wait::run(&args, context).await,
            Self::Watch(args) => cmd_watch::run(&args, context).await,
            Self::Rerun(args) => cmd_rerun::run(&args, context).await,
            Self::Group(args) => cmd_group::run(&args, context).await,
            Self::Put(args) => cmd_put::run(&args, context).await,
            Self::Get(args) => cmd_get::run(&args, context).await,
            Self::Content(args) => cmd_content::run(args, context).await,
            Self::Explain(args) => cmd_explain::run(&args, context).await,
            Self::Reuse(args) => cmd_reuse::run(&args, context).await,
            Self::Replay(args) => cmd_replay::run(&args, context).await,
            Self::Hold(args) => cmd_change::hold(&args, context).await,
            Self::Release(args) => cmd_change::release(&args, context).await,
            Self::Edit(args) => cmd_change::edit(&args, context).await,
            Self::Cancel(args) => cmd_stop::cancel(&args, context).await,
            Self::Terminate(args) => cmd_stop::terminate(&args, context).await,
            Self::Timers(args) => cmd_timers::run(&args, context).await,
            Self::Webhooks(args) => cmd_webhooks::run(&args, context).await,
            Self::Usage(args) => cmd_usage::run(&args, context).await,
            Self::Plan(args) => cmd_plan::plan(&args, context).await,
            Self::Apply(args) => cmd_plan::apply(&args, context).await,
            Self::Queues(args) => cmd_queues::run(args, context).await,
            Self::Hosts(args) => cmd_hosts::run(&args, context).await,
            Self::Pools(args) => cmd_pools::run(args, context).await,
            Self::Scale(args) => cmd_scale::run(&args, context).await,
            Self::Lab(args) => cmd_lab::run(&args, context).await,
            Self::Audit(args) => cmd_audit::run(&args, context).await,
            Self::Account(args) => cmd_account::run(args, context).await,
            Self::Key(args) => cmd_key::run(args, context).await,
            Self::Backup(args) => cmd_backup::backup(&args, context),
            Self::Restore(args) => cmd_backup::restore(&args, context).await,
            Self::Whoami(args) => cmd_whoami::run(&args, context).await,
            Self::Login(args) => cmd_login::run(&args, context).await,
            Self::Config(args) => cmd_config::run(&args, context),
            Self::Prune(args) => cmd_prune::run(&args, context).await,
            Self::Check(args) => cmd_check::run(&args, context).await,
            Self::Doctor(args) => cmd_doctor::run(&args, context).await,
            Self::Completions { shell } => {
                completing::print_script(shell, context)?;
                Ok(exit::OK)
            }
            Self::Version(args) => cmd_version::run(&args, context).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <CommandLine as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn completion_knows_words_that_there_are() {
        let command = <CommandLine as clap::CommandFactory>::command();
        let missing = completing::missing(command);
        assert!(missing.is_empty(), "{missing:?}");
    }
}
