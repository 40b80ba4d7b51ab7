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

/// Which store.
#[derive(Debug, Clone)]
pub enum StoreChoice {
    /// SQLite in the data folder, for one machine.
    Embedded,
    /// An Elasticsearch cluster.
    Elasticsearch(Box<ElasticConfig>),
}

/// Where results and logs lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FilesIn {
    /// In the data folder, as plain files.
    #[default]
    DataFolder,
    /// Beside inputs and outputs, by content: every replica has them, and equal ones are kept once.
    Content,
}

impl FilesIn {
    /// How long testboxes collect output before they send it, ms; `None`: as they like. By content each append is an
    /// object of its own.
    pub fn log_delay_ms(self) -> Option<u32> {
        (self == Self::Content).then_some(5_000)
    }
}

/// Who may do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Account names are taken as given. For a lab of one machine, on loopback.
    Open,
    /// Tokens are required.
    Tokens,
}

/// Limits on what clients may send. Past one: 413 or 429 with the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest body of a request other than uploads, bytes. Default 16 MiB.
    pub body_bytes_max: usize,
    /// Largest job, bytes of JSON. Default 256 KiB.
    pub job_bytes_max: usize,
    /// Most jobs in one submit. Default 10,000.
    pub submit_jobs_max: usize,
    /// Most requests of people that wait for something at one time, and as many of testboxes. Default 20,000.
    pub waiters_max: usize,
    /// Largest uploaded file, bytes. Default 4 GiB.
    pub upload_bytes_max: u64,
    /// Largest log of an attempt, bytes. Default 256 MiB.
    pub log_bytes_max: u64,
    /// Most timers of one account. Default 1,000. Timers that are submitted at the same moment may exceed it by a few.
    pub timers_max: u64,
    /// Shortest time between two runs of a timer, s. Default 60.
    pub timer_period_min_s: u64,
    /// Most memory that bodies and what is built of them take together, bytes. Default 256 MiB.
    pub request_memory_max: u64,
    /// Of it, what is kept for testboxes that ask and report, and for other replicas, bytes. Default 32 MiB.
    pub request_memory_reserve: u64,
    /// Of it, the most that requests take whose sender is not known yet, bytes. Default 32 MiB.
    pub strangers_memory_max: u64,
    /// Most requests under way whose sender is not known. Default 4,096.
    pub strangers_requests_max: usize,
    /// Most of them from one address. Default 64.
    pub stranger_requests_max: usize,
    /// Most uploads of jobs under way. Default 65,536.
    pub uploads_max: usize,
    /// Most uploads of one job under way. Default 256.
    pub uploads_of_job_max: usize,
    /// Most files that one job uploads. Default 10,000.
    pub files_of_job_max: u64,
    /// Most bytes that the files of one job have together. Default 16 GiB.
    pub bytes_of_job_max: u64,
    /// Most that previews of the last day take together, bytes. Default 64 MiB.
    pub previews_bytes_max: u64,
    /// Most of it for one account, bytes. Default 16 MiB.
    pub previews_of_account_bytes_max: u64,
    /// Most that pins of unfinished puts take together, bytes. Default 256 MiB, enough for 3 million chunks.
    pub pins_bytes_max: u64,
    /// Most that names of unknown machines in waiting jobs take together, bytes. Default 128 MiB, enough for 50,000.
    pub unknown_machines_bytes_max: u64,
    /// Most that hosts say of themselves, as it takes memory, bytes. Default 512 MiB.
    pub hosts_bytes_max: u64,
    /// Most hosts for which the tokens of one account speak. Default 20,000.
    pub hosts_of_account_max: usize,
    /// Largest body of a login, bytes. Default 4 KiB.
    pub login_bytes_max: usize,
    /// With tokens: the largest body that is looked through for `my_token` where the head names nobody, bytes. Default 512 KiB.
    pub stranger_body_bytes_max: usize,
}

impl Limits {
    /// Those that a dry run knows, too.
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

/// Limits on connections. A request that is worked on has none: a long poll is silent by nature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// From its start to its first byte. Default 10 s.
    pub first_byte: Duration,
    /// From a request's first byte to the end of its head. Default 10 s.
    pub head: Duration,
    /// Longest pause within a body. Default 20 s.
    pub body_pause: Duration,
    /// How fast a body that is read into memory must come on average, bytes a second, once it takes longer than a minute.
    /// Default 256.
    pub body_rate_min: u64,
    /// How long bytes of an answer may wait for their reader, beside the time that they take at `answer_rate_min`.
    /// Default 60 s.
    pub answer_pause: Duration,
    /// How fast answers must be read, bytes a second. Default 16 KiB.
    pub answer_rate_min: u64,
    /// Between two requests: longer than clients keep idle ones (reqwest 90 s, nginx 60 s), else a request could meet the
    /// end. Default 2 min.
    pub idle: Duration,
    /// How often clients of HTTP/2 are asked whether they live, and how long they may take to answer. Default 10 s.
    pub ping: Duration,
    /// Most connections that nobody identified; the oldest goes. Default 4,096.
    pub strangers_max: usize,
    /// Most of them from one address, loopback excepted. Default 256.
    pub strangers_of_address_max: usize,
    /// Proxies: for them `strangers_of_address_max` does not count. Default none.
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

/// One replica's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// Folder for results, logs and the embedded store. Made if missing.
    pub data_dir: PathBuf,
    /// Which store.
    pub store: StoreChoice,
    /// This replica's name, unique among those that live. Default: the machine's name and port.
    pub replica: String,
    /// Where other replicas reach this one, `http://HOST:PORT`. Default `None`: the address it listens on.
    pub advertise: Option<String>,
    /// Names by which an open replica is asked, besides IP addresses, `localhost` and `advertise`: others are refused, lest
    /// web pages read it under names of their own. Default none.
    pub host_names: Vec<String>,
    /// Who may do what. `Open` on another address than loopback must be said explicitly by the caller.
    pub access: Access,
    /// An admin account that exists without being stored: name and token (`fairlead run` uses it).
    pub admin: Option<(String, String)>,
    /// Whether every account may use queue `vip`; else only admins and accounts that were allowed. Default false;
    /// with [`Access::Open`] everybody may.
    pub vip_for_all: bool,
    /// Whether jobs may wait for devices that no known host has; else they are refused. Default false.
    pub devices_later: bool,
    /// To whom webhooks may be sent. Default: to nobody.
    pub webhooks_to: WebhookTargets,
    /// What jobs get that do not say.
    pub site: SiteDefaults,
    /// How long a lease lasts without a heartbeat, ms, at least 1,000. Default 60,000.
    pub lease_ms: u64,
    /// How often agents send heartbeats, ms, at most a third of `lease_ms`. Default 10,000.
    pub heartbeat_ms: u64,
    /// After how many attempts in a row that failed by the machine's fault a host is put aside, if they were of
    /// several accounts. Default 3; 0: never.
    pub suspect_after: u32,
    /// The job with which suspect hosts are tried out by themselves. Default: none.
    pub health_check: Option<HealthCheck>,
    /// Whether machines that boot over the network get the secrets of their jobs. Default: no.
    pub boot_secrets: bool,
    /// For how many whole months after the month of its submit a job is kept; with it go its month's events. Default 0:
    /// for ever.
    pub keep_months: u32,
    /// Who may read results. Default: the scheduler's user alone, as with all else that it writes.
    pub results: ResultFiles,
    /// Where inputs and outputs lie. Default `None`: in folder `content` of the data folder.
    pub content: Option<Location>,
    /// Where results and logs lie. Default: in the data folder.
    pub files_in: FilesIn,
    /// How long inputs and outputs stay that no job names and nobody keeps, ms. Default: 14 days.
    pub content_grace_ms: u64,
    /// The folder with a program for each provider of machines. Default `None`: there are none.
    pub providers: Option<PathBuf>,
    /// Limits on requests.
    pub limits: Limits,
    /// Limits on connections.
    pub connections: ConnectionLimits,
    /// Most waiting jobs kept in memory. Default [`CACHE_JOBS`].
    pub cache_jobs_max: u32,
}

impl Config {
    /// A replica with default settings over the embedded store in `data_dir`, on a free loopback port.
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
