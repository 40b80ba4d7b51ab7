//! The agent's token: reads it, and removes it from the command line and the environment, which others can see.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::{
        fd::AsFd,
        unix::{fs::MetadataExt, process::CommandExt},
    },
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Context;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// Environment variable that may hold the token.
pub(crate) const VARIABLE: &str = "FAIRLEAD_TOKEN";
/// Argument that may hold the token.
const ARGUMENT: &str = "--token";
/// Argument that replaces it.
const STDIN: &str = "--token-stdin";
/// Permission bits of a file's group and of all others.
const NOT_OWNER: u32 = 0o077;

/// Reads the token from a file.
pub(crate) fn read(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the token file '{shown}'"))?;
    if fs::metadata(file).is_ok_and(|about| about.mode() & NOT_OWNER != 0) {
        tracing::warn!("other users can read the token file '{shown}' (hint: chmod 600)");
    }
    Ok(text.trim().to_owned())
}

/// Reads the token from standard input. If that is a memory file, its contents are erased.
pub(crate) fn from_stdin() -> anyhow::Result<String> {
    let mut stdin = io::stdin().lock();
    let mut text = String::new();
    stdin
        .read_to_string(&mut text)
        .context("cannot read the token from standard input")?;
    // Only a memory file made by `hide` is emptied. A pipe is already empty, and another file belongs to its owner.
    if is_hidden(&stdin) {
        ftruncate(&stdin, 0)?;
    }
    Ok(text.trim().to_owned())
}

/// Name of the memory file in the kernel's listings.
const HIDDEN: &str = "fairlead-token";

fn is_hidden(stdin: &impl AsFd) -> bool {
    let number = std::os::fd::AsRawFd::as_raw_fd(&stdin.as_fd());
    fs::read_link(format!("/proc/self/fd/{number}"))
        .is_ok_and(|name| name.to_string_lossy().contains(HIDDEN))
}

/// Restarts this program without the token in its arguments and environment. The token comes by standard input. Returns
/// only if that is impossible, with everything unchanged.
pub(crate) fn hide(token: &str) {
    let args: Vec<OsString> = std::env::args_os().collect();
    let (kept, was_argument) = without_token(&args);
    if was_argument {
        tracing::warn!(
            "other users could see the token on the command line; it is hidden now (hint: --token-file FILE)"
        );
    }
    let error = match begin_anew(&kept, token) {
        Ok(error) | Err(error) => error,
    };
    tracing::warn!(%error, "other users can see the token (hint: --token-file FILE)");
}

fn begin_anew(args: &[OsString], token: &str) -> io::Result<io::Error> {
    let mut memory = File::from(memfd_create(HIDDEN, MemfdFlags::CLOEXEC)?);
    memory.write_all(token.as_bytes())?;
    memory.rewind()?;
    let (name, args) = args
        .split_first()
        .ok_or_else(|| io::Error::other("no name"))?;
    Ok(Command::new(std::env::current_exe()?)
        .arg0(name)
        .args(args)
        .arg(STDIN)
        .env_remove(VARIABLE)
        .stdin(Stdio::from(memory))
        .exec())
}

/// Returns the arguments without the token, and true if it was among them.
fn without_token(args: &[OsString]) -> (Vec<OsString>, bool) {
    let mut kept = Vec::with_capacity(args.len());
    let mut found = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == OsStr::new(ARGUMENT) {
            args.next();
            found = true;
        } else if arg.to_string_lossy().starts_with("--token=") {
            found = true;
        } else {
            kept.push(arg.clone());
        }
    }
    (kept, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_out_of_the_arguments_and_nothing_else() {
        let kept = |line: &str| {
            let args: Vec<_> = line.split(' ').map(OsString::from).collect();
            let (kept, found) = without_token(&args);
            let kept: Vec<_> = kept.iter().map(|arg| arg.to_string_lossy()).collect();
            (kept.join(" "), found)
        };
        let clean = "x --host h --token-file f".to_owned();
        assert_eq!(kept("x --host h --token-file f"), (clean.clone(), false));
        assert_eq!(
            kept("x --token t --host h --token-file f"),
            (clean.clone(), true)
        );
        assert_eq!(kept("x --host h --token=t --token-file f"), (clean, true));
        assert_eq!(kept("x --token"), ("x".to_owned(), true));
    }
}
