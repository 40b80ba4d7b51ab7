//! Completes words of the command line in a shell: options by themselves, and names by asking the lab. It is quick and
//! silent: what cannot be known in time is not offered.

mod asked;
mod places;

#[cfg(test)]
pub(crate) use places::missing;

use std::ffi::OsString;

use clap::Command;
use clap_complete::{
    CompleteEnv,
    env::{EnvCompleter, Shells},
};

use crate::{context::Context, exit::Failure};

/// Environment variable with the shell that requests completions.
const VARIABLE: &str = "FAIRLEAD_COMPLETE";
const PROGRAM: &str = "fairlead";

/// Answers a shell that completes a word. Returns false if this is no such request.
pub(crate) fn completed(line: impl Fn() -> Command) -> bool {
    let completing = CompleteEnv::with_factory(|| places::with_sources(line()));
    let completing = completing.var(VARIABLE).bin(PROGRAM);
    let folder = std::env::current_dir().ok();
    let words: Vec<OsString> = std::env::args_os().collect();
    // A shell has no place for an error in the middle of a line.
    completing
        .try_complete(words, folder.as_deref())
        .unwrap_or(true)
}

/// Prints the script that sets up completion in a shell.
pub(crate) fn print_script(shell: clap_complete::Shell, context: &Context) -> Result<(), Failure> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let known: Option<&dyn EnvCompleter> = shells.completer(&name);
    let mut script = Vec::new();
    let written = known
        .map(|shell| shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script));
    match written {
        Some(Ok(())) => {
            context.output.bytes(&script);
            Ok(())
        }
        _ => Err(Failure::local(
            format!("no script for {name} can be written"),
            "use bash, zsh or fish",
        )),
    }
}
