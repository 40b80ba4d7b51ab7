//! The command `fairlead`: parses the command line, runs one command, and turns its result into an exit code. The
//! libraries do the work.

mod amounts;
mod answers;
mod attached;
mod clock;
mod cmd_account;
mod cmd_audit;
mod cmd_backup;
mod cmd_change;
mod cmd_check;
mod cmd_config;
mod cmd_content;
mod cmd_doctor;
mod cmd_explain;
mod cmd_get;
mod cmd_group;
mod cmd_hosts;
mod cmd_job;
mod cmd_jobs;
mod cmd_key;
mod cmd_lab;
mod cmd_log;
mod cmd_login;
mod cmd_plan;
mod cmd_pools;
mod cmd_prune;
mod cmd_put;
mod cmd_queues;
mod cmd_replay;
mod cmd_rerun;
mod cmd_results;
mod cmd_reuse;
mod cmd_run;
mod cmd_scale;
mod cmd_serve;
mod cmd_stop;
mod cmd_submit;
mod cmd_tests;
mod cmd_timers;
mod cmd_usage;
mod cmd_version;
mod cmd_wait;
mod cmd_watch;
mod cmd_webhooks;
mod cmd_whoami;
mod command_line;
mod completing;
mod context;
mod doctor;
mod exit;
mod expansion;
mod follow;
mod lab_file;
mod limits;
mod local;
mod logging;
mod output;
mod printable;
mod progress;
mod replaying;
mod results;
mod reuse_settings;
mod selecting;
mod serving;
mod setting_file;
mod settings;
mod signals;
mod sizes;
mod small_file;
mod store_args;
mod submission;
mod table;
mod tail;
mod transfers;
mod watching;
mod words;
mod yaml_text;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, Parser};

use crate::{
    command_line::{Command, CommandLine},
    context::Context,
    logging::LogFormat,
    output::Output,
    serving::Layers,
    settings::Environment,
};

/// Allocator of the program. The C library's allocator gives each of many short threads its own heap, and keeps the
/// memory of a burst. `docs/adr/0012-what-a-build-pays-for.md` compares allocators.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if completing::completed(<CommandLine as CommandFactory>::command) {
        return ExitCode::SUCCESS;
    }
    let env = Environment::of_process();
    let output = Output::standard(&env);
    let words: Vec<OsString> = std::env::args_os().collect();
    let is_for_programs = words.iter().any(|word| word == "--json");
    let layers = Layers::of(&CommandLine::command(), &words, &env);
    let (words, serving) = match layers {
        Ok(layers) => (layers.line(words), layers.into_settings()),
        Err(failure) => {
            return ExitCode::from(tell(&failure.into(), is_for_programs, &output));
        }
    };
    let line = CommandLine::try_parse_from(words).unwrap_or_else(|error| {
        if !error.use_stderr() || !is_for_programs {
            error.exit();
        }
        output.remark(&exit::usage_object(&error).to_string());
        std::process::exit(i32::from(exit::USAGE));
    });
    let context = Context {
        output,
        env,
        flags: line.flags,
        json: line.json,
        serving,
        told: std::sync::Once::new(),
    };
    let ended = run(&line.command, &context);
    let ended = ended.and_then(|code| Ok(context.output.problem().map(|()| code)?));
    ExitCode::from(ended.unwrap_or_else(|error| tell(&error, context.json, &context.output)))
}

/// Prints the reason why a command ends, and returns its exit code.
fn tell(error: &anyhow::Error, is_for_programs: bool, output: &Output) -> u8 {
    let (code, text) = exit::describe(error);
    if is_for_programs {
        output.remark(&exit::object(error).to_string());
    } else {
        output.remark(&format!("error: {text}"));
    }
    code
}

fn run(command: &Command, context: &Context) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    if !matches!(command, Command::Serve(_)) {
        logging::start("error", LogFormat::Text, &context.env)?;
    }
    let ended = runtime.block_on(command.run(context));
    // A pending read of stdin must not keep the process alive.
    runtime.shutdown_background();
    ended
}
