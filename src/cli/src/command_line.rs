//! The command line: every command and the options that all have. Owns no behaviour.

use std::{future::ready, pin::Pin};

use clap::{Parser, Subcommand};

use crate::{
    cmd_account, cmd_audit, cmd_backup, cmd_change, cmd_check, cmd_config, cmd_content, cmd_doctor,
    cmd_explain, cmd_get, cmd_group, cmd_hosts, cmd_job, cmd_jobs, cmd_key, cmd_lab, cmd_log,
    cmd_login, cmd_plan, cmd_pools, cmd_prune, cmd_put, cmd_queues, cmd_replay, cmd_rerun,
    cmd_results, cmd_reuse, cmd_run, cmd_scale, cmd_serve, cmd_stop, cmd_submit, cmd_tests,
    cmd_timers, cmd_usage, cmd_version, cmd_wait, cmd_watch, cmd_webhooks, cmd_whoami, completing,
    context::Context, exit, settings::Flags,
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
    /// Show, import, rotate and retire the keys that seal secrets and sign tokens
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
    /// Runs the command. Each future is boxed, because one future of all commands would be compiled once for each use.
    pub(crate) fn run<'a>(
        &'a self,
        context: &'a Context,
    ) -> Pin<Box<dyn Future<Output = anyhow::Result<u8>> + 'a>> {
        match self {
            Self::Run(args) => Box::pin(cmd_run::run(args, context)),
            Self::Serve(args) => Box::pin(cmd_serve::run(args, context)),
            Self::Submit(args) => Box::pin(cmd_submit::run(args, context)),
            Self::Jobs(args) => Box::pin(cmd_jobs::run(args, context)),
            Self::Job(args) => Box::pin(cmd_job::run(args, context)),
            Self::Log(args) => Box::pin(cmd_log::run(args, context)),
            Self::Tests(args) => Box::pin(cmd_tests::run(args, context)),
            Self::Results(args) => Box::pin(cmd_results::run(args, context)),
            Self::Wait(args) => Box::pin(cmd_wait::run(args, context)),
            Self::Watch(args) => Box::pin(cmd_watch::run(args, context)),
            Self::Rerun(args) => Box::pin(cmd_rerun::run(args, context)),
            Self::Group(args) => Box::pin(cmd_group::run(args, context)),
            Self::Put(args) => Box::pin(cmd_put::run(args, context)),
            Self::Get(args) => Box::pin(cmd_get::run(args, context)),
            Self::Content(args) => Box::pin(cmd_content::run(args, context)),
            Self::Explain(args) => Box::pin(cmd_explain::run(args, context)),
            Self::Reuse(args) => Box::pin(cmd_reuse::run(args, context)),
            Self::Replay(args) => Box::pin(cmd_replay::run(args, context)),
            Self::Hold(args) => Box::pin(cmd_change::hold(args, context)),
            Self::Release(args) => Box::pin(cmd_change::release(args, context)),
            Self::Edit(args) => Box::pin(cmd_change::edit(args, context)),
            Self::Cancel(args) => Box::pin(cmd_stop::cancel(args, context)),
            Self::Terminate(args) => Box::pin(cmd_stop::terminate(args, context)),
            Self::Timers(args) => Box::pin(cmd_timers::run(args, context)),
            Self::Webhooks(args) => Box::pin(cmd_webhooks::run(args, context)),
            Self::Usage(args) => Box::pin(cmd_usage::run(args, context)),
            Self::Plan(args) => Box::pin(cmd_plan::plan(args, context)),
            Self::Apply(args) => Box::pin(cmd_plan::apply(args, context)),
            Self::Queues(args) => Box::pin(cmd_queues::run(args, context)),
            Self::Hosts(args) => Box::pin(cmd_hosts::run(args, context)),
            Self::Pools(args) => Box::pin(cmd_pools::run(args, context)),
            Self::Scale(args) => Box::pin(cmd_scale::run(args, context)),
            Self::Lab(args) => Box::pin(cmd_lab::run(args, context)),
            Self::Audit(args) => Box::pin(cmd_audit::run(args, context)),
            Self::Account(args) => Box::pin(cmd_account::run(args, context)),
            Self::Key(args) => Box::pin(cmd_key::run(args, context)),
            Self::Backup(args) => Box::pin(ready(cmd_backup::backup(args, context))),
            Self::Restore(args) => Box::pin(cmd_backup::restore(args, context)),
            Self::Whoami(args) => Box::pin(cmd_whoami::run(args, context)),
            Self::Login(args) => Box::pin(cmd_login::run(args, context)),
            Self::Config(args) => Box::pin(ready(cmd_config::run(args, context))),
            Self::Prune(args) => Box::pin(cmd_prune::run(args, context)),
            Self::Check(args) => Box::pin(cmd_check::run(args, context)),
            Self::Doctor(args) => Box::pin(cmd_doctor::run(args, context)),
            Self::Completions { shell } => {
                let printed = completing::print_script(*shell, context);
                Box::pin(ready(printed.map(|()| exit::OK).map_err(Into::into)))
            }
            Self::Version(args) => Box::pin(cmd_version::run(args, context)),
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
