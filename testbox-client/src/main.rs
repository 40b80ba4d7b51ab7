//! `fairlead-testbox`: the testbox agent as a program.
//!
//! Exit code 0: stopped in order (SIGTERM, SIGINT, `--once` done). 1: could not work, the reason is on
//! stderr. 2: bad arguments. A second signal kills all jobs at once. `scan` has codes of its own.

mod image;
mod inherited;
mod scan;
mod token;

use std::{fs, io::IsTerminal, path::PathBuf, pin::Pin, process::ExitCode, thread, time::Duration};

use anyhow::Context;
use clap::{Parser, Subcommand};
use fairlead_api::LOADED_REST_S;
use fairlead_testbox::{AgentConfig, ExecutorChoice, JobUsers, Kinds};
use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Offers this machine to a fairlead scheduler, and runs its jobs.
#[derive(Debug, Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// URLs of the replicas of one scheduler; repeat or separate by commas.
    #[arg(
        long,
        env = "FAIRLEAD_SERVER",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:3000"
    )]
    server: Vec<String>,
    /// Name of this host, unique in the lab [default: the name of the machine].
    #[arg(long)]
    host: Option<String>,
    /// Kinds of jobs: hw (the whole machine, one job at a time), or vm, dc or vm,dc (many jobs at
    /// once within its memory).
    #[arg(long, default_value = "hw")]
    kind: Kinds,
    /// Address for other testboxes, for jobs on several machines [default: the one from which it
    /// reaches the scheduler].
    #[arg(long)]
    address: Option<String>,
    /// Architecture.
    #[arg(long, default_value = std::env::consts::ARCH)]
    arch: String,
    /// Group of this machine [default: the host name up to '--'].
    #[arg(long, default_value = "", hide_default_value = true)]
    group: String,
    /// Memory for all jobs together: 20g, 512m; a bare number is GB [default: all of the machine].
    #[arg(long, value_parser = memory_mb)]
    memory: Option<u32>,
    /// CPUs for all jobs together, 1 to 65,536 [default: all that this program may use].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cpus: Option<u32>,
    /// Tag of this host; repeat or separate by commas.
    #[arg(long = "tag", value_delimiter = ',')]
    tags: Vec<String>,
    /// Device of this host; repeat or separate by commas.
    #[arg(long = "device", value_delimiter = ',')]
    devices: Vec<String>,
    /// Cache directory of this host; repeat or separate by commas.
    #[arg(long = "cache-dir", value_delimiter = ',')]
    cache_dirs: Vec<String>,
    /// Folder for the folders of jobs, used by one agent at a time [default: ./fairlead-testbox-HOST].
    #[arg(long)]
    work_dir: Option<PathBuf>,
    /// Command for jobs with program sections and no script; its argument is the path of job.yaml.
    #[arg(long)]
    runner: Option<String>,
    /// Folder with the site's scripts around each job: prolog and epilog, for all jobs, in kind/KIND and in group/GROUP.
    /// A script that fails is a failure of this machine, and the job runs on another one.
    #[arg(long)]
    hooks: Option<PathBuf>,
    /// Longest time of each of these scripts, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    hook_timeout: u32,
    /// Treat a job that fails without output and without a result as a failure of this machine.
    #[arg(long)]
    silent_is_fault: bool,
    /// Executor of jobs. auto: vm jobs in machines of QEMU, dc jobs with an image in containers of podman, else docker,
    /// all others as processes. process: all jobs as processes of this host. podman, docker: all dc jobs in
    /// containers, or the agent does not start. qemu: the same for vm jobs.
    #[arg(long, default_value_t = ExecutorChoice::Auto)]
    executor: ExecutorChoice,
    /// Image of dc jobs that name none [default: they run as processes].
    #[arg(long)]
    default_image: Option<String>,
    /// Registry whose images jobs may name, or a path in it: docker.io, registry.example/team; repeat or separate by
    /// commas [default: all].
    #[arg(long = "registry", value_delimiter = ',')]
    registries: Vec<String>,
    /// Most disk space for container images from registries; the agent removes the least recently used ones.
    #[arg(long, default_value = "50g", value_parser = memory_mb)]
    image_cache: u32,
    /// Most disk space for the cache of inputs; the agent removes the least recently used files. 0 keeps nothing
    /// [default: 20g, or a tenth of a smaller disk].
    #[arg(long, value_parser = memory_mb)]
    input_cache: Option<u32>,
    /// Folder of the cache of inputs, used by one agent at a time [default: cache in the work folder].
    #[arg(long)]
    input_cache_dir: Option<PathBuf>,
    /// Folder with the images of virtual machines [default: images in the work folder].
    #[arg(long)]
    vm_images: Option<PathBuf>,
    /// Image of vm jobs that name none [default: the only one in --vm-images].
    #[arg(long)]
    default_vm_image: Option<String>,
    /// Users of vm and dc jobs. auto: each job has a user of its own, from 60800 to 61055, if the agent is root and
    /// can do it. none: all jobs run as the agent. FIRST-LAST: a range of user ids that nobody else has. hw jobs
    /// always run as the agent.
    #[arg(long, default_value = "auto")]
    job_user: JobUsers,
    /// Token of the testbox account. Other users can see it for a moment, so prefer --token-file.
    /// Without one of these options, the variable `FAIRLEAD_TOKEN` has it.
    #[arg(long, conflicts_with_all = ["token_file", "token_stdin"])]
    token: Option<String>,
    /// The environment's; the other options are nearer.
    #[arg(long, env = token::VARIABLE, hide = true, hide_env_values = true)]
    token_of_environment: Option<String>,
    /// File with the token, read again when the scheduler refuses it (401).
    #[arg(long, conflicts_with = "token_stdin")]
    token_file: Option<PathBuf>,
    /// Read the token from standard input, to its end.
    #[arg(long)]
    token_stdin: bool,
    /// Largest number of jobs at once, 1 to 256; hw runs one.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs_max: u32,
    /// Longest time that the scheduler holds a request for work, in seconds, 0 to 600.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=600))]
    wait: u32,
    /// Time between SIGTERM and SIGKILL of a job, in seconds.
    #[arg(long, default_value_t = 10)]
    grace: u32,
    /// Longest wait at the end of a job for room in the data folder of the lab, in seconds, 0 to 3,600. Then the job ends
    /// without the files that found none.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=3600))]
    store_wait: u32,
    /// Keep the folders of jobs that are over. Without this option, the work folder is emptied after every job.
    #[arg(long)]
    keep: bool,
    /// Take the jobs of one answer, run them, deliver their results, and exit.
    #[arg(long)]
    once: bool,
    /// Folder with the proc and sys from which the load of the machine is read. For tests.
    #[arg(long, default_value = "/", hide = true)]
    load_root: PathBuf,
    /// Time below 80 % of memory after which a loaded host is so no more, in seconds. For tests.
    #[arg(long, default_value_t = LOADED_REST_S, hide = true)]
    loaded_rest: u32,
}

/// Work that the program does instead of offering this machine.
#[derive(Debug, Subcommand)]
enum Command {
    Scan(scan::Args),
    /// Builds images of virtual machines.
    Image(image::Args),
}

fn memory_mb(text: &str) -> Result<u32, String> {
    fairlead_job::units::memory_mb(&text.into()).map_err(|error| error.to_string())
}

impl Args {
    fn config(self) -> anyhow::Result<AgentConfig> {
        let host = match self.host {
            Some(host) => host,
            None => own_name().context("cannot read this machine's name (hint: --host NAME)")?,
        };
        let memory_mb = match self.memory {
            Some(memory_mb) => memory_mb,
            None => {
                own_memory_mb().context("cannot read this machine's memory (hint: --memory 20g)")?
            }
        };
        let token = match &self.token_file {
            Some(file) => Some(token::read(file)?),
            None if self.token_stdin => Some(token::from_stdin()?),
            None => self.token.or(self.token_of_environment),
        };
        let work_dir = self
            .work_dir
            .unwrap_or_else(|| PathBuf::from(format!("fairlead-testbox-{host}")));
        Ok(AgentConfig {
            token: token.filter(|token| !token.is_empty()),
            token_file: self.token_file,
            job_users: self.job_user,
            executor: self.executor,
            default_image: self.default_image,
            registries: self.registries,
            image_cache_mb: self.image_cache,
            input_cache_mb: self.input_cache,
            input_cache_dir: self.input_cache_dir,
            vm_images: self.vm_images,
            default_vm_image: self.default_vm_image,
            address: self.address,
            group: self.group,
            cpus: Some(self.cpus.unwrap_or_else(own_cpus)),
            arch: self.arch,
            tags: self.tags,
            devices: self.devices,
            cache_dirs: self.cache_dirs,
            runner: self.runner,
            hooks: self.hooks.map(std::path::absolute).transpose()?,
            hook_limit: Duration::from_secs(u64::from(self.hook_timeout)),
            silent_is_fault: self.silent_is_fault,
            jobs_max: self.jobs_max,
            wait_s: self.wait,
            grace: Duration::from_secs(u64::from(self.grace)),
            store_wait: Duration::from_secs(u64::from(self.store_wait)),
            keep: self.keep,
            once: self.once,
            load_root: Some(self.load_root),
            loaded_rest: Duration::from_secs(u64::from(self.loaded_rest)),
            ..AgentConfig::new(self.server, host, self.kind, memory_mb, work_dir)
        })
    }
}

fn own_name() -> anyhow::Result<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname")?;
    Ok(name.trim().to_owned())
}

fn own_memory_mb() -> anyhow::Result<u32> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kb = total.and_then(|kb| kb.trim().strip_suffix("kB"));
    let kb: u64 = kb.context("no MemTotal")?.trim().parse()?;
    Ok(u32::try_from(kb / 1024)?.max(1))
}

fn own_cpus() -> u32 {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cpus).unwrap_or(u32::MAX)
}

async fn serve(config: AgentConfig) -> anyhow::Result<()> {
    inherited::take_ignored_signals();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let kill_now = config.kill_now.clone();
    let agent = fairlead_testbox::run(config, stop.clone(), None);
    tokio::pin!(agent);
    loop {
        tokio::select! {
            ended = &mut agent => return ended,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if stop.is_cancelled() {
            tracing::warn!("second stop signal: killing all jobs");
            kill_now.cancel();
        } else {
            tracing::info!("stopping: running jobs get SIGTERM");
            stop.cancel();
        }
    }
}

/// Protects the agent's memory, which has a token, from everybody but root. Orphans of jobs become its children.
fn keep_apart() {
    let apart = set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .and_then(|()| set_child_subreaper(Some(getpid())));
    if let Err(error) = apart {
        tracing::warn!(%error, "jobs of this user may be able to read the agent's memory");
    }
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

fn main() -> ExitCode {
    if let Some(code) = fairlead_testbox::launched() {
        return code;
    }
    let inherited = inherited::files();
    let args = Args::parse();
    match &args.command {
        Some(Command::Scan(args)) => return scan::run(args),
        Some(Command::Image(args)) => {
            log_to_stderr();
            return image::run(args);
        }
        None => {}
    }
    log_to_stderr();
    keep_apart();
    if let Some(token) = &args.token {
        token::hide(token);
    }
    let served = args.config().and_then(|config| {
        // The files are closed only now, because one of them may hold the token.
        inherited::close_files(inherited);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        // The future is boxed, because `block_on` holds a copy of it for each way of waiting.
        let serving: Pin<Box<dyn Future<Output = anyhow::Result<()>>>> = Box::pin(serve(config));
        runtime.block_on(serving)
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(line: &str) -> Result<AgentConfig, String> {
        let args = Args::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
        args.config().map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn arguments_become_a_configuration() {
        let config = config(
            "x --server http://a:1,http://b:2 --host h --kind vm,dc --memory 20g --tag a,b --tag c --wait 5",
        )
        .unwrap();
        assert_eq!(config.servers, ["http://a:1", "http://b:2"]);
        assert_eq!(config.memory_mb, 20 * 1024);
        assert_eq!(config.tags, ["a", "b", "c"]);
        assert_eq!(config.kinds, Kinds::Host { vm: true, dc: true });
        assert_eq!(config.wait_s, 5);
        assert_eq!(config.work_dir, PathBuf::from("fairlead-testbox-h"));
        assert_eq!(config.job_users, JobUsers::Auto);
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn what_is_not_said_is_read_off_the_machine() {
        let config = config("x").unwrap();
        assert!(!config.host.is_empty() && config.memory_mb > 0);
        assert_eq!(config.kinds, Kinds::Hw);
    }

    #[test]
    fn bad_arguments_are_refused() {
        for line in [
            "x --kind hw,vm",
            "x --memory much",
            "x --jobs-max 0",
            "x --wait 601",
            "x --host h --token-file /nowhere/at/all",
            "x --token a --token-file b",
            "x --token a --token-stdin",
            "x --job-user root",
        ] {
            assert!(config(line).is_err(), "{line}");
        }
    }
}
