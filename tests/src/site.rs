//! A site's provider of machines: the example program, with agents of the tests. At the end none of them lives.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::{reaper, settings};

/// The provider `local`, and all machines that it created.
#[derive(Debug)]
pub struct Site {
    folder: TempDir,
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Site {
    /// Creates a site without machines.
    pub fn new() -> Self {
        let folder = reaper::folder("fairlead-site-");
        let site = Self { folder };
        let place = site.folder.path().display();
        let agent = settings::binary("fairlead-testbox");
        let example = settings::project().join("examples/providers/local");
        // Each start is recorded as a line.
        site.script(
            "agent",
            &format!(
                "echo \"$2\" >>{place}/started\nexec {} --job-user none --executor process \"$@\"",
                agent.display()
            ),
        );
        site.script(
            "providers/local",
            &format!(
                "export FAIRLEAD_SERVER=\"$(cat {place}/servers)\" FAIRLEAD_TESTBOX={place}/agent\n\
                 export FAIRLEAD_MACHINES={place}/machines HOME={place}\n\
                 : >{place}/calls-\"$1\"\n\
                 if [ \"$1\" = increase ] && [ -f {place}/pause ]; then sleep \"$(cat {place}/pause)\"; fi\n\
                 exec {} \"$1\"",
                example.display()
            ),
        );
        site
    }

    /// Writes a program into a folder of the site.
    pub fn script(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
        }
        let written = fs::write(&path, format!("#!/bin/sh\n{text}\n"));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Returns the folder for `--providers`.
    pub fn providers(&self) -> String {
        self.folder.path().join("providers").display().to_string()
    }

    /// Sets the schedulers that its machines ask.
    pub fn serve(&self, urls: &[String]) {
        self.write("servers", &urls.join(","));
    }

    /// Sets the pause before each call that creates machines, seconds.
    pub fn pauses(&self, seconds: u32) {
        self.write("pause", &seconds.to_string());
    }

    /// Returns true if the provider got such a call.
    pub fn was_called(&self, what: &str) -> bool {
        self.folder.path().join(format!("calls-{what}")).exists()
    }

    /// Returns the name of the host at each start of an agent.
    pub fn started(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("started")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    fn processes(&self) -> Vec<i32> {
        let machines = self.folder.path().join("machines");
        let folders = |path: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect()
        };
        let pools = folders(&machines).into_iter();
        let places = pools.flat_map(|pool| folders(&pool));
        let pids = places.filter_map(|place| {
            let text = fs::read_to_string(place.join("pid")).ok()?;
            text.split_whitespace().next()?.parse().ok()
        });
        pids.collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for pid in self.processes().into_iter().filter_map(Pid::from_raw) {
            // A process that is already gone is fine.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
