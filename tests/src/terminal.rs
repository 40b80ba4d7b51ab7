//! The `fairlead` command on a pseudo-terminal.

use std::{
    fs::OpenOptions,
    io::{Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Command, Stdio},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::{Ran, settings};

/// Runs `fairlead` on a terminal of so many columns (0: it does not know), on which somebody types `typed`, and waits for
/// its end. What it printed, on standard output and error, is in `out`.
///
/// # Panics
/// When there are no pseudo-terminals, or no program.
pub fn on_terminal(
    folder: &Path,
    variables: &[(&str, &str)],
    words: &[&str],
    columns: u16,
    typed: &str,
) -> Ran {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)
        .unwrap_or_else(|error| panic!("a pseudo-terminal: {error}"));
    grantpt(&master).unwrap_or_else(|error| panic!("its rights: {error}"));
    unlockpt(&master).unwrap_or_else(|error| panic!("its lock: {error}"));
    let name = ptsname(&master, Vec::new()).unwrap_or_else(|error| panic!("its name: {error}"));
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let path = name.to_string_lossy().into_owned();
    let open = || -> OwnedFd {
        let file = OpenOptions::new().read(true).write(true).open(&path);
        file.unwrap_or_else(|error| panic!("{path}: {error}"))
            .into()
    };
    let slave = open();
    tcsetwinsize(&slave, size).unwrap_or_else(|error| panic!("its size: {error}"));
    let mut command = Command::new(settings::binary("fairlead"));
    command
        .args(words)
        .current_dir(folder)
        .env("HOME", folder)
        .env("TERM", "xterm")
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .envs(variables.iter().copied())
        .stdin(Stdio::from(open()))
        .stdout(Stdio::from(open()))
        .stderr(Stdio::from(open()));
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("fairlead {words:?}: {error}"));
    // The command holds them, too, until it is dropped.
    drop(command);
    drop(slave);
    let mut terminal = std::fs::File::from(master);
    terminal
        .write_all(typed.as_bytes())
        .unwrap_or_else(|error| panic!("typing: {error}"));
    let mut printed = Vec::new();
    // A terminal whose last program has ended answers with an error.
    let mut piece = [0; 4096];
    while let Ok(bytes @ 1..) = terminal.read(&mut piece) {
        printed.extend_from_slice(&piece[..bytes]);
    }
    let status = child
        .wait()
        .unwrap_or_else(|error| panic!("fairlead {words:?}: {error}"));
    Ran {
        asked: format!("fairlead {} on {columns} columns", words.join(" ")),
        code: status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&printed).into_owned(),
        err: String::new(),
    }
}
