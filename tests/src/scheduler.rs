//! One `fairlead serve` process with its own data folder. On Elasticsearch, it has its own index prefix or shares one
//! ([`crate::Lab`]). It can be killed, paused, stopped and restarted at the same address. At the end nothing of it
//! remains.

use std::{
    fs::{self, File},
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Http, Lab, cpu, eventually, fairlead, reaper, settings};

/// Store of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// SQLite in the data folder.
    Embedded,
    /// The Elasticsearch of `ES_URL`.
    Elasticsearch,
}

/// A scheduler process.
#[derive(Debug)]
pub struct Scheduler {
    child: Option<Child>,
    folder: TempDir,
    port: u16,
    /// Lab of the scheduler. It is dropped after the process, because the last process of a lab removes the indices.
    lab: Lab,
    elasticsearch: String,
    more: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
}

impl Scheduler {
    /// Starts a scheduler in open mode with default settings, and waits until it answers.
    pub async fn start(store: Store) -> Self {
        Self::start_with(store, &[]).await
    }

    /// Starts a scheduler with more arguments of `fairlead serve`.
    pub async fn start_with(store: Store, more: &[&str]) -> Self {
        let mut scheduler = Self::prepared(store, more);
        scheduler.restart().await;
        scheduler
    }

    /// Returns a scheduler that does not run yet. [`Self::restart`] starts it.
    pub fn prepared(store: Store, more: &[&str]) -> Self {
        let urls = match store {
            Store::Embedded => Vec::new(),
            Store::Elasticsearch => settings::elasticsearch(),
        };
        Self::prepare(&Lab::on(store), &urls, more)
    }

    /// Starts a scheduler on the embedded store, with variables in its environment.
    pub async fn start_within(variables: &[(String, String)], more: &[&str]) -> Self {
        let mut scheduler = Self::prepared(Store::Embedded, more);
        scheduler.variables = variables.to_vec();
        scheduler.restart().await;
        scheduler
    }

    /// Starts a scheduler in a lab, with Elasticsearch at `urls`, without waiting for it.
    pub(crate) fn begin(lab: &Lab, urls: &[String], more: &[&str]) -> Self {
        let mut scheduler = Self::prepare(lab, urls, more);
        scheduler.launch();
        scheduler
    }

    pub(crate) fn prepare(lab: &Lab, urls: &[String], more: &[&str]) -> Self {
        Self {
            child: None,
            folder: reaper::folder("fairlead-test-"),
            port: free_port(),
            lab: lab.clone(),
            elasticsearch: urls.join(","),
            more: more.iter().map(|&word| word.to_owned()).collect(),
            variables: Vec::new(),
        }
    }

    /// Starts it again after a kill or stop, with the same address, data and prefix. Waits until it answers.
    pub async fn restart(&mut self) {
        self.launch();
        self.answers().await;
    }

    /// Waits until it answers.
    pub(crate) async fn answers(&mut self) {
        let http = self.http();
        let what = format!("the scheduler on port {} answers", self.port);
        eventually(&what, async || {
            let ended = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().ok().flatten());
            assert!(ended.is_none(), "it ended with {ended:?}:\n{}", self.log());
            let path = "/scheduler/v1/health";
            let reply = http.try_send(Method::GET, path, "", Vec::new()).await;
            reply.is_ok_and(|reply| reply.status == 200).then_some(())
        })
        .await;
    }

    /// Starts it without waiting for it.
    pub fn launch(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .unwrap_or_else(|error| panic!("a log file: {error}"));
        let mut command = Command::new(settings::binary("fairlead"));
        command
            .arg("serve")
            .args(self.store_arguments())
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .args(&self.more)
            .envs(self.variables.iter().cloned())
            .env("HOME", self.folder.path())
            .env("RUST_LOG", "info")
            .envs([reaper::variable()])
            .stdin(Stdio::null())
            .stdout(
                log.try_clone()
                    .unwrap_or_else(|error| panic!("a log file: {error}")),
            )
            .stderr(log);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        self.child = Some(child);
    }

    /// Returns the arguments that name its data: `--data`, and for Elasticsearch its URLs and prefix.
    pub fn store_arguments(&self) -> Vec<String> {
        let data = self.data();
        let mut words = vec!["--data".to_owned(), data.to_string_lossy().into_owned()];
        if self.lab.store() == Store::Elasticsearch {
            words.extend(["--elasticsearch".to_owned(), self.elasticsearch.clone()]);
            words.extend(["--index-prefix".to_owned(), self.prefix().to_owned()]);
        }
        words
    }

    /// Creates an account directly in the store, and returns its token. The scheduler must not run, because an embedded
    /// store belongs to one process.
    pub fn add_account(&self, name: &str, role: &str) -> String {
        assert!(self.child.is_none(), "it runs");
        let store = self.store_arguments();
        let mut words = vec!["account", "add", name, "--role", role];
        words.extend(store.iter().map(String::as_str));
        let made = fairlead(self.folder(), &[], &words);
        made.expect_code(0);
        made.out.lines().last().unwrap_or_default().to_owned()
    }

    /// Kills it (`kill -9`), and reaps it.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it with SIGSTOP. It does nothing until [`Self::resume`].
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes it with SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(self.child()), signal);
    }

    fn child(&self) -> &Child {
        self.child
            .as_ref()
            .unwrap_or_else(|| panic!("it does not run"))
    }

    /// Returns the id of its process.
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    /// Returns the processor time since its last start.
    pub fn cpu(&self) -> Duration {
        cpu::of_process(self.child().id())
    }

    /// Sends SIGTERM, and waits for its orderly end.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ends().await
    }

    /// Waits until it ends.
    pub async fn ends(&mut self) -> ExitStatus {
        let mut child = self
            .child
            .take()
            .unwrap_or_else(|| panic!("it does not run"));
        eventually("the scheduler ends", async || {
            child.try_wait().ok().flatten()
        })
        .await
    }

    /// Adds an argument of `fairlead serve` for its next starts.
    pub fn add_argument(&mut self, word: &str) {
        self.more.push(word.to_owned());
    }

    /// Returns a client without an account.
    pub fn http(&self) -> Http {
        Http::new(&self.url())
    }

    /// Returns its URL: `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the prefix of its indices.
    pub fn prefix(&self) -> &str {
        self.lab.prefix()
    }

    /// Returns its data folder, which it shares with the others of its lab.
    pub fn data(&self) -> PathBuf {
        self.lab.data()
    }

    /// Returns the files of the data folder that contain this text. No file should contain a secret.
    pub fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.data()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if String::from_utf8_lossy(&fs::read(&path).unwrap_or_default())
                    .contains(text)
                {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Returns its folder. The file `log` has its output.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Returns its output so far, over all its starts.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Scheduler {
    #[expect(
        clippy::print_stderr,
        reason = "a failed test shows what the scheduler said"
    )]
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let from = log.len().saturating_sub(20_000);
            let from = (from..log.len())
                .find(|&at| log.is_char_boundary(at))
                .unwrap_or(0);
            eprintln!("--- the scheduler's log ends:\n{}", &log[from..]);
        }
    }
}

/// Returns the first of `n` consecutive free ports.
pub fn free_ports(n: u16) -> u16 {
    for _ in 0..1000 {
        let first = free_port();
        if (first + 1..first + n).all(is_ours) {
            return first;
        }
    }
    panic!("no {n} free ports in a row");
}

/// Returns a loopback port that no other test gets. It is below the system's automatic range, so that nothing takes it
/// while a scheduler is down.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 10_000;
    const RANGE: u16 = 9_000;
    let own = u16::try_from(std::process::id() % u32::from(RANGE)).unwrap_or(0);
    for _ in 0..RANGE {
        let step = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(7);
        let port = FIRST + (own + step % RANGE) % RANGE;
        if is_ours(port) {
            return port;
        }
    }
    panic!("no free port from {FIRST} to {}", FIRST + RANGE);
}

/// Reserves a port for this process until its end. Returns false if another test has it, or if something listens there.
/// Tests of other processes search at the same time, and use their ports later. So each port has a name that only one
/// process can hold.
fn is_ours(port: u16) -> bool {
    static HELD: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let name = SocketAddr::from_abstract_name(format!("fairlead-test-port-{port}"));
    let Ok(holds) = name.and_then(|name| UnixListener::bind_addr(&name)) else {
        return false;
    };
    let is_free = TcpListener::bind(("127.0.0.1", port)).is_ok();
    if is_free {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(holds);
    }
    is_free
}
