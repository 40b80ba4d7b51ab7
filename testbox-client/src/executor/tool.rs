//! Calls the command-line tools of executors: podman, docker, QEMU. Each call has a limit, and leaves no process.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use tokio::process::{Child, Command};

use crate::isolation::children;

/// Maximum length of a tool's message that is shown, characters.
const SAID_CHARS_MAX: usize = 300;

/// Reason why a tool failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("{program} is not installed (hint: install the package {package})")]
    Missing {
        program: String,
        package: &'static str,
    },
    #[error("{program} cannot be started: {error}")]
    NotStarted { program: String, error: io::Error },
    #[error("{program} has not answered within {} s", limit.as_secs())]
    TooLong { program: String, limit: Duration },
    #[error("{program} says: {said}")]
    Failed { program: String, said: String },
}

/// Runs a tool to its end, and returns its standard output.
///
/// # Errors
/// Fails if it is missing, does not end within `limit` (then it is killed), or ends with an exit code other than 0.
pub(crate) async fn ask(
    command: Command,
    package: &'static str,
    limit: Duration,
) -> Result<String, ToolError> {
    let program = name_of(command.as_std().get_program());
    let output = output(command, package, limit).await?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(ToolError::Failed {
        said: said(&output),
        program,
    })
}

/// Runs an existing tool to its end, and returns its exit code. `None`: it was killed, or did not end in time.
///
/// # Errors
/// Fails if it cannot be started.
pub(crate) async fn exit_code(command: Command, limit: Duration) -> Result<Option<i32>, ToolError> {
    match output(command, "", limit).await {
        Ok(output) => Ok(output.status.code()),
        Err(ToolError::TooLong { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn output(
    mut command: Command,
    package: &'static str,
    limit: Duration,
) -> Result<Output, ToolError> {
    let program = name_of(command.as_std().get_program());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let started = children::start(|| command.spawn(), Child::id);
    let (child, _own) = started.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ToolError::Missing {
            program: program.clone(),
            package,
        },
        _ => ToolError::NotStarted {
            program: program.clone(),
            error,
        },
    })?;
    match tokio::time::timeout(limit, child.wait_with_output()).await {
        Err(_) => Err(ToolError::TooLong { program, limit }),
        Ok(Err(error)) => Err(ToolError::NotStarted { program, error }),
        Ok(Ok(output)) => Ok(output),
    }
}

/// Returns the last line of a tool's message.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    match last {
        Some(line) => line.trim().chars().take(SAID_CHARS_MAX).collect(),
        None => output.status.to_string(),
    }
}

fn name_of(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}

/// Returns the path of a program on a search path.
pub(crate) fn on_path(path: &str, program: &str) -> Option<PathBuf> {
    let found = path.split(':').map(|dir| Path::new(dir).join(program));
    found.into_iter().find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(script: &str) -> Result<String, ToolError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        ask(command, "dash", Duration::from_mins(1)).await
    }

    #[tokio::test]
    async fn a_tool_answers_or_says_why_not() {
        assert_eq!(run("echo yes").await.unwrap(), "yes\n");
        let failed = run("echo first >&2; echo no such image >&2; exit 3").await;
        assert_eq!(failed.unwrap_err().to_string(), "sh says: no such image");
        let silent = run("exit 3").await.unwrap_err().to_string();
        assert_eq!(silent, "sh says: exit status: 3");
        let missing = Command::new("/nowhere/podman");
        let missing = ask(missing, "podman", Duration::from_mins(1)).await;
        let missing = missing.unwrap_err().to_string();
        assert!(missing.contains("install the package podman"), "{missing}");
        let mut endless = Command::new("/bin/sh");
        endless.args(["-c", "exec sleep 600"]);
        let late = ask(endless, "dash", Duration::ZERO).await.unwrap_err();
        assert!(matches!(late, ToolError::TooLong { .. }), "{late}");
    }

    #[test]
    fn a_program_is_found_on_the_path() {
        assert!(on_path("/nowhere:/bin", "sh").is_some());
        assert_eq!(on_path("/nowhere:/bin", "no-such-program"), None);
    }
}
