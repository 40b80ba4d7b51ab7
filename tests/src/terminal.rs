//! The `fairlead` command on a pseudo-terminal.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use crate::{Ran, reaper, settings};

/// Runs `fairlead` on a terminal with this number of columns (0: unknown), with `typed` as input, and waits for its
/// end. `out` has its standard output and error.
///
/// # Panics
/// Panics if there are no pseudo-terminals, or no program.
pub fn on_terminal(
    folder: &Path,
    variables: &[(&str, &str)],
    words: &[&str],
    columns: u16,
    typed: &str,
) -> Ran {
    let mut terminal = Terminal::start(folder, variables, words, columns);
    terminal.type_keys(typed);
    terminal.end()
}

/// `fairlead` on a terminal, while it runs.
#[derive(Debug)]
pub struct Terminal {
    asked: String,
    child: Child,
    master: File,
    slave: Option<OwnedFd>,
    printed: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts it on a terminal with 24 rows and this number of columns.
    pub fn start(folder: &Path, variables: &[(&str, &str)], words: &[&str], columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)
            .unwrap_or_else(|error| panic!("a pseudo-terminal: {error}"));
        grantpt(&master).unwrap_or_else(|error| panic!("its rights: {error}"));
        unlockpt(&master).unwrap_or_else(|error| panic!("its lock: {error}"));
        let name = ptsname(&master, Vec::new()).unwrap_or_else(|error| panic!("its name: {error}"));
        let path = name.to_string_lossy().into_owned();
        let open = || -> OwnedFd {
            let file = OpenOptions::new().read(true).write(true).open(&path);
            file.unwrap_or_else(|error| panic!("{path}: {error}"))
                .into()
        };
        let slave = open();
        resize(&slave, columns);
        let child = Command::new(settings::binary("fairlead"))
            .args(words)
            .current_dir(folder)
            .env("HOME", folder)
            .env("TERM", "xterm")
            .env("XDG_CONFIG_HOME", folder.join("config"))
            .envs(variables.iter().copied())
            .envs([reaper::variable()])
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()))
            .spawn()
            .unwrap_or_else(|error| panic!("fairlead {words:?}: {error}"));
        let master = File::from(master);
        let mut terminal = master
            .try_clone()
            .unwrap_or_else(|error| panic!("the terminal once more: {error}"));
        let printed = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&printed);
        let reader = std::thread::spawn(move || {
            // A terminal returns an error after its last program has ended.
            let mut piece = [0; 4096];
            while let Ok(bytes @ 1..) = terminal.read(&mut piece) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&piece[..bytes]);
            }
        });
        Self {
            asked: format!("fairlead {} on {columns} columns", words.join(" ")),
            child,
            master,
            slave: Some(slave),
            printed,
            reader: Some(reader),
        }
    }

    /// Presses keys.
    pub fn type_keys(&mut self, keys: &str) {
        self.master
            .write_all(keys.as_bytes())
            .unwrap_or_else(|error| panic!("typing: {error}"));
    }

    /// Returns the output so far.
    pub fn printed(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// Discards the output so far.
    pub fn forget(&self) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.clear();
    }

    /// Gives the terminal another width, and notifies the program.
    pub fn resize(&self, columns: u16) {
        self.slave.iter().for_each(|slave| resize(slave, columns));
        self.signal(Signal::WINCH);
    }

    /// Sends it a signal, as a key of the terminal or another program would.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|error| panic!("{signal:?}: {error}"));
    }

    /// Returns true if it is stopped, as by Ctrl-Z.
    pub fn is_stopped(&self) -> bool {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('T'))
    }

    /// Returns true if the terminal echoes keys, passes them line by line, and turns them into signals, as a shell
    /// needs it.
    pub fn is_as_before(&self) -> bool {
        let wanted = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        self.modes().contains(wanted)
    }

    /// Returns the input modes of the terminal.
    pub fn modes(&self) -> LocalModes {
        let modes = tcgetattr(&self.master);
        modes
            .unwrap_or_else(|error| panic!("the modes: {error}"))
            .local_modes
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        let status = self
            .child
            .wait()
            .unwrap_or_else(|error| panic!("{}: {error}", self.asked));
        let modes = self.modes();
        // The reader ends when the last open end closes.
        self.slave = None;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let wanted = LocalModes::ECHO | LocalModes::ICANON;
        assert!(modes.contains(wanted), "{} left {modes:?}", self.asked);
        Ran {
            asked: self.asked.clone(),
            code: status.code().unwrap_or(-1),
            out: self.printed(),
            err: String::new(),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &OwnedFd, columns: u16) {
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap_or_else(|error| panic!("its size: {error}"));
}
