//! `fairlead serve`: one scheduler replica, until SIGTERM or Ctrl-C.

use std::{
    fs,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
};

mod origins;

use fairlead_content::Location;
use fairlead_job::{
    LIMITED, SiteDefaults, Stage,
    file::{ExpandOptions, FsSource, expand_file},
};
use fairlead_scheduler::{
    Access, CACHE_JOBS, Config, ConnectionLimits, FilesIn, HealthCheck, Limits, ResultFiles,
    Server, WebhookTargets,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::{
    amounts,
    context::Context,
    exit::{self, Failure},
    logging::{self, LogFormat},
    serving::values::{files_in, grace_ms, results_group, results_mode},
    settings::Environment,
    signals::Signals,
    store_args::StoreArgs,
};

/// Minimum lease, ms. Several heartbeats must fit into it.
const LEASE_MS_MIN: u64 = 1000;
/// Number of heartbeats in a lease. Some may be lost.
const BEATS_IN_LEASE: u64 = 6;
/// Maximum time between heartbeats, ms.
const BEAT_MS_MAX: u64 = 10_000;

/// How to serve.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct ServeArgs {
    /// Settings as TOML: each flag without its `--` is a key. A flag wins over the environment
    /// (`FAIRLEAD_SERVE_KEEP_MONTHS`), and that over the file
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Check all settings, show each with its origin, and start nothing
    #[arg(long)]
    check: bool,
    /// Address and port; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
    listen: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Name of this replica, unique among the running ones [default: the name of the machine and the port]
    #[arg(long, value_name = "NAME")]
    replica: Option<String>,
    /// Address for other replicas [default: the listen address, or the name of the machine]
    #[arg(long, value_name = "URL", value_parser = advertised)]
    advertise: Option<String>,
    /// Another host name of this open lab (without --auth); repeatable. IP addresses, localhost, the
    /// name of the machine and --advertise are always valid
    #[arg(long = "host-name", value_name = "NAME", value_parser = host_name)]
    host_names: Vec<String>,
    /// IP address of a proxy, which may open any number of connections, and whose X-Forwarded-For names its client;
    /// repeatable
    #[arg(long = "trusted-proxy", value_name = "ADDRESS")]
    trusted_proxies: Vec<IpAddr>,
    /// Require tokens; create them with `fairlead account add`
    #[arg(long, conflicts_with = "open")]
    auth: bool,
    /// Trust the account names that clients give; the default on loopback only
    #[arg(long)]
    open: bool,
    /// Silence after which a testbox is lost and its jobs are retried
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = amounts::length_ms)]
    lease: u64,
    /// Give a host no new jobs after N attempts in a row that fail by its own fault, of several
    /// accounts [0: never]
    #[arg(long, value_name = "N", default_value_t = 3)]
    suspect_after: u32,
    /// Job file with one job that runs on each suspect host; success reopens the host
    #[arg(long, value_name = "FILE")]
    health_check: Option<PathBuf>,
    /// Send the secrets of a job to the machine that boots it over the network (plain HTTP), and only to its address
    #[arg(long)]
    boot_secrets: bool,
    /// Delete jobs older than N whole months, one finished month at a time [0: keep forever]
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    keep_months: u32,
    /// Octal mode of result files. 0640 lets a group read them, to share results by NFS or a web
    /// server. Other files stay private to the user of the scheduler
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = results_mode)]
    results_mode: u32,
    /// Group of result files, by name or number
    #[arg(long, value_name = "GROUP", value_parser = results_group)]
    results_group: Option<u32>,
    /// Most that the result files of one job have together; a file beyond it is refused
    #[arg(long, value_name = "SIZE", default_value = "16g", value_parser = amounts::memory_mb)]
    job_results_max: u32,
    /// Where inputs and outputs lie: a folder that all replicas share, `s3://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`
    /// [default: folder content of --data]
    #[arg(long, value_name = "LOCATION")]
    content: Option<Location>,
    /// Where results and logs lie: `data`, as plain files in the folder --data, or `content`, beside inputs and outputs
    #[arg(long, value_name = "PLACE", default_value = "data", value_parser = files_in)]
    files_in: FilesIn,
    /// How long inputs and outputs stay that no job names and nobody keeps, at least 1h
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = grace_ms)]
    content_grace: u64,
    /// Folder with a program for each provider of machines; pools name the programs [default: no providers]
    #[arg(long, value_name = "DIR")]
    providers: Option<PathBuf>,
    /// Let every account use the queue vip
    #[arg(long)]
    vip_for_all: bool,
    /// Let jobs wait for `sched.devices` that no known host has; else they are refused
    #[arg(long)]
    devices_later: bool,
    /// Receivers to which webhooks may be sent, with commas: names, `*.` and a name, addresses, networks.
    /// Behind each may stand `:PORT`, or `:*` for all ports; else port 80 or 443 is meant.
    /// An address of a private network must be named itself [default: none]
    #[arg(
        long,
        value_name = "HOSTS",
        default_value = "",
        hide_default_value = true
    )]
    webhooks_to: WebhookTargets,
    /// Number of waiting jobs in memory; others are read from the store before dispatch
    #[arg(long, value_name = "N", default_value_t = CACHE_JOBS, value_parser = clap::value_parser!(u32).range(1..))]
    cache_jobs_max: u32,
    #[command(flatten)]
    site: SiteArgs,
    /// Format of the log on stderr; `FAIRLEAD_LOG` or `RUST_LOG` filters it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    log_format: LogFormat,
}

/// Defaults of jobs.
#[derive(Debug, clap::Args)]
struct SiteArgs {
    /// Testbox of jobs that name none [default: dc]
    #[arg(long = "default-testbox", value_name = "TESTBOX")]
    testbox: Option<String>,
    /// Architecture of jobs that name none [default: that of this machine]
    #[arg(long = "default-arch", value_name = "ARCH")]
    arch: Option<String>,
    /// Memory of vm and dc jobs that name none [default: 1g]
    #[arg(long = "default-memory", value_name = "MEMORY", value_parser = amounts::memory_mb)]
    memory: Option<u32>,
    /// Memory that QEMU takes beside the guest of a vm job, added to the job's own [default: 80m]
    #[arg(long, value_name = "MEMORY", value_parser = amounts::memory_mb)]
    vm_overhead: Option<u32>,
    /// Time limit of jobs that name none [default: 1h]
    #[arg(long = "default-timeout", value_name = "TIME", value_parser = amounts::length_ms)]
    timeout: Option<u64>,
    /// Time limit of a stage (dispatch, boot, setup, `wait_peer`, `post_run`, `manual_check`); repeatable
    #[arg(long = "stage-timeout", value_name = "STAGE=TIME", value_parser = stage_timeout)]
    stage_timeouts: Vec<(Stage, u64)>,
    /// Longest wait for a testbox, for jobs that name none [default: no limit]
    #[arg(long = "default-queue-timeout", value_name = "TIME", value_parser = amounts::length_ms)]
    queue_timeout: Option<u64>,
}

impl SiteArgs {
    fn defaults(&self) -> SiteDefaults {
        let built_in = SiteDefaults::default();
        SiteDefaults {
            testbox: self.testbox.clone().unwrap_or(built_in.testbox),
            arch: self.arch.clone().unwrap_or(built_in.arch),
            memory_mb: self.memory.unwrap_or(built_in.memory_mb),
            vm_overhead_mb: self.vm_overhead.unwrap_or(built_in.vm_overhead_mb),
            timeout_s: self.timeout.map_or(built_in.timeout_s, seconds),
            stage_limits_s: self.stage_timeouts.iter().copied().collect(),
            queue_timeout_s: self.queue_timeout.map_or(built_in.queue_timeout_s, seconds),
        }
    }
}

/// Returns at least one second, because 0 would mean no limit.
fn seconds(ms: u64) -> u64 {
    ms.div_ceil(1000).max(1)
}

/// Parses `boot=20m`.
fn stage_timeout(text: &str) -> Result<(Stage, u64), String> {
    let (stage, time) = text
        .split_once('=')
        .ok_or("expected STAGE=TIME, for example boot=20m")?;
    let stage = LIMITED.into_iter().find(|known| known.as_str() == stage);
    let known = LIMITED.map(Stage::as_str).join(", ");
    let stage = stage.ok_or_else(|| format!("expected one of the stages {known}"))?;
    Ok((stage, seconds(amounts::length_ms(time)?)))
}

pub(crate) async fn run(args: &ServeArgs, context: &Context) -> anyhow::Result<u8> {
    let config = config(args, &context.env)?;
    if args.check {
        return origins::show(context);
    }
    logging::start("info", args.log_format, &context.env)?;
    raise_open_files();
    // Signals are caught before the start, because a signal during it must not leave a half-made store.
    let mut signals = Signals::catch()?;
    let server = start(config).await?;
    let url = server.url();
    if context.json {
        context.output.line(&json!({"url": url}).to_string());
    } else {
        context.output.line(&format!("fairlead serves on {url}"));
    }
    let is_told = tokio::select! {
        () = signals.next() => true,
        () = server.gave_up() => false,
    };
    tokio::select! {
        () = server.stop() => {}
        () = signals.next() => return Ok(exit::INTERRUPTED),
    }
    if is_told {
        return Ok(exit::OK);
    }
    let message = "the clock of this machine was off from those of the other replicas for a minute";
    let hint =
        "correct it with your time service (chronyc tracking, timedatectl), then start again";
    Err(Failure::local(message, hint).into())
}

/// Raises the limit of open files to the maximum, because each waiting testbox needs a connection.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::info!(files = limit.maximum, "raised the limit of open files"),
        Err(error) => {
            tracing::warn!(%error, files = limit.current, "cannot raise the limit of open files");
        }
    }
}

/// Starts a replica. Errors come from this machine or its store.
pub(crate) async fn start(config: Config) -> Result<Server, Failure> {
    Server::start(config)
        .await
        .map_err(|error| Failure::local(error.to_string(), ""))
}

fn config(args: &ServeArgs, env: &Environment) -> Result<Config, Failure> {
    let listen = address(&args.listen)?;
    let access = match (args.auth, args.open || listen.ip().is_loopback()) {
        (true, _) => Access::Tokens,
        (false, true) => Access::Open,
        (false, false) => {
            return Err(Failure::usage(
                format!("other machines can reach {listen}, and neither --auth nor --open is set"),
                "use --auth (require tokens) or --open (trust account names), or listen on 127.0.0.1",
            ));
        }
    };
    check_lease(args.lease)?;
    let replica = args
        .replica
        .clone()
        .unwrap_or_else(|| format!("{}-{}", machine_name(), listen.port()));
    let site = args.site.defaults();
    let health_check = args.health_check.as_deref();
    let health_check = health_check.map(|file| read_health_check(file, &site));
    let everywhere = listen.ip().is_unspecified();
    let by_name = || everywhere.then(|| format!("http://{}:{}", machine_name(), listen.port()));
    Ok(Config {
        listen,
        replica,
        advertise: args.advertise.clone().or_else(by_name),
        host_names: host_names(&args.host_names),
        access,
        vip_for_all: args.vip_for_all,
        devices_later: args.devices_later,
        webhooks_to: args.webhooks_to.clone(),
        suspect_after: args.suspect_after,
        boot_secrets: args.boot_secrets,
        keep_months: args.keep_months,
        results: ResultFiles {
            mode: args.results_mode,
            group: args.results_group,
        },
        health_check: health_check.transpose()?,
        content: args.content.clone(),
        files_in: args.files_in,
        content_grace_ms: args.content_grace,
        providers: args.providers.clone(),
        site,
        limits: Limits {
            bytes_of_job_max: u64::from(args.job_results_max) << 20,
            ..Limits::default()
        },
        connections: ConnectionLimits {
            trusted_proxies: args.trusted_proxies.clone(),
            ..ConnectionLimits::default()
        },
        lease_ms: args.lease,
        heartbeat_ms: (args.lease / BEATS_IN_LEASE).min(BEAT_MS_MAX),
        cache_jobs_max: args.cache_jobs_max,
        ..args.store.config(env)?
    })
}

fn check_lease(lease_ms: u64) -> Result<(), Failure> {
    if lease_ms >= LEASE_MS_MIN {
        return Ok(());
    }
    let message = format!("a lease of {lease_ms} ms; expected at least {LEASE_MS_MIN} ms");
    Err(Failure::usage(message, "omit --lease for 60s"))
}

/// Returns the only job of this file.
fn read_health_check(file: &Path, site: &SiteDefaults) -> Result<HealthCheck, Failure> {
    let refuse = |why: String, hint: &str| {
        let message = format!("--health-check {}: {why}", file.display());
        Failure::usage(message, hint)
    };
    let jobs = expand_file(file, &ExpandOptions::default(), &FsSource)?;
    let [job] = <[_; 1]>::try_from(jobs).map_err(|jobs| {
        let why = format!("the file has {} jobs; expected one", jobs.len());
        refuse(
            why,
            "use one document without lists that expand to a matrix",
        )
    })?;
    HealthCheck::of(job, site).map_err(|error| refuse(error.to_string(), &error.hint))
}

/// Returns the given names, and the machine's own short and full name.
fn host_names(said: &[String]) -> Vec<String> {
    let own = machine_name();
    let short = own.split('.').next().unwrap_or_default().to_owned();
    said.iter().cloned().chain([own, short]).collect()
}

/// Checks a host name without a port.
fn host_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || !text.chars().all(good) {
        return Err(
            "expected a host name without http:// and port, for example lab.example.org".to_owned(),
        );
    }
    Ok(text.to_owned())
}

/// Returns a URL without a slash at its end.
fn advertised(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("http://")
        .or(text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("write http://HOST:PORT".to_owned()),
    }
}

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let refuse = |why: String| {
        Failure::usage(
            format!("--listen '{text}' is not an address: {why}"),
            "use ADDRESS:PORT, for example 127.0.0.1:3000 or [::1]:3000",
        )
    };
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut found = text
        .to_socket_addrs()
        .map_err(|error| refuse(error.to_string()))?;
    found
        .next()
        .ok_or_else(|| refuse("no such name".to_owned()))
}

/// Returns the machine's name, reduced to the characters that names of replicas and hosts may have.
pub(crate) fn machine_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name
        .trim()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .collect();
    if name.is_empty() {
        "local".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn parsed(words: &str) -> Result<Config, Failure> {
        let words = std::iter::once("serve").chain(words.split_whitespace());
        config(
            &Line::try_parse_from(words).unwrap().serve,
            &Environment::default(),
        )
    }

    #[test]
    fn open_must_be_said_away_from_loopback() {
        assert_eq!(parsed("").unwrap().access, Access::Open);
        assert_eq!(parsed("--listen [::1]:1").unwrap().access, Access::Open);
        assert_eq!(parsed("--auth").unwrap().access, Access::Tokens);
        assert_eq!(
            parsed("--listen 0.0.0.0:1 --open").unwrap().access,
            Access::Open
        );
        for address in ["0.0.0.0:1", "[::]:1", "10.1.2.3:1"] {
            let error = parsed(&format!("--listen {address}")).unwrap_err();
            assert!(error.hint.contains("--auth") && error.hint.contains("--open"));
        }
    }

    #[test]
    fn limits_of_stages_are_read() {
        let site = parsed("--stage-timeout boot=20m --stage-timeout post_run=90")
            .unwrap()
            .site;
        assert_eq!(
            site.stage_limits_s,
            [(Stage::Boot, 1_200), (Stage::PostRun, 90)].into()
        );
        assert_eq!(
            parsed("--default-queue-timeout 2d")
                .unwrap()
                .site
                .queue_timeout_s,
            172_800
        );
        for bad in ["boot", "running=5m", "boot=soon"] {
            assert!(stage_timeout(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_health_check_is_one_good_job() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            let why = parsed(&format!("--health-check {}", file.display()));
            why.map(|config| config.health_check.is_some())
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(read("good.yaml", "suite: x\n"), Ok(true));
        let two = read("two.yaml", "suite: x\nnr: [1, 2]\n").unwrap_err();
        assert!(two.contains("the file has 2 jobs"), "{two}");
        let bad = read("bad.yaml", "suite: x\ntimeout: soon\n").unwrap_err();
        assert!(bad.contains("timeout"), "{bad}");
        assert!(parsed("--health-check none.yaml").is_err());
    }

    #[test]
    fn heartbeats_fit_in_the_lease() {
        assert_eq!(parsed("").unwrap().heartbeat_ms, 10_000);
        assert_eq!(parsed("--lease 1500ms").unwrap().heartbeat_ms, 250);
        assert!(parsed("--lease 500ms").is_err());
    }

    #[test]
    fn addresses_may_be_names_and_nonsense_is_refused() {
        assert!(
            parsed("--listen localhost:0")
                .unwrap()
                .listen
                .ip()
                .is_loopback()
        );
        for text in ["3000", "127.0.0.1", "127.0.0.1:99999"] {
            assert!(parsed(&format!("--listen {text}")).is_err(), "{text}");
        }
    }
}
