//! Which executors this host has, and which of them a job runs in.

use std::{path::PathBuf, sync::Arc};

use fairlead_api::{ExecutorSaid, Grant};
use fairlead_job::{CONTAINER_TAG, Guest, ImageName, TboxType, vm_image_tag};

use super::{
    container::ContainerPlan,
    digests::Digests,
    engine::{Engine, EngineKind},
    groups::{GroupLimits, Groups},
    machine::{Image, MachinePlan, Qemu, ResultLimits},
    process::Place,
};
use crate::{AgentConfig, BadConfig, ExecutorChoice, Kinds, blocking::blocking};

/// Reason why a job cannot run on this host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPlace {
    /// The job asks for something that no host may give it.
    #[error("{0}")]
    Job(String),
    /// This host lacks something that the job needs.
    #[error("{0}")]
    Host(String),
}

/// Executors of this host.
#[derive(Debug)]
pub(crate) struct Executors {
    pub(super) engine: Option<Arc<Engine>>,
    pub(super) machines: Option<Machines>,
    said: Vec<ExecutorSaid>,
    kinds: Kinds,
    pub(super) default_image: Option<String>,
    /// Registries or paths of images that jobs may name. Empty: all.
    registries: Vec<String>,
    caches: Vec<PathBuf>,
    groups: Groups,
    pub(super) digests: Arc<Digests>,
}

/// Setup of virtual machines.
#[derive(Debug)]
pub(super) struct Machines {
    qemu: Arc<Qemu>,
    pub(super) images: PathBuf,
    pub(super) default: String,
}

impl Executors {
    /// Finds the executors that `config` allows. `agent` is in the labels of all guests of this agent.
    ///
    /// # Errors
    /// Fails if a requested executor is missing or lacks a default image, or if no executor is left.
    pub(crate) async fn find(config: &AgentConfig, agent: &str) -> Result<Self, BadConfig> {
        let mut said = Vec::new();
        let (has_vm, has_dc) = match config.kinds {
            Kinds::Hw => (false, false),
            Kinds::Host { vm, dc } => (vm, dc),
        };
        let engine = find_engine(config, agent, &mut said).await?;
        if has_dc {
            check_default_image(config, engine.is_some(), &said)?;
        }
        let mut kinds = config.kinds;
        let mut machines = None;
        if has_vm && config.executor != ExecutorChoice::Process {
            match Machines::find(config).await {
                Ok(found) => {
                    said.push(usable("qemu", &found.qemu.version));
                    machines = Some(found);
                }
                Err(problem) => {
                    kinds = without_vm(config, has_dc, &problem)?;
                    said.push(ExecutorSaid {
                        problem,
                        ..usable("qemu", "")
                    });
                }
            }
        }
        said.push(usable("process", ""));
        let work_dir = config.work_dir.clone();
        let digests = blocking(move || Ok(Digests::open(&work_dir))).await;
        let digests =
            digests.map_err(|error| BadConfig(format!("images cannot be looked at: {error}")))?;
        let groups = Groups::find();
        if config.kinds != Kinds::Hw && !groups.can_limit() {
            tracing::warn!(
                "memory and processes of jobs are not limited, since no control groups can be made here (hint: run the agent as root, with Delegate=yes of systemd)"
            );
        }
        let caches = config.cache_dirs.iter().map(PathBuf::from);
        Ok(Self {
            engine,
            machines,
            said,
            kinds,
            default_image: config.default_image.clone(),
            registries: config.registries.clone(),
            groups,
            digests: Arc::new(digests),
            caches: caches
                .filter(|dir| dir.is_absolute() && dir.is_dir())
                .collect(),
        })
    }

    /// Returns the report for the scheduler.
    pub(crate) fn said(&self) -> Vec<ExecutorSaid> {
        self.said.clone()
    }

    /// Returns the control groups of a job. Processes of this host are limited, unless their job has the whole machine.
    pub(crate) fn groups(&self, grant: &Grant, place: &Place) -> Groups {
        let is_limited = self.kinds != Kinds::Hw && matches!(place, Place::Host);
        let limits = is_limited.then(|| GroupLimits::of(grant.memory_mb, grant.cpus));
        self.groups.limited(limits)
    }

    /// Returns the kinds of jobs that can run here.
    pub(crate) fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Returns the tags by which jobs that need an executor find this host.
    pub(crate) fn tags(&self) -> Vec<String> {
        let container = self.engine.as_ref().map(|_| CONTAINER_TAG.to_owned());
        let images = self.machines.iter().flat_map(|machines| {
            let names = Image::names(&machines.images);
            names.into_iter().map(|name| vm_image_tag(&name))
        });
        container.into_iter().chain(images).collect()
    }

    /// Removes all guests that an earlier run of this agent left.
    pub(crate) async fn clear_left(&self) {
        let Some(engine) = &self.engine else { return };
        match engine.remove_all().await {
            Ok(0) => {}
            Ok(removed) => tracing::warn!(removed, "removed containers of an earlier agent's jobs"),
            Err(error) => {
                tracing::warn!(%error, "cannot remove containers of an earlier agent's jobs");
            }
        }
    }

    /// Returns the place where a job runs. `shared` lists the parts of its folder that a guest sees.
    ///
    /// # Errors
    /// Fails if it needs an image that is not available here.
    pub(crate) fn place(
        &self,
        grant: &Grant,
        shared: Vec<(PathBuf, String, bool)>,
        limits: ResultLimits,
    ) -> Result<Place, NoPlace> {
        let kind = kind_of(grant);
        let guest = Guest::of(&grant.job, kind).map_err(|error| NoPlace::Job(error.to_string()))?;
        match kind {
            TboxType::Vm => self.machine(grant, guest, shared, limits),
            TboxType::Dc => self.container(grant, &guest, shared, self.default_image.as_deref()),
            TboxType::Hw => self.container(grant, &guest, shared, None),
        }
    }

    fn machine(
        &self,
        grant: &Grant,
        guest: Guest,
        shared: Vec<(PathBuf, String, bool)>,
        limits: ResultLimits,
    ) -> Result<Place, NoPlace> {
        let Some(machines) = &self.machines else {
            return match guest.image {
                None => Ok(Place::Host),
                Some(image) => Err(NoPlace::Host(format!(
                    "it names the image '{image}', and this testbox runs no virtual machines (hint: --executor auto)"
                ))),
            };
        };
        let name = guest.image.as_ref().unwrap_or(&machines.default);
        let image = Image::find(&machines.images, name);
        Ok(Place::Machine(Box::new(MachinePlan {
            qemu: Arc::clone(&machines.qemu),
            image: image
                .map_err(|error| NoPlace::Host(format!("its image cannot be had: {error}")))?,
            network: guest.network,
            memory_mb: grant.guest_memory_mb.unwrap_or(grant.memory_mb),
            cpus: grant.cpus,
            shared,
            limits,
        })))
    }

    fn container(
        &self,
        grant: &Grant,
        guest: &Guest,
        shared: Vec<(PathBuf, String, bool)>,
        default: Option<&str>,
    ) -> Result<Place, NoPlace> {
        let is_hw = self.kinds == Kinds::Hw;
        let Some(name) = guest.image.as_deref().or(default) else {
            return Ok(Place::Host);
        };
        let Some(engine) = &self.engine else {
            return Err(NoPlace::Host(format!(
                "it names the image '{name}', and this testbox runs no containers (hint: install podman there)"
            )));
        };
        let image: ImageName = name
            .parse()
            .map_err(|error| NoPlace::Job(format!("its image is '{name}': {error}")))?;
        if guest.image.is_some() && !self.allows(&image) {
            return Err(NoPlace::Job(format!(
                "its image '{}' is in none of the registries that this testbox allows (hint: name one of {})",
                image.full(),
                self.registries.join(", ")
            )));
        }
        Ok(Place::Container(Box::new(ContainerPlan {
            engine: Arc::clone(engine),
            image,
            network: guest.network,
            memory_mb: (!is_hw).then_some(grant.memory_mb),
            cpus: (!is_hw).then_some(grant.cpus),
            shared,
            caches: self.caches.clone(),
            fetched: None,
        })))
    }

    /// Returns true if jobs may name this image.
    fn allows(&self, image: &ImageName) -> bool {
        let mut places = self.registries.iter();
        self.registries.is_empty() || places.any(|place| image.is_of(place))
    }
}

/// Returns the kind of a job.
pub(super) fn kind_of(grant: &Grant) -> TboxType {
    match grant.tbox_type.as_str() {
        "vm" => TboxType::Vm,
        "dc" => TboxType::Dc,
        _ => TboxType::Hw,
    }
}

impl Machines {
    async fn find(config: &AgentConfig) -> Result<Self, String> {
        let found = Qemu::find(&config.arch, &config.path, &config.work_dir).await;
        let qemu = Arc::new(found.map_err(|error| error.to_string())?);
        let images = config.vm_images.clone();
        let images = images.unwrap_or_else(|| config.work_dir.join("images"));
        let default = match &config.default_vm_image {
            Some(name) => name.clone(),
            None => match Image::names(&images).as_slice() {
                [only] => only.clone(),
                [] => {
                    return Err(format!(
                        "there is no image in {} (hint: fairlead-testbox image build busybox)",
                        images.display()
                    ));
                }
                several => {
                    return Err(format!(
                        "there are {} images (hint: --default-vm-image NAME)",
                        several.len()
                    ));
                }
            },
        };
        Image::find(&images, &default).map_err(|error| error.to_string())?;
        Ok(Self {
            qemu,
            images,
            default,
        })
    }
}

/// Returns the engines to look for, best first.
fn engines(choice: ExecutorChoice) -> &'static [EngineKind] {
    match choice {
        ExecutorChoice::Auto | ExecutorChoice::Qemu => &[EngineKind::Podman, EngineKind::Docker],
        ExecutorChoice::Process => &[],
        ExecutorChoice::Podman => &[EngineKind::Podman],
        ExecutorChoice::Docker => &[EngineKind::Docker],
    }
}

/// Returns the first allowed engine that works here.
async fn find_engine(
    config: &AgentConfig,
    agent: &str,
    said: &mut Vec<ExecutorSaid>,
) -> Result<Option<Arc<Engine>>, BadConfig> {
    for kind in engines(config.executor) {
        let images_mb_max = config.image_cache_mb;
        match Engine::find(*kind, &config.path, &config.work_dir, agent, images_mb_max).await {
            Ok(found) => {
                found.trim_images().await;
                said.push(usable(kind.as_str(), found.version()));
                return Ok(Some(Arc::new(found)));
            }
            Err(error) => said.push(ExecutorSaid {
                problem: error.to_string(),
                ..usable(kind.as_str(), "")
            }),
        }
    }
    let is_needed = matches!(
        config.executor,
        ExecutorChoice::Podman | ExecutorChoice::Docker
    );
    match said.first().filter(|_| is_needed) {
        Some(one) => Err(BadConfig(format!("--executor {}", one.problem))),
        None => Ok(None),
    }
}

/// Checks that dc jobs without an image have a default image, if they need one.
fn check_default_image(
    config: &AgentConfig,
    has_engine: bool,
    said: &[ExecutorSaid],
) -> Result<(), BadConfig> {
    if config.default_image.is_some() && has_engine {
        return Ok(());
    }
    match config.executor {
        ExecutorChoice::Podman | ExecutorChoice::Docker => Err(BadConfig(format!(
            "--executor {} needs an image for jobs that name none (hint: --default-image debian:12)",
            config.executor
        ))),
        ExecutorChoice::Process => Ok(()),
        ExecutorChoice::Auto | ExecutorChoice::Qemu => {
            let hint = if has_engine {
                "--default-image IMAGE runs them in containers"
            } else {
                "install podman, or accept it with --executor process"
            };
            let problem = said.first().map_or("", |one| one.problem.as_str());
            tracing::warn!(
                problem,
                "dc jobs that name no image run as processes of this host (hint: {hint})"
            );
            Ok(())
        }
    }
}

/// Returns the kinds that remain if no virtual machine can run.
fn without_vm(config: &AgentConfig, has_dc: bool, problem: &str) -> Result<Kinds, BadConfig> {
    if config.executor == ExecutorChoice::Qemu || !has_dc {
        return Err(BadConfig(format!(
            "vm jobs cannot run in virtual machines here: {problem} (hint: --executor process runs them as processes)"
        )));
    }
    tracing::warn!(
        problem,
        "this host offers no vm: virtual machines cannot run here (hint: --executor process runs vm jobs as processes)"
    );
    Ok(Kinds::Host {
        vm: false,
        dc: true,
    })
}

fn usable(name: &str, version: &str) -> ExecutorSaid {
    ExecutorSaid {
        name: name.to_owned(),
        version: version.to_owned(),
        problem: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{DC, config, grant};

    #[tokio::test]
    async fn a_job_with_an_image_never_runs_as_a_process() {
        let dir = tempfile::tempdir().unwrap();
        let config = config("http://x", DC, dir.path());
        assert_eq!(config.executor, ExecutorChoice::Process);
        let executors = Executors::find(&config, "a").await.unwrap();
        assert_eq!(executors.tags(), [""; 0]);
        let limits = ResultLimits { files: 1, bytes: 1 };
        let place = |kind: &str, job| {
            let mut grant = grant("7", job);
            kind.clone_into(&mut grant.tbox_type);
            executors.place(&grant, Vec::new(), limits)
        };
        for (kind, field) in [
            ("dc", "docker_image"),
            ("hw", "docker_image"),
            ("vm", "vm_image"),
        ] {
            assert!(matches!(place(kind, json!({})), Ok(Place::Host)));
            let refused = place(kind, json!({field: "debian:12"}))
                .unwrap_err()
                .to_string();
            assert!(
                refused.contains("debian:12") && refused.contains("hint"),
                "{refused}"
            );
        }
    }

    #[tokio::test]
    async fn a_host_without_qemu_offers_no_vm_unless_they_may_be_processes() {
        let dir = tempfile::tempdir().unwrap();
        let config = |executor, dc| AgentConfig {
            executor,
            path: "/nowhere".to_owned(),
            ..config("http://x", Kinds::Host { vm: true, dc }, dir.path())
        };
        let found = Executors::find(&config(ExecutorChoice::Auto, true), "a").await;
        let found = found.unwrap();
        assert_eq!(found.kinds().words(), ["dc"]);
        let qemu = found
            .said()
            .into_iter()
            .find(|one| one.name == "qemu")
            .unwrap();
        assert!(qemu.problem.contains("qemu-system"), "{qemu:?}");
        for (executor, dc) in [(ExecutorChoice::Auto, false), (ExecutorChoice::Qemu, true)] {
            let error = Executors::find(&config(executor, dc), "a")
                .await
                .unwrap_err();
            assert!(error.to_string().contains("--executor process"), "{error}");
        }
        let found = Executors::find(&config(ExecutorChoice::Process, true), "a").await;
        assert_eq!(found.unwrap().kinds().words(), ["vm", "dc"]);
    }

    #[tokio::test]
    async fn an_engine_that_is_asked_for_by_name_must_be_here() {
        let dir = tempfile::tempdir().unwrap();
        let config = AgentConfig {
            executor: ExecutorChoice::Podman,
            path: "/nowhere".to_owned(),
            ..config("http://x", DC, dir.path())
        };
        let error = Executors::find(&config, "a").await.unwrap_err().to_string();
        assert!(error.contains("install the package podman"), "{error}");
        let config = AgentConfig {
            executor: ExecutorChoice::Auto,
            ..config
        };
        let executors = Executors::find(&config, "a").await.unwrap();
        let said = executors.said();
        let names: Vec<_> = said.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["podman", "docker", "qemu", "process"]);
        assert!(said[0].problem.contains("not installed"), "{said:?}");
    }
}
