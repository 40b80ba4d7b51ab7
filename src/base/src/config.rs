//! Configuration of a replica, given at its start. Every limit has a name, a unit and a default here.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use fairlead_content::Location;
use fairlead_dispatch::CACHE_JOBS;
use fairlead_job::{SiteDefaults, SubmitLimits};
use fairlead_store::ElasticConfig;

use crate::{HealthCheck, ResultFiles, WebhookTargets};

/// Choice of the store.
#[derive(Debug, Clone)]
pub enum StoreChoice {
    /// SQLite in the data folder, for one machine.
    Embedded,
    /// An Elasticsearch cluster.
    Elasticsearch(Box<ElasticConfig>),
}

/// Place of results and logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FilesIn {
    /// In the data folder, as plain files.
    #[default]
    DataFolder,
    /// Beside inputs and outputs, by content: every replica can read them, and equal files are stored once.
    Content,
}

impl FilesIn {
    /// Returns the time that testboxes collect output before they send it, ms; `None`: as they choose. In the content
    /// store each append is one object.
    pub fn log_delay_ms(self) -> Option<u32> {
        (self == Self::Content).then_some(5_000)
    }
}

/// Access control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Account names are taken as given. For a lab of one machine, on loopback.
    Open,
    /// Tokens are required.
    Tokens,
}

/// Limits on requests of clients. A request over a limit fails with 413 or 429 and the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest body of a request other than uploads, bytes. Default 16 MiB.
    pub body_bytes_max: usize,
    /// Largest job, bytes of JSON. Default 256 KiB.
    pub job_bytes_max: usize,
    /// Most jobs in one submit. Default 10,000.
    pub submit_jobs_max: usize,
    /// Maximum number of waiting requests of people, and as many of testboxes. Default 20,000.
    pub waiters_max: usize,
    /// Largest uploaded file, bytes. Default 4 GiB.
    pub upload_bytes_max: u64,
    /// Largest log of an attempt, bytes. Default 256 MiB.
    pub log_bytes_max: u64,
    /// Most timers of one account. Default 1,000. Timers that are submitted at the same moment may exceed it by a few.
    pub timers_max: u64,
    /// Shortest time between two runs of a timer, s. Default 60.
    pub timer_period_min_s: u64,
    /// Maximum memory of all bodies and the values built from them, bytes. Default 256 MiB.
    pub request_memory_max: u64,
    /// Part of it that is reserved for testboxes that ask and report, and for other replicas, bytes. Default 32 MiB.
    pub request_memory_reserve: u64,
    /// Part of it that requests of unidentified senders may use, bytes. Default 32 MiB.
    pub strangers_memory_max: u64,
    /// Maximum number of unfinished requests of unidentified senders. Default 4,096.
    pub strangers_requests_max: usize,
    /// Maximum number of them from one address. Default 64.
    pub stranger_requests_max: usize,
    /// Most uploads of jobs under way. Default 65,536.
    pub uploads_max: usize,
    /// Most uploads of one job under way. Default 256.
    pub uploads_of_job_max: usize,
    /// Most files that one job uploads. Default 10,000.
    pub files_of_job_max: u64,
    /// Maximum size of all files of one job, bytes. Default 16 GiB.
    pub bytes_of_job_max: u64,
    /// Maximum size of all previews of the last day, bytes. Default 64 MiB.
    pub previews_bytes_max: u64,
    /// Part of it for one account, bytes. Default 16 MiB.
    pub previews_of_account_bytes_max: u64,
    /// Maximum size of all pins of unfinished puts, bytes. Default 256 MiB, enough for 3 million chunks.
    pub pins_bytes_max: u64,
    /// Maximum size of the names of unknown machines in waiting jobs, bytes. Default 128 MiB, enough for 50,000.
    pub unknown_machines_bytes_max: u64,
    /// Maximum memory of the data that hosts report, bytes. Default 512 MiB.
    pub hosts_bytes_max: u64,
    /// Maximum number of hosts of the tokens of one account. Default 20,000.
    pub hosts_of_account_max: usize,
    /// Largest body of a login, bytes. Default 4 KiB.
    pub login_bytes_max: usize,
    /// With tokens: the largest body that is searched for `my_token` if the head contains no token, bytes. Default
    /// 512 KiB.
    pub stranger_body_bytes_max: usize,
}

impl Limits {
    /// Returns the limits that a dry run checks as well.
    pub fn of_submits(&self) -> SubmitLimits {
        SubmitLimits {
            job_bytes_max: self.job_bytes_max,
            jobs_max: self.submit_jobs_max,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 16 << 20,
            job_bytes_max: SubmitLimits::default().job_bytes_max,
            submit_jobs_max: SubmitLimits::default().jobs_max,
            waiters_max: 20_000,
            upload_bytes_max: 4 << 30,
            log_bytes_max: 256 << 20,
            timers_max: 1_000,
            timer_period_min_s: 60,
            request_memory_max: 256 << 20,
            request_memory_reserve: 32 << 20,
            strangers_memory_max: 32 << 20,
            strangers_requests_max: 4_096,
            stranger_requests_max: 64,
            uploads_max: 65_536,
            uploads_of_job_max: 256,
            files_of_job_max: 10_000,
            bytes_of_job_max: 16 << 30,
            previews_bytes_max: 64 << 20,
            previews_of_account_bytes_max: 16 << 20,
            pins_bytes_max: 256 << 20,
            unknown_machines_bytes_max: 128 << 20,
            hosts_bytes_max: 512 << 20,
            hosts_of_account_max: 20_000,
            login_bytes_max: 4 << 10,
            stranger_body_bytes_max: 512 << 10,
        }
    }
}

/// Limits on connections. A request in progress has none, because a long poll is silent by nature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum time from the start of a connection to its first byte. Default 10 s.
    pub first_byte: Duration,
    /// Maximum time from a request's first byte to the end of its head. Default 10 s.
    pub head: Duration,
    /// Longest pause within a body. Default 20 s.
    pub body_pause: Duration,
    /// Minimum average rate of a body that is read into memory, bytes a second, after the first minute. Default 256.
    pub body_rate_min: u64,
    /// Maximum time that bytes of an answer wait for their reader, besides the time for `answer_rate_min`. Default 60
    /// s.
    pub answer_pause: Duration,
    /// Minimum rate at which answers must be read, bytes a second. Default 16 KiB.
    pub answer_rate_min: u64,
    /// Maximum time between two requests. It exceeds the idle time of clients (reqwest 90 s, nginx 60 s), so that no
    /// request meets a closing connection. Default 2 min.
    pub idle: Duration,
    /// Interval of pings to clients of HTTP/2, and the timeout of their answer. Default 10 s.
    pub ping: Duration,
    /// Maximum number of unidentified connections; beyond it the oldest is closed. Default 4,096.
    pub strangers_max: usize,
    /// Maximum number of them from one address, except loopback. Default 256.
    pub strangers_of_address_max: usize,
    /// Proxies, which have no limit `strangers_of_address_max`. Default none.
    pub trusted_proxies: Vec<IpAddr>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(10),
            head: Duration::from_secs(10),
            body_pause: Duration::from_secs(20),
            body_rate_min: 256,
            answer_pause: Duration::from_mins(1),
            answer_rate_min: 16 << 10,
            idle: Duration::from_mins(2),
            ping: Duration::from_secs(10),
            strangers_max: 4_096,
            strangers_of_address_max: 256,
            trusted_proxies: Vec::new(),
        }
    }
}

/// Configuration of one replica.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// Folder for results, logs and the embedded store. Made if missing.
    pub data_dir: PathBuf,
    /// Store of the lab.
    pub store: StoreChoice,
    /// Name of this replica, unique among live replicas. Default: the machine's name and port.
    pub replica: String,
    /// Address at which other replicas reach this one, `http://HOST:PORT`. Default `None`: the address it listens on.
    pub advertise: Option<String>,
    /// Names by which an open replica may be addressed, besides IP addresses, `localhost` and `advertise`. Other
    /// names are refused, so that web pages cannot read the replica under their own names. Default none.
    pub host_names: Vec<String>,
    /// Access control. `Open` on another address than loopback must be said explicitly by the caller.
    pub access: Access,
    /// Admin account that exists without being stored: name and token (`fairlead run` uses it).
    pub admin: Option<(String, String)>,
    /// True if every account may use queue `vip`. Otherwise only admins and allowed accounts may. Default false; with
    /// [`Access::Open`] every account may.
    pub vip_for_all: bool,
    /// True if jobs may wait for devices that no known host has. Otherwise they are refused. Default false.
    pub devices_later: bool,
    /// Allowed receivers of webhooks. Default: none.
    pub webhooks_to: WebhookTargets,
    /// Defaults of jobs.
    pub site: SiteDefaults,
    /// Lease time without a heartbeat, ms, at least 1,000. Default 60,000.
    pub lease_ms: u64,
    /// Interval of heartbeats, ms, at most a third of `lease_ms`. Default 10,000.
    pub heartbeat_ms: u64,
    /// Number of consecutive attempts, failed by the machine's fault and of several accounts, after which a host is
    /// put aside. Default 3; 0: never.
    pub suspect_after: u32,
    /// Job that tests suspect hosts automatically. Default: none.
    pub health_check: Option<HealthCheck>,
    /// True if machines that boot over the network get the secrets of their jobs. Default: no.
    pub boot_secrets: bool,
    /// Number of whole months after the month of its submit that a job is kept. The events of its month are deleted
    /// with it. Default 0: for ever.
    pub keep_months: u32,
    /// Readers of results. Default: only the scheduler's user, as for all its files.
    pub results: ResultFiles,
    /// Place of inputs and outputs. Default `None`: in folder `content` of the data folder.
    pub content: Option<Location>,
    /// Place of results and logs. Default: in the data folder.
    pub files_in: FilesIn,
    /// Time that inputs and outputs stay that no job names and no account keeps, ms. Default: 14 days.
    pub content_grace_ms: u64,
    /// Folder with a program for each provider of machines. Default `None`: no providers.
    pub providers: Option<PathBuf>,
    /// Limits on requests.
    pub limits: Limits,
    /// Limits on connections.
    pub connections: ConnectionLimits,
    /// Maximum number of waiting jobs in memory. Default [`CACHE_JOBS`].
    pub cache_jobs_max: u32,
}

impl Config {
    /// Returns the default settings of a replica over the embedded store in `data_dir`, on a free loopback port.
    pub fn embedded(data_dir: PathBuf) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data_dir,
            store: StoreChoice::Embedded,
            replica: "local".to_owned(),
            advertise: None,
            host_names: Vec::new(),
            access: Access::Open,
            admin: None,
            vip_for_all: false,
            devices_later: false,
            webhooks_to: WebhookTargets::default(),
            site: SiteDefaults::default(),
            lease_ms: 60_000,
            heartbeat_ms: 10_000,
            suspect_after: 3,
            health_check: None,
            boot_secrets: false,
            keep_months: 0,
            results: ResultFiles::default(),
            content: None,
            files_in: FilesIn::default(),
            content_grace_ms: 14 * 24 * 3_600_000,
            providers: None,
            limits: Limits::default(),
            connections: ConnectionLimits::default(),
            cache_jobs_max: CACHE_JOBS,
        }
    }
}
