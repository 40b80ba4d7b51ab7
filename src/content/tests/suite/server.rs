//! A real S3 server, `s3s-fs`, on a folder of its own.

use std::{
    env,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// It must listen within this time.
const STARTS_WITHIN: Duration = Duration::from_mins(2);
/// So many ports are tried: another program may take one that was free.
const PORTS_MAX: u32 = 10;
pub(crate) const BUCKET: &str = "lab";
const PROGRAM: &str = "s3s-fs";

/// It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    port: u16,
    _root: TempDir,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the suite's settings are read here"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn program() -> PathBuf {
    if let Some(named) = variable("FAIRLEAD_S3S_FS") {
        return PathBuf::from(named);
    }
    let path = variable("PATH").unwrap_or_default();
    let home = variable("HOME").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    folders.push(Path::new(&home).join(".cargo/bin"));
    let found = folders.into_iter().map(|folder| folder.join(PROGRAM));
    found.into_iter().find(|program| program.is_file()).expect(
        "the suite needs s3s-fs. hint: cargo install s3s-fs --features binary --version 0.14.1, or FAIRLEAD_S3S_FS=PROGRAM",
    )
}

/// False: it has ended.
#[expect(clippy::disallowed_methods, reason = "a deadline")]
fn listens(child: &mut Child, port: u16) -> bool {
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(begun.elapsed() < STARTS_WITHIN, "s3s-fs does not listen");
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    child.try_wait().unwrap().is_none()
}

impl Server {
    pub(crate) fn start() -> Self {
        let mut started = (0..PORTS_MAX).map(|_| Self::start_once());
        let started = started.find_map(|(listens, server)| listens.then_some(server));
        started.expect("s3s-fs finds a port")
    }

    fn start_once() -> (bool, Self) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(BUCKET)).unwrap();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = Command::new(program())
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--access-key", "key", "--secret-key", "secret"])
            .arg(root.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("s3s-fs starts");
        let mut server = Self {
            child,
            port,
            _root: root,
        };
        (listens(&mut server.child, port), server)
    }

    /// The variables with which a store is opened there.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        s3_at(&format!("http://127.0.0.1:{}", self.port))
    }
}

/// The variables for an S3 server without TLS.
pub(crate) fn s3_at(endpoint: &str) -> Vec<(String, String)> {
    [
        ("AWS_ENDPOINT", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
