//! A job's container: the command line that starts it, and its removal.

use std::{io, path::PathBuf, sync::Arc};

use fairlead_job::{ImageName, Network};
use tokio::process::Command;

use super::{
    engine::{AGENT_LABEL, Engine, EngineKind, Fetched, can_be_mounted},
    entry::{Entry, GUEST_INSIDE, INSIDE, Note, Task},
    groups::PROCESSES_MAX,
};
use crate::isolation::users::JobUser;

/// Exit code of an engine that could not start a container.
pub(super) const ENGINE_FAILED: i32 = 125;
/// Exit codes of an engine if the image has no such program.
const NO_SHELL: [i32; 2] = [126, 127];

/// Plan of a job's container.
#[derive(Debug, Clone)]
pub(crate) struct ContainerPlan {
    pub(crate) engine: Arc<Engine>,
    pub(crate) image: ImageName,
    pub(crate) network: Network,
    /// Memory limit, MB. `None`: all of the host.
    pub(crate) memory_mb: Option<u32>,
    /// CPU limit. `None`: all CPUs of the host.
    pub(crate) cpus: Option<u32>,
    /// Files and folders of the job's folder, by name, with true if the job may write to them.
    pub(crate) shared: Vec<(PathBuf, String, bool)>,
    /// Folders of the host that the job sees under the same path, and may write to.
    pub(crate) caches: Vec<PathBuf>,
    /// Image, once it is fetched.
    pub(crate) fetched: Option<Fetched>,
}

/// A container that was started.
#[derive(Debug)]
pub(crate) struct Container {
    engine: Arc<Engine>,
    name: String,
    entry: Entry,
    _fetched: Fetched,
}

/// Reason why a container did not start its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotBegun {
    /// True if the job is to blame, and not this host.
    pub(crate) is_job: bool,
    pub(crate) reason: String,
}

impl ContainerPlan {
    /// Returns the command that runs a job in its own container, in the foreground.
    pub(crate) fn command(
        &self,
        task: &Task,
        user: Option<&JobUser>,
    ) -> io::Result<(Command, Container)> {
        let fetched = self.fetched.clone();
        let fetched = fetched.ok_or_else(|| io::Error::other("its image was not fetched"))?;
        let entry = Entry::of(&task.folder);
        entry.write(task)?;
        if let Some(user) = user {
            entry.give(user.uid)?;
        }
        can_be_mounted(&task.folder)?;
        let name = format!("fairlead-{}", task.run);
        let mut command = self.engine.command();
        command.args(["run", "--rm", "--name", &name, "--pull", "never"]);
        command
            .arg("--label")
            .arg(format!("{AGENT_LABEL}={}", self.engine.agent()));
        self.confine(&mut command, user);
        self.mount(&mut command, &entry)?;
        command.args(["--workdir", INSIDE, "--entrypoint", "/bin/sh"]);
        // The name may mean another image by now, so the id is used.
        command.arg(&fetched.id);
        command.arg(format!("{GUEST_INSIDE}/entry"));
        let container = Container {
            engine: Arc::clone(&self.engine),
            name,
            entry,
            _fetched: fetched,
        };
        Ok((command, container))
    }

    /// Adds all options that isolate it from the host and from other jobs.
    fn confine(&self, command: &mut Command, user: Option<&JobUser>) {
        let network = match self.network {
            Network::None => "none",
            Network::Bridge => "bridge",
        };
        command.args(["--network", network, "--read-only"]);
        command.args(["--security-opt", "no-new-privileges"]);
        // With SELinux the job's folder has no label of its own.
        command.args(["--security-opt", "label=disable"]);
        command.arg("--pids-limit").arg(PROCESSES_MAX.to_string());
        // The output is in the job's log.
        command.args(["--log-driver", "none"]);
        match self.engine.kind() {
            EngineKind::Podman => command.arg("--http-proxy=false"),
            // Podman adds these mounts by itself.
            EngineKind::Docker => command.args(["--tmpfs", "/tmp:exec", "--tmpfs", "/run"]),
        };
        if let Some(memory_mb) = self.memory_mb {
            let memory = format!("{memory_mb}m");
            command.args(["--memory", &memory, "--memory-swap", &memory]);
        }
        if let Some(cpus) = self.cpus {
            command.arg("--cpus").arg(cpus.to_string());
        }
        if let Some(user) = user {
            command.arg("--user").arg(format!("{0}:{0}", user.uid));
        }
    }

    fn mount(&self, command: &mut Command, entry: &Entry) -> io::Result<()> {
        let mut mount = |from: PathBuf, to: &str, is_writable: bool| {
            let mode = if is_writable { "rw" } else { "ro" };
            let from = from.into_os_string().into_string();
            let from = from.map_err(|_| io::Error::other("a path is not UTF-8"))?;
            command.arg("--volume").arg(format!("{from}:{to}:{mode}"));
            io::Result::Ok(())
        };
        mount(entry.home(), INSIDE, true)?;
        mount(entry.folder().to_owned(), GUEST_INSIDE, false)?;
        mount(entry.note(), &format!("{GUEST_INSIDE}/note"), true)?;
        let shared = self.shared.iter();
        // A job without a script has no such file.
        for (from, name, is_writable) in shared.filter(|(from, ..)| from.exists()) {
            mount(from.clone(), &format!("{INSIDE}/{name}"), *is_writable)?;
        }
        for cache in &self.caches {
            can_be_mounted(cache)?;
            mount(cache.clone(), &cache.to_string_lossy(), true)?;
        }
        Ok(())
    }
}

impl Container {
    /// Kills the container and removes its remains. It still exists only if its engine was killed.
    pub(crate) async fn remove(&self) {
        if let Err(error) = self.engine.remove(&self.name).await {
            tracing::warn!(container = self.name, %error, "cannot remove the container of a job");
        }
    }

    /// Returns its note, and the reason if it did not start its job. Blocks.
    pub(crate) fn after(&self, code: i32) -> (Note, Option<NotBegun>) {
        let note = self.entry.read();
        if note.has_begun {
            return (note, None);
        }
        let engine = self.engine.kind().as_str();
        let not_begun = |is_job, reason| Some(NotBegun { is_job, reason });
        let why = match code {
            ENGINE_FAILED => not_begun(
                false,
                format!("{engine} could not start its container; its message is in the output"),
            ),
            code if NO_SHELL.contains(&code) => not_begun(
                true,
                "its image has no /bin/sh that can run here".to_owned(),
            ),
            _ => None,
        };
        (note, why)
    }
}
