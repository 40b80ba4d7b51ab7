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

/// Search path for programs if the agent was started without a `PATH`.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Maximum number of jobs that one request may ask for, a limit of the protocol.
const JOBS_MAX: u32 = 256;
/// Maximum duration of a long poll, seconds, a limit of the protocol.
const WAIT_S_MAX: u32 = 600;

/// Kinds of testbox that a host offers. A host is either hw or a provider of vm and dc, never both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// The whole machine, one job at a time.
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
    /// Returns the names in the protocol.
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

    /// Parses `hw`, `vm`, `dc` or `vm,dc`.
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

/// Executors in which an agent runs jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExecutorChoice {
    /// QEMU for vm jobs. Podman, else docker, for dc jobs if the job or the site names an image. All others run as
    /// processes.
    #[default]
    Auto,
    /// Processes of this host for all jobs. Jobs that name an image go to other hosts.
    Process,
    /// Podman containers for dc jobs, required.
    Podman,
    /// Docker containers for dc jobs, required.
    Docker,
    /// QEMU machines for vm jobs, required.
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

/// Configuration of an agent. Begin with [`AgentConfig::new`] and change fields.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Base URLs of the scheduler's replicas, at least one.
    pub servers: Vec<String>,
    /// Token of the testbox's account. `None`: the scheduler is open.
    pub token: Option<String>,
    /// File of the token. It is read again when the scheduler refuses the token.
    pub token_file: Option<PathBuf>,
    /// Name of the host, 1 to 128 characters, unique in the lab. A second agent with the same name takes over.
    pub host: String,
    /// Group of the host. Empty: the host name up to `--`, as the scheduler derives it.
    pub group: String,
    /// Kinds of jobs that the host offers.
    pub kinds: Kinds,
    /// Address at which other testboxes reach the host, for jobs on several machines. `None`: the address from which it
    /// reaches the scheduler.
    pub address: Option<String>,
    /// Architecture, for example `x86_64`. Default: this program's.
    pub arch: String,
    /// Memory for all jobs together, MB, at least 1. If the agent can make control groups, a job that exceeds its part
    /// is killed.
    pub memory_mb: u32,
    /// CPUs for all jobs together, 1 to 65,536. `None`: not counted. Default: `None`.
    pub cpus: Option<u32>,
    /// Tags of the host.
    pub tags: Vec<String>,
    /// Devices of the host.
    pub devices: Vec<String>,
    /// Cache directories of the host.
    pub cache_dirs: Vec<String>,
    /// Folder of the jobs' folders. One agent at a time uses it.
    pub work_dir: PathBuf,
    /// Executor of jobs. Default: processes.
    pub executor: ExecutorChoice,
    /// Default image of dc jobs, an [`ImageName`]. `None`: dc jobs without an image run as processes. Default: `None`.
    pub default_image: Option<String>,
    /// Allowed registries of images, or path prefixes in them, such as `docker.io` or `registry.example/team`. Empty:
    /// all. Default: empty.
    pub registries: Vec<String>,
    /// Maximum size of all container images from registries, MB. The least recently used ones are removed. Default: 50
    /// GB.
    pub image_cache_mb: u32,
    /// Maximum size of the cache of inputs, MB. The least recently used files are removed. 0: no cache. `None`: 20 GB,
    /// or a tenth of a smaller disk. Default: `None`.
    pub input_cache_mb: Option<u32>,
    /// Folder of the cache of inputs, used by one agent at a time. `None`: `cache` in the work folder.
    pub input_cache_dir: Option<PathBuf>,
    /// Folder with a folder for each image of virtual machines. `None`: `images` in the work folder.
    pub vm_images: Option<PathBuf>,
    /// Default image of vm jobs. `None`: the only existing image.
    pub default_vm_image: Option<String>,
    /// Users of `vm` and `dc` jobs. Values other than the default need a program that calls
    /// [`launched`](crate::launched) first. Default: the agent's own user.
    pub job_users: JobUsers,
    /// Command for jobs with program sections and no `script`. `/bin/sh` runs it with the path of the job's `job.yaml`
    /// as its argument. `None`: such jobs end with health `abort_invalid`.
    pub runner: Option<String>,
    /// Folder of the site's scripts around each job: `prolog` and `epilog`, also in `kind/KIND` and `group/GROUP`.
    /// `None`: no scripts. Default: `None`.
    pub hooks: Option<PathBuf>,
    /// Time limit of each of these scripts. Default 60 s.
    pub hook_limit: Duration,
    /// True if a job that fails without output and results is a failure of this machine. Default false.
    pub silent_is_fault: bool,
    /// Maximum number of concurrent jobs, 1 to 256. A hw box runs one. Default 64.
    pub jobs_max: u32,
    /// Time for which the scheduler holds a request for work, seconds, 0 to 600. Default 30.
    pub wait_s: u32,
    /// True if the agent ends after it ran and delivered the jobs of the first answer with jobs. Default false.
    pub once: bool,
    /// True if the folders of ended jobs are kept, except for their secrets. Default false.
    pub keep: bool,
    /// Time between SIGTERM and SIGKILL, unless an order says otherwise. Default 10 s.
    pub grace: Duration,
    /// Time for which a stopping agent tries to deliver results before it leaves them to its next start. Default 10 s.
    pub report_on_stop: Duration,
    /// Time for which the end of a job waits for a lab that cannot store its files, because the data folder is full or
    /// broken. Then the job ends without them. Default 10 s.
    pub store_wait: Duration,
    /// Maximum output that is kept and sent for one job, bytes. A line marks the cut. Default 64 MiB.
    pub log_bytes_max: u64,
    /// Maximum number of result files of one job. Default 10,000.
    pub result_files_max: usize,
    /// Maximum size of the results of one job, bytes. Default 4 GiB.
    pub result_bytes_max: u64,
    /// Folder of `proc` and `sys`, from which the load of the machine is read every 2 s. `None`: it is not measured, so
    /// the host is never loaded. Default: `None`.
    pub load_root: Option<PathBuf>,
    /// Time for which a loaded host must stay below 80 % of its memory before it no longer counts as loaded. Default 30
    /// s.
    pub loaded_rest: Duration,
    /// Search path for the programs of jobs. Default: the agent's own `PATH`.
    pub path: String,
    /// Token that the owner cancels to kill all jobs without grace, after or instead of a graceful stop.
    pub kill_now: CancellationToken,
}

impl AgentConfig {
    /// Returns the default configuration for this host.
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

    /// Checks everything that can be checked without a scheduler.
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

    /// Returns the description of this host for the scheduler. `executors` includes the tags that they add.
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

    /// Returns the maximum number of concurrent jobs.
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
