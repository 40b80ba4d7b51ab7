//! A real browser: Debian's Chromium without a window, with a profile of its own.

use std::{
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use fairlead_tests::{reaper, settings};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// A name that leads to this machine in this browser, as an attacker's name server would have it.
pub const REBOUND: &str = "evil.example";

/// A browser that shows one page. It ends on drop.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    _profile: TempDir,
}

fn command(profile: &TempDir) -> Command {
    let found = settings::search_path()
        .into_iter()
        .map(|place| place.join("chromium"))
        .find(|path| path.exists());
    let chromium: PathBuf = found.unwrap_or_else(|| {
        panic!(
            "no chromium to test with\n  hint: apt-get install chromium (scripts/test does it where it may)"
        )
    });
    let mut command = Command::new(chromium);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--no-proxy-server", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--disable-background-networking"])
        .arg("--disable-features=HttpsUpgrades")
        .arg(format!("--host-resolver-rules=MAP {REBOUND} 127.0.0.1"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .env("HOME", profile.path())
        .envs([reaper::variable()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    command
}

fn profile() -> TempDir {
    reaper::folder("fairlead-browser-")
}

impl Browser {
    /// Opens a page and stays there.
    pub fn open(address: &str) -> Self {
        let profile = profile();
        let child = command(&profile)
            // Without this option, a browser without a window opens the page and ends at once.
            .arg("--remote-debugging-port=0")
            .arg(address)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("chromium: {error}"));
        Self {
            child,
            _profile: profile,
        }
    }

    /// Returns the page at an address as the browser shows it, as HTML.
    pub fn read(address: &str) -> String {
        let profile = profile();
        let shown = command(&profile).arg("--dump-dom").arg(address).output();
        let shown = shown.unwrap_or_else(|error| panic!("chromium: {error}"));
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
