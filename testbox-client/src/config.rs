//! Configuration of an agent. Only this module reads the environment.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use fairlead_api::{ConsumeRequest, ExecutorSaid};
use fairlead_job::ImageName;
use tokio_util::sync::CancellationToken;

use crate::{
    BadConfig, JobUsers, UserRange,
    facts::Facts,
    protocol::{Host, LOADED_REST},
};

/// Where programs are looked for when the agent itself was started without a `PATH`.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Most jobs that one request may ask for, a limit of the wire.
const JOBS_MAX: u32 = 256;
/// Longest long poll, seconds, a limit of the wire.
const WAIT_S_MAX: u32 = 600;

/// What kinds of testbox a host offers. A host is either hw or a provider of vm and dc, never both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// The machine itself: one job at a time, on the whole of it.
    Hw,
    /// Many jobs at once within the host's memory.
    Host {
        /// Virtual machines.
        vm: bool,
        /// Containers.
        dc: bool,
    },
}

impl Kinds {
    /// The words on the wire.
    pub fn words(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Hw => &["hw"],
            Self::Host { vm: true, dc: true } => &["vm", "dc"],
            Self::Host {
                vm: true,
                dc: false,
            } => &["vm"],
            Self::Host {
                vm: false,
                dc: true,
            } => &["dc"],
            Self::Host { .. } => &[],
        };
        words.iter().copied().map(str::to_owned).collect()
    }
}

impl FromStr for Kinds {
    type Err = BadConfig;

    /// Reads `hw`, `vm`, `dc` or `vm,dc`.
    fn from_str(text: &str) -> Result<Self, BadConfig> {
        let words: Vec<_> = text.split(',').map(str::trim).collect();
        let has = |word| words.contains(&word);
        if words == ["hw"] {
            Ok(Self::Hw)
        } else if words.iter().all(|word| matches!(*word, "vm" | "dc")) {
            Ok(Self::Host {
                vm: has("vm"),
                dc: has("dc"),
            })
        } else {
            Err(BadConfig(format!(
                "kind '{text}' is none (hint: hw alone, or vm, dc or vm,dc)"
            )))
        }
    }
}

/// What an agent runs jobs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExecutorChoice {
    /// vm jobs in machines of QEMU. dc jobs in containers of podman, else of docker, where the job or the site names
    /// an image. All others as processes.
    #[default]
    Auto,
    /// All jobs as processes of this host. Jobs that name an image go to other hosts.
    Process,
    /// dc jobs in containers of podman, and nothing else will do.
    Podman,
    /// dc jobs in containers of docker, and nothing else will do.
    Docker,
    /// vm jobs in machines of QEMU, and nothing else will do.
    Qemu,
}

impl ExecutorChoice {
    const ALL: [(&'static str, Self); 5] = [
        ("auto", Self::Auto),
        ("process", Self::Process),
        ("podman", Self::Podman),
        ("docker", Self::Docker),
        ("qemu", Self::Qemu),
    ];
}

impl fmt::Display for ExecutorChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::ALL.iter().find(|(_, choice)| choice == self);
        f.write_str(word.map_or("auto", |(word, _)| word))
    }
}

impl FromStr for ExecutorChoice {
    type Err = BadConfig;

    fn from_str(text: &str) -> Result<Self, BadConfig> {
        let found = Self::ALL.into_iter().find(|(word, _)| *word == text);
        found.map(|(_, choice)| choice).ok_or_else(|| {
            let words = Self::ALL.map(|(word, _)| word).join(", ");
            BadConfig(format!("executor '{text}' is none (hint: {words})"))
        })
    }
}

/// How an agent works. Begin with [`AgentConfig::new`] and change what differs.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Base URLs of the scheduler's replicas, at least one.
    pub servers: Vec<String>,
    /// Token of the testbox's account; `None` where the scheduler is open.
    pub token: Option<String>,
    /// The file that the token came from: it is read again when the scheduler refuses the token.
    pub token_file: Option<PathBuf>,
    /// Name of the host, 1 to 128 characters, unique in the lab: a second agent with the same name
    /// takes over.
    pub host: String,
    /// Its group; empty: the host name up to `--`, as the scheduler derives it.
    pub group: String,
    /// What it offers.
    pub kinds: Kinds,
    /// The address under which other testboxes reach it, for jobs on several machines; `None`: the one from which it
    /// reaches the scheduler.
    pub address: Option<String>,
    /// Its architecture, for example `x86_64`. Default: this program's.
    pub arch: String,
    /// Memory that jobs may take together, MB, at least 1. A job that takes more than its part is killed where the agent can
    /// make control groups.
    pub memory_mb: u32,
    /// CPUs that jobs may take together, 1 to 65,536. `None`: they are not counted. Default: `None`.
    pub cpus: Option<u32>,
    /// Tags that it has.
    pub tags: Vec<String>,
    /// Devices that it has.
    pub devices: Vec<String>,
    /// Cache directories that it holds.
    pub cache_dirs: Vec<String>,
    /// Where jobs have their folders. One agent at a time uses it.
    pub work_dir: PathBuf,
    /// What jobs run in. Default: as processes.
    pub executor: ExecutorChoice,
    /// The image of dc jobs that name none, an [`ImageName`]. `None`: they run as processes. Default: `None`.
    pub default_image: Option<String>,
    /// Registries, or beginnings of paths in registries, whose images jobs may name, such as `docker.io` or
    /// `registry.example/team`. Empty: all. Default: empty.
    pub registries: Vec<String>,
    /// What the images of containers that it got from registries may take together, MB; the least recently used ones
    /// go. Default: 50 GB.
    pub image_cache_mb: u32,
    /// Most that the cache of inputs takes of its disk, MB; the least recently used files go. 0: nothing is kept. `None`: 20
    /// GB, or a tenth of a smaller disk. Default: `None`.
    pub input_cache_mb: Option<u32>,
    /// Folder of the cache of inputs, used by one agent at a time. `None`: `cache` in the work folder.
    pub input_cache_dir: Option<PathBuf>,
    /// Folder of the images of virtual machines, each a folder of its own. `None`: `images` in the work folder.
    pub vm_images: Option<PathBuf>,
    /// The image of vm jobs that name none. `None`: the only one that there is.
    pub default_vm_image: Option<String>,
    /// Under which users `vm` and `dc` jobs run. Anything but the default needs a program that calls
    /// [`launched`](crate::launched) first. Default: the agent's own.
    pub job_users: JobUsers,
    /// The command for jobs that have program sections and no `script`: run by `/bin/sh` with the path
    /// of the job's `job.yaml` as its argument. `None`: such jobs end with health `abort_invalid`.
    pub runner: Option<String>,
    /// Folder of the site's scripts around each job: `prolog` and `epilog`, also in `kind/KIND` and `group/GROUP`.
    /// `None`: there are none. Default: `None`.
    pub hooks: Option<PathBuf>,
    /// How long each of these scripts may take. Default 60 s.
    pub hook_limit: Duration,
    /// Whether a job that fails without output and without a result is a failure of this machine. Default false.
    pub silent_is_fault: bool,
    /// Most jobs at once, 1 to 256; a hw box runs one. Default 64.
    pub jobs_max: u32,
    /// How long the scheduler holds a request for work, seconds, 0 to 600. Default 30.
    pub wait_s: u32,
    /// Returns when the first answer that holds jobs is run to its end and delivered. Default false.
    pub once: bool,
    /// Keeps the folders of jobs that are over, with all that is in them but secrets. Default false.
    pub keep: bool,
    /// How long a job may take to end by itself after the polite signal, where no order says
    /// otherwise. Default 10 s.
    pub grace: Duration,
    /// How long a stopping agent tries to deliver ends before it leaves them to its next start.
    /// Default 10 s.
    pub report_on_stop: Duration,
    /// How long the end of a job waits for a lab that cannot store its files, because the data folder is full or broken.
    /// Then the job ends without them. Default 10 s.
    pub store_wait: Duration,
    /// Most output that is kept and sent for one job, bytes; then comes a line that says so.
    /// Default 64 MiB.
    pub log_bytes_max: u64,
    /// Most files that one job's results may have. Default 10,000.
    pub result_files_max: usize,
    /// Most bytes that one job's results may have. Default 4 GiB.
    pub result_bytes_max: u64,
    /// Below which folder `proc` and `sys` are, from which the load of the machine is read every 2 s. `None`: it is not
    /// measured, so the host is never loaded. Default: `None`.
    pub load_root: Option<PathBuf>,
    /// How long a loaded host must stay below 80 % of its memory until it is so no more. Default 30 s.
    pub loaded_rest: Duration,
    /// Where jobs look for programs. Default: the agent's own `PATH`.
    pub path: String,
    /// Cancelled by the owner to kill all jobs without grace, after or instead of a polite stop.
    pub kill_now: CancellationToken,
}

impl AgentConfig {
    /// The defaults for this host.
    pub fn new(
        servers: Vec<String>,
        host: impl Into<String>,
        kinds: Kinds,
        memory_mb: u32,
        work_dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            servers,
            token: None,
            token_file: None,
            host: host.into(),
            group: String::new(),
            kinds,
            address: None,
            arch: std::env::consts::ARCH.to_owned(),
            memory_mb,
            cpus: None,
            tags: Vec::new(),
            devices: Vec::new(),
            cache_dirs: Vec::new(),
            work_dir: work_dir.into(),
            executor: ExecutorChoice::Process,
            default_image: None,
            registries: Vec::new(),
            image_cache_mb: 50 << 10,
            input_cache_mb: None,
            input_cache_dir: None,
            vm_images: None,
            default_vm_image: None,
            job_users: JobUsers::Agent,
            runner: None,
            hooks: None,
            hook_limit: Duration::from_mins(1),
            silent_is_fault: false,
            jobs_max: 64,
            wait_s: 30,
            once: false,
            keep: false,
            grace: Duration::from_secs(10),
            report_on_stop: Duration::from_secs(10),
            store_wait: Duration::from_secs(10),
            log_bytes_max: 64 * 1024 * 1024,
            result_files_max: 10_000,
            result_bytes_max: 4 * 1024 * 1024 * 1024,
            load_root: None,
            loaded_rest: LOADED_REST,
            path: path_of_agent(),
            kill_now: CancellationToken::new(),
        }
    }

    /// Checks what can be checked without a scheduler.
    pub fn check(&self) -> Result<(), BadConfig> {
        let bad = |text: String| Err(BadConfig(text));
        let chars = self.host.chars().count();
        if !(1..=128).contains(&chars) || self.host.contains(['/', '\0']) {
            return bad(format!(
                "host name '{}' cannot be used (hint: 1 to 128 characters, no '/')",
                self.host.chars().take(140).collect::<String>()
            ));
        }
        if self.kinds.words().is_empty() {
            return bad(
                "the host offers no kind of testbox (hint: --kind hw, or vm,dc)".to_owned(),
            );
        }
        if self.memory_mb == 0 {
            return bad("memory of 0 MB (hint: at least 1, as in --memory 20g)".to_owned());
        }
        if self.cpus == Some(0) {
            return bad("0 CPUs (hint: at least 1, as in --cpus 8)".to_owned());
        }
        if let Some(image) = &self.default_image
            && let Err(error) = image.parse::<ImageName>()
        {
            return bad(format!("default image '{image}': {error}"));
        }
        let mut registries = self.registries.iter();
        if let Some(other) = registries.find(|place| !ImageName::is_place(place)) {
            return bad(format!(
                "registry '{other}' is none (hint: docker.io, registry.example:5000 or registry.example/team)"
            ));
        }
        if !(1..=JOBS_MAX).contains(&self.jobs_max) {
            return bad(format!(
                "{} jobs at once (hint: 1 to {JOBS_MAX})",
                self.jobs_max
            ));
        }
        if self.wait_s > WAIT_S_MAX {
            return bad(format!(
                "a wait of {} s (hint: 0 to {WAIT_S_MAX})",
                self.wait_s
            ));
        }
        Ok(())
    }

    /// What the scheduler is told of this host; `executors` with the tags that they give it.
    pub(crate) fn host(
        &self,
        session: &str,
        instance: &str,
        isolation: &str,
        executors: (Vec<ExecutorSaid>, Vec<String>),
        facts: Facts,
    ) -> Host {
        let (executors, mut tags) = executors;
        tags.extend(self.tags.iter().cloned());
        Host {
            says: ConsumeRequest {
                content: Vec::new(),
                load: None,
                session: session.to_owned(),
                request: 0,
                seen: None,
                kinds: self.kinds.words(),
                arch: self.arch.clone(),
                group: self.group.clone(),
                memory_mb: self.memory_mb,
                free_memory_mb: self.memory_mb,
                cpus: self.cpus,
                free_cpus: self.cpus,
                tags,
                devices: self.devices.clone(),
                cache_dirs: self.cache_dirs.clone(),
                jobs_max: self.slots(),
                wait_s: self.wait_s,
                running: Vec::new(),
                instance: instance.to_owned(),
                isolation: isolation.to_owned(),
                executors,
                facts,
            },
            grace: self.grace,
            once: self.once,
            loaded_rest: self.loaded_rest,
        }
    }

    /// How many jobs may run at once.
    fn slots(&self) -> u32 {
        match self.kinds {
            Kinds::Hw => 1,
            Kinds::Host { .. } => {
                let users = self.job_users.range().map_or(u32::MAX, UserRange::len);
                self.jobs_max.min(users)
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the agent's one place that reads the environment"
)]
fn path_of_agent() -> String {
    std::env::var("PATH").unwrap_or_else(|_| PATH_DEFAULT.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_hw_alone_or_vm_and_dc() {
        for (text, words) in [
            ("hw", vec!["hw"]),
            ("vm", vec!["vm"]),
            ("dc, vm", vec!["vm", "dc"]),
        ] {
            assert_eq!(text.parse::<Kinds>().unwrap().words(), words);
        }
        for text in ["", "hw,vm", "qemu", "vm,,dc"] {
            assert!(text.parse::<Kinds>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_choice_is_one_of_the_words() {
        for (word, choice) in ExecutorChoice::ALL {
            assert_eq!(word.parse(), Ok(choice));
            assert_eq!(choice.to_string(), word);
        }
        let error = "lxc".parse::<ExecutorChoice>().unwrap_err().to_string();
        assert!(
            error.contains("auto, process, podman, docker, qemu"),
            "{error}"
        );
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_hint() {
        let good = crate::testing::config("http://x", Kinds::Hw, "/tmp");
        assert_eq!(good.check(), Ok(()));
        let broken: [fn(&mut AgentConfig); 8] = [
            |c| c.default_image = Some("oci:/srv/image".to_owned()),
            |c| c.registries = vec!["docker.io".to_owned(), "debian".to_owned()],
            |c| c.host = String::new(),
            |c| c.host = "a/b".to_owned(),
            |c| {
                c.kinds = Kinds::Host {
                    vm: false,
                    dc: false,
                }
            },
            |c| c.memory_mb = 0,
            |c| c.jobs_max = 257,
            |c| c.wait_s = 601,
        ];
        for break_it in broken {
            let mut config = good.clone();
            break_it(&mut config);
            assert!(config.check().unwrap_err().to_string().contains("hint"));
        }
    }
}
