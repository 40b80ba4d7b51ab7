//! A container engine, podman or docker, by its command line.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fairlead_job::ImageName;
use rustix::process::{Resource, getrlimit};
use tokio::process::Command;

use super::{
    image_cache::{ImageCache, ImageUse},
    tool::{ToolError, ask, on_path},
};

/// Timeout of a query to an engine.
const ASK_MAX: Duration = Duration::from_secs(30);
/// Timeout of fetching an image from its registry.
const PULL_MAX: Duration = Duration::from_mins(30);
/// Label with the name of the agent that started a container.
pub(crate) const AGENT_LABEL: &str = "fairlead.agent";
/// Folder of an engine in the agent's work folder.
const FOLDER: &str = "engine";
/// File that exists if control groups are version 2.
const CGROUP_2: &str = "/sys/fs/cgroup/cgroup.controllers";

/// Number of hexadecimal digits of an image's id.
const ID_DIGITS: usize = 64;

/// Kind of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineKind {
    Podman,
    Docker,
}

impl EngineKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// Returns the Debian package of the engine.
    fn package(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker.io",
        }
    }
}

/// An engine that works here.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    kind: EngineKind,
    version: String,
    path: String,
    /// This agent's own folder for the engine. Only the engine writes there: its monitor leaves a file there when a
    /// container runs out of memory.
    folder: PathBuf,
    /// Podman configuration of this agent.
    configuration: Option<PathBuf>,
    /// Name of this agent, in the labels of its containers.
    agent: String,
    /// Images that the engine fetched.
    images: Arc<ImageCache>,
    /// Maximum size of these images together, MB.
    images_mb_max: u32,
}

/// An image on this host. It stays until this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    /// Id of the image's content. Another image under the same name has another id.
    pub(crate) id: String,
    _held: Arc<ImageUse>,
}

impl Engine {
    /// Finds an engine on `path`. `agent` is in the labels of its containers.
    ///
    /// # Errors
    /// Fails if it is not installed, or does not work here.
    pub(crate) async fn find(
        kind: EngineKind,
        path: &str,
        work_dir: &Path,
        agent: &str,
        images_mb_max: u32,
    ) -> Result<Self, ToolError> {
        let mut engine = Self {
            kind,
            version: String::new(),
            path: path.to_owned(),
            folder: work_dir.join(FOLDER),
            configuration: None,
            agent: agent.to_owned(),
            images: ImageCache::open(&work_dir.join(FOLDER)),
            images_mb_max,
        };
        let failed = |said: String| ToolError::Failed {
            program: kind.as_str().to_owned(),
            said,
        };
        fs::create_dir_all(&engine.folder)
            .map_err(|error| failed(format!("its folder cannot be made: {error}")))?;
        let said = engine.ask(&["--version"], ASK_MAX).await?;
        engine.version = version_in(&said);
        if kind == EngineKind::Podman {
            let file = engine.folder.join("containers.conf");
            let text = configuration(path).map_err(failed)?;
            fs::write(&file, text)
                .map_err(|error| failed(format!("its configuration cannot be written: {error}")))?;
            engine.configuration = Some(file);
        }
        engine
            .ask(&["info", "--format", "{{.Host}}"], ASK_MAX)
            .await
            .or_else(|error| {
                // Docker's information has no such part, but Docker has answered.
                if kind == EngineKind::Docker && !error.to_string().contains("daemon") {
                    Ok(String::new())
                } else {
                    Err(error)
                }
            })?;
        Ok(engine)
    }

    pub(crate) fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Returns its version, for example `4.3.1`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns a call of the engine without arguments. It has the agent's environment, which no container gets.
    pub(crate) fn command(&self) -> Command {
        let program = on_path(&self.path, self.kind.as_str());
        let mut command = Command::new(program.unwrap_or_else(|| self.kind.as_str().into()));
        command.env("PATH", &self.path).current_dir(&self.folder);
        if let Some(file) = &self.configuration {
            command.env("CONTAINERS_CONF", file);
        }
        command
    }

    async fn ask(&self, args: &[&str], limit: Duration) -> Result<String, ToolError> {
        let mut command = self.command();
        command.args(args);
        ask(command, self.kind.package(), limit).await
    }

    /// Fetches an image from its registry, unless it is here. It stays until the answer is dropped.
    ///
    /// # Errors
    /// Fails if the registry lacks it, is unreachable, or takes longer than 30 minutes.
    pub(crate) async fn fetch(&self, image: &ImageName) -> Result<Fetched, ToolError> {
        let name = image.full();
        let (held, is_here) = {
            let _looking = self.images.changing.read().await;
            let held = self.images.hold(name);
            (held, self.size(name).await.is_ok())
        };
        let id = if is_here {
            self.id(image).await?
        } else {
            self.pull(image).await?
        };
        if let Err(error) = self.images.note(name, !is_here) {
            tracing::warn!(image = name, %error, "the use of an image cannot be noted");
        }
        if !is_here {
            self.trim_images().await;
        }
        Ok(Fetched {
            id,
            _held: Arc::new(held),
        })
    }

    /// Fetches an image from its registry, and returns its id.
    async fn pull(&self, image: &ImageName) -> Result<String, ToolError> {
        let name = image.full();
        tracing::info!(
            image = name,
            engine = self.kind.as_str(),
            "getting an image"
        );
        let from = match self.kind {
            // Without the transport, podman may resolve the name to something other than a registry's image.
            EngineKind::Podman => format!("docker://{name}"),
            EngineKind::Docker => name.to_owned(),
        };
        let said = self.ask(&["pull", "--quiet", &from], PULL_MAX).await?;
        match id_in(&said) {
            Some(id) => Ok(id),
            // Docker prints only the name.
            None => self.id(image).await,
        }
    }

    /// Returns the id of an image on this host.
    ///
    /// # Errors
    /// Fails if it is not here, or if the engine does not answer.
    pub(super) async fn id(&self, image: &ImageName) -> Result<String, ToolError> {
        let inspect = ["image", "inspect", "--format", "{{.Id}}", image.full()];
        let said = self.ask(&inspect, ASK_MAX).await?;
        id_in(&said).ok_or_else(|| ToolError::Failed {
            program: self.kind.as_str().to_owned(),
            said: format!("no digest of {}", image.full()),
        })
    }

    /// Returns the size of an image on this host, bytes.
    async fn size(&self, image: &str) -> Result<u64, ToolError> {
        let inspect = ["image", "inspect", "--format", "{{.Size}}", image];
        let said = self.ask(&inspect, ASK_MAX).await?;
        Ok(said.trim().parse().unwrap_or(0))
    }

    /// Removes unused images that this agent fetched, the least recently used first, until the others are within the
    /// limit.
    pub(crate) async fn trim_images(&self) {
        let _changing = self.images.changing.write().await;
        let mut sizes = Vec::new();
        for (image, is_used) in self.images.by_age() {
            match self.size(&image).await {
                Ok(bytes) => sizes.push((image, is_used, bytes)),
                // Another process removed the image.
                Err(_) => self.forget_image(&image),
            }
        }
        let most = u64::from(self.images_mb_max) << 20;
        let mut total: u64 = sizes.iter().map(|(_, _, bytes)| bytes).sum();
        for (image, _, bytes) in sizes.iter().filter(|(_, is_used, _)| !is_used) {
            if total <= most {
                break;
            }
            // An image with a container of another user stays.
            match self.ask(&["image", "rm", image], ASK_MAX).await {
                Ok(_) => {
                    tracing::info!(image, bytes, "an image that was not used lately is removed");
                    self.forget_image(image);
                    total = total.saturating_sub(*bytes);
                }
                Err(error) => tracing::warn!(image, %error, "an image cannot be removed"),
            }
        }
    }

    fn forget_image(&self, image: &str) {
        if let Err(error) = self.images.forget(image) {
            tracing::warn!(image, %error, "the list of images cannot be written");
        }
    }

    /// Kills and removes the container of this name, if it exists.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), ToolError> {
        let removed = match self.kind {
            EngineKind::Podman => {
                let remove = [
                    "rm",
                    "--force",
                    "--ignore",
                    "--time",
                    "0",
                    "--volumes",
                    name,
                ];
                self.ask(&remove, ASK_MAX).await
            }
            EngineKind::Docker => {
                self.ask(&["rm", "--force", "--volumes", name], ASK_MAX)
                    .await
            }
        };
        match removed {
            Err(error)
                if error
                    .to_string()
                    .to_lowercase()
                    .contains("no such container") =>
            {
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }

    /// Removes all containers that this agent started. Returns their number.
    pub(crate) async fn remove_all(&self) -> Result<usize, ToolError> {
        let filter = format!("label={AGENT_LABEL}={}", self.agent);
        let list = ["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter];
        let said = self.ask(&list, ASK_MAX).await?;
        let mut removed = 0;
        for id in said.lines().map(str::trim).filter(|id| !id.is_empty()) {
            self.remove(id).await?;
            removed += 1;
        }
        Ok(removed)
    }
}

/// Returns the version from `podman version 4.3.1` or `Docker version 20.10.24+dfsg1, build 297e128`.
fn version_in(said: &str) -> String {
    let mut words = said.split_whitespace();
    let version = words.by_ref().skip_while(|word| *word != "version").nth(1);
    version.unwrap_or_default().trim_end_matches(',').to_owned()
}

/// Returns the image id from the last line of an engine's answer. Both engines accept it without `sha256:`.
fn id_in(said: &str) -> Option<String> {
    let last = said.trim().lines().next_back()?;
    let digits = last.strip_prefix("sha256:").unwrap_or(last);
    let is_id = digits.len() == ID_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| digits.to_owned())
}

/// Returns Podman's configuration: a runtime that works with these control groups, no systemd, and limits that this
/// agent may set.
fn configuration(path: &str) -> Result<String, String> {
    let is_second = Path::new(CGROUP_2).exists();
    let has = |program: &str| on_path(path, program).is_some();
    let runtime = match (is_second, has("runc"), has("crun")) {
        (_, true, false) | (false, true, true) => "runc",
        (true, _, true) => "crun",
        (false, false, _) => {
            return Err(
                "crun refuses control groups of version 1 (hint: install the package runc)"
                    .to_owned(),
            );
        }
        (true, false, false) => {
            return Err(
                "no runtime is installed (hint: install the package crun or runc)".to_owned(),
            );
        }
    };
    let has_systemd = Path::new("/run/systemd/system").exists();
    let manager = if has_systemd && is_second {
        "systemd"
    } else {
        "cgroupfs"
    };
    // Without CAP_SYS_RESOURCE no limit can be raised, and podman itself is limited to the maximum process id.
    let pids = fs::read_to_string("/proc/sys/kernel/pid_max");
    let pids = pids.ok().and_then(|text| text.trim().parse().ok());
    let limit = |word: &str, resource: Resource, most: u64| {
        let most = getrlimit(resource)
            .maximum
            .map_or(most, |hard| hard.min(most));
        (most < u64::MAX).then(|| format!("\"{word}={most}:{most}\""))
    };
    let limits = [
        limit("nofile", Resource::Nofile, u64::MAX),
        limit("nproc", Resource::Nproc, pids.unwrap_or(u64::MAX)),
    ];
    let limits = limits.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Ok(format!(
        "[containers]\ndefault_ulimits = [{limits}]\n\n[engine]\nruntime = \"{runtime}\"\ncgroup_manager = \"{manager}\"\nevents_logger = \"file\"\n"
    ))
}

/// Fails if an engine cannot mount this path, because commas and colons have a meaning there.
pub(crate) fn can_be_mounted(path: &Path) -> io::Result<()> {
    let shown = path.to_string_lossy();
    if shown.contains([',', ':', '"', '\n']) {
        return Err(io::Error::other(format!(
            "'{shown}' cannot be mounted (hint: choose a --work-dir without commas, colons and quotes)"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_tell_their_version() {
        assert_eq!(version_in("podman version 4.3.1\n"), "4.3.1");
        let docker = "Docker version 20.10.24+dfsg1, build 297e128\n";
        assert_eq!(version_in(docker), "20.10.24+dfsg1");
        assert_eq!(version_in("?"), "");
    }

    #[test]
    fn an_image_is_known_by_its_digits_alone() {
        let id = "0a".repeat(32);
        assert_eq!(id_in(&format!("{id}\n")), Some(id.clone()));
        assert_eq!(id_in(&format!("Trying…\nsha256:{id}\n")), Some(id.clone()));
        for said in ["", "docker.io/library/debian:12\n", &id[1..], "sha256:"] {
            assert_eq!(id_in(said), None, "{said}");
        }
    }

    #[test]
    fn a_path_with_the_engine_s_own_signs_is_refused() {
        assert!(can_be_mounted(Path::new("/w/7-1")).is_ok());
        assert!(can_be_mounted(Path::new("/w:x/7-1")).is_err());
    }
}
