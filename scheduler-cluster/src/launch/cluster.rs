//! Starts, stops, kills and pauses replicas.

use std::{
    fs::File,
    net::TcpListener,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;

use fairlead_reaper::Reaper;

use super::{
    Condition, Elastic, LaunchError, OwnElastic, Process, Replica, ReplicaView, Settings,
    folder::{Folder, Lock, Memory},
    plan::{Asked, planned},
};
use crate::clock::until;

/// How long a replica may take to be ready: it may have to make indices, or wait for Elasticsearch.
const READY_TIME: Duration = Duration::from_secs(90);
/// How long it may take to stop in order; requests in flight get 10 s of it.
const STOP_TIME: Duration = Duration::from_secs(30);
/// How long a killed process may take to be gone.
const KILL_TIME: Duration = Duration::from_secs(10);
/// How often a process is looked at while it starts or ends.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How much of a log is shown when a replica does not start, bytes.
const LOG_SHOWN: usize = 1500;

/// Replicas of one scheduler on this machine, and the only hand on their folder.
#[derive(Debug)]
pub struct Cluster {
    pub(super) folder: Folder,
    pub(super) memory: Memory,
    /// Ends what `up` has started, until the cluster is left alone.
    reaper: Option<Reaper>,
    _lock: Lock,
}

impl Cluster {
    /// Takes the folder of a cluster that was started before.
    ///
    /// # Errors
    /// Nothing was started there, or another command works on it.
    pub fn open(dir: &Path) -> Result<Self, LaunchError> {
        let folder = Folder::new(dir)?;
        let memory = remembered(&folder)?;
        let lock = folder.lock()?;
        Ok(Self {
            folder,
            memory,
            reaper: None,
            _lock: lock,
        })
    }

    /// Starts a cluster, or what of it does not run, and waits until all replicas are ready. All that it starts ends with
    /// `reaper`, and that with the cluster: when this fails, when it is dropped, and when the process ends in any way.
    /// [`Self::leave`] lets it go on.
    ///
    /// # Errors
    /// Other settings than those that it runs with, a port that is taken, a replica that does not start.
    pub async fn up(dir: &Path, asked: Asked, reaper: Reaper) -> Result<Self, LaunchError> {
        let folder = Folder::new(dir)?;
        let lock = folder.lock()?;
        let known = folder.load()?;
        let (memory, changed) = planned(asked, known.clone())?;
        let running = known.filter(|known| known.replicas.iter().any(Replica::is_running));
        let is_new = running.is_none();
        if let Some(running) = running
            && (changed || memory.replicas.len() < running.replicas.len())
        {
            return Err(LaunchError::usage(
                format!(
                    "replicas run in '{}' with other settings",
                    folder.path().display()
                ),
                "`fairlead-cluster down` first, or give another --dir",
            ));
        }
        let mut cluster = Self {
            folder,
            memory,
            reaper: Some(reaper),
            _lock: lock,
        };
        let replicas = cluster.memory.replicas.iter();
        let down: Vec<Replica> = replicas.filter(|one| !one.is_running()).cloned().collect();
        // Nothing is started that cannot be of use.
        down.iter().try_for_each(has_its_port)?;
        cluster.start_elasticsearch(is_new).await?;
        cluster.folder.save(&cluster.memory)?;
        let down: Vec<u16> = down.iter().map(|replica| replica.number).collect();
        for &number in &down {
            cluster.start(number)?;
        }
        for &number in &down {
            cluster.wait_ready(number).await?;
        }
        Ok(cluster)
    }

    /// The reaper ends one that nothing of this cluster has used so far.
    async fn start_elasticsearch(&mut self, is_new: bool) -> Result<(), LaunchError> {
        if let Some((elastic, own)) = self.elastic()? {
            if is_new && let Some(reaper) = &self.reaper {
                elastic.ends_with(reaper)?;
            }
            self.memory.settings.elasticsearch = elastic.start(own).await?;
        }
        Ok(())
    }

    /// The Elasticsearch that is our own, if it is.
    pub fn elastic(&self) -> Result<Option<(Elastic, OwnElastic)>, LaunchError> {
        let Some(own) = self.memory.settings.own_elasticsearch else {
            return Ok(None);
        };
        let elastic = Elastic::below(self.folder.path(), self.reaper.as_ref())?;
        Ok(Some((elastic, own)))
    }

    /// The replicas.
    pub fn replicas(&self) -> &[Replica] {
        &self.memory.replicas
    }

    /// How it is run.
    pub fn settings(&self) -> &Settings {
        &self.memory.settings
    }

    /// Where replica `number` logs.
    pub fn log(&self, number: u16) -> PathBuf {
        self.folder.log(number)
    }

    pub(super) fn replica(&self, number: u16) -> Result<&Replica, LaunchError> {
        let replicas = &self.memory.replicas;
        replicas
            .iter()
            .find(|replica| replica.number == number)
            .ok_or_else(|| {
                LaunchError::usage(
                    format!("there is no replica {number}"),
                    format!("they are 1 to {}", replicas.len()),
                )
            })
    }

    fn process(&self, number: u16) -> Result<Process, LaunchError> {
        let replica = self.replica(number)?;
        let process = replica.process.as_ref().filter(|one| one.is_running());
        process.cloned().ok_or_else(|| {
            LaunchError::usage(
                format!("replica {number} does not run"),
                format!("`fairlead-cluster restart {number}` starts it"),
            )
        })
    }

    /// Starts the process of one replica that does not run; it is not ready yet.
    ///
    /// # Errors
    /// Its port is taken, or its program cannot be started.
    pub fn start(&mut self, number: u16) -> Result<(), LaunchError> {
        let replica = self.replica(number)?.clone();
        has_its_port(&replica)?;
        let failed = |cause: std::io::Error| {
            LaunchError::local(
                format!("cannot start '{}': {cause}", replica.binary.display()),
                "say --binary PATH of a `fairlead`",
            )
        };
        let path = self.folder.log(number);
        let mut options = File::options();
        options.create(true).append(true).mode(0o600);
        let log = options.open(&path);
        let log = log.map_err(|cause| LaunchError::file(&path, cause))?;
        let settings = &self.memory.settings;
        let mut command = Command::new(&replica.binary);
        command
            .arg("serve")
            .args(["--listen", &format!("127.0.0.1:{}", replica.port)])
            .args(["--elasticsearch", &settings.elasticsearch.join(",")])
            .args(["--index-prefix", &settings.index_prefix])
            .args(&settings.login)
            .arg("--data")
            .arg(self.folder.data())
            .args(&settings.more)
            .envs(self.reaper.as_ref().map(Reaper::variable))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log);
        let process = Process::start(&mut command).map_err(failed)?;
        self.remember(number, |replica| replica.process = Some(process))
    }

    pub(super) fn remember(
        &mut self,
        number: u16,
        change: impl FnOnce(&mut Replica),
    ) -> Result<(), LaunchError> {
        let replicas = &mut self.memory.replicas;
        if let Some(replica) = replicas.iter_mut().find(|one| one.number == number) {
            change(replica);
        }
        self.folder.save(&self.memory)
    }

    /// Waits until one replica takes work.
    ///
    /// # Errors
    /// It ended, or took too long: with the end of its log.
    pub async fn wait_ready(&self, number: u16) -> Result<(), LaunchError> {
        let replica = self.replica(number)?;
        let ready = until(LOOK_EVERY, READY_TIME, async || {
            let view = ReplicaView::of(replica).await;
            match view.condition {
                Condition::Up => Some(Ok(())),
                Condition::Down => Some(Err("it ended".to_owned())),
                _ => None,
            }
        })
        .await;
        let why = match ready {
            Some(Ok(())) => return Ok(()),
            Some(Err(why)) => why,
            None => format!("it was not ready within {} s", READY_TIME.as_secs()),
        };
        let log = self.folder.log(number);
        Err(LaunchError::local(
            format!("replica {number} did not start: {why}\n{}", tail_of(&log)),
            "the lines above are the end of its log",
        ))
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// It does not run.
    pub async fn kill(&mut self, number: u16) -> Result<(), LaunchError> {
        let process = self.process(number)?;
        send(&process, Signal::KILL)?;
        gone(&process, KILL_TIME).await;
        Ok(())
    }

    /// SIGSTOP: it keeps its connections and answers nothing.
    ///
    /// # Errors
    /// It does not run.
    pub fn pause(&mut self, number: u16) -> Result<(), LaunchError> {
        send(&self.process(number)?, Signal::STOP)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&mut self, number: u16) -> Result<(), LaunchError> {
        send(&self.process(number)?, Signal::CONT)
    }

    /// Stops one replica in order: waiting requests are answered, claims in flight finish. One that takes
    /// too long is killed. Returns whether it stopped by itself; one that does not run has.
    ///
    /// # Errors
    /// There is no such replica, or the system's.
    pub async fn stop(&mut self, number: u16) -> Result<bool, LaunchError> {
        let Some(process) = self.replica(number)?.process.clone() else {
            return Ok(true);
        };
        stop(&process).await
    }

    /// Stops one replica in order, if it runs, and starts it again. Returns when it is ready, with whether
    /// it stopped by itself.
    ///
    /// # Errors
    /// It does not start.
    pub async fn restart(&mut self, number: u16) -> Result<bool, LaunchError> {
        let in_order = self.stop(number).await?;
        self.start(number)?;
        self.wait_ready(number).await?;
        Ok(in_order)
    }

    /// Stops all replicas, then an Elasticsearch of our own. All data stays. Returns the numbers of those
    /// that had to be killed.
    ///
    /// # Errors
    /// The system's.
    pub async fn down(self) -> Result<Vec<u16>, LaunchError> {
        let mut killed = Vec::new();
        let processes = || {
            let replicas = self.memory.replicas.iter();
            replicas.filter_map(|replica| Some((replica.number, replica.process.clone()?)))
        };
        for (_, process) in processes() {
            ask_to_stop(&process)?;
        }
        for (number, process) in processes() {
            if !stop(&process).await? {
                killed.push(number);
            }
        }
        if let Some((elastic, _)) = self.elastic()? {
            elastic.stop().await?;
        }
        self.leave()?;
        Ok(killed)
    }

    /// Leaves all of it as it is: replicas that run go on, and the folder stays.
    ///
    /// # Errors
    /// The reaper has ended.
    pub fn leave(self) -> Result<(), LaunchError> {
        let kept = self.reaper.map_or(Ok(()), Reaper::keep);
        kept.map_err(LaunchError::reaper)
    }

    /// How each replica of a folder's cluster is. Asks beside any other command.
    ///
    /// # Errors
    /// Nothing was started there.
    pub async fn look(dir: &Path) -> Result<Vec<ReplicaView>, LaunchError> {
        let memory = remembered(&Folder::new(dir)?)?;
        let mut views = Vec::new();
        for replica in &memory.replicas {
            views.push(ReplicaView::of(replica).await);
        }
        Ok(views)
    }
}

fn remembered(folder: &Folder) -> Result<Memory, LaunchError> {
    folder.load()?.ok_or_else(|| {
        LaunchError::usage(
            format!("nothing was started in '{}'", folder.path().display()),
            "start a cluster with `fairlead-cluster up`; --dir names its folder",
        )
    })
}

fn has_its_port(replica: &Replica) -> Result<(), LaunchError> {
    let bound = TcpListener::bind(("127.0.0.1", replica.port));
    bound.map(drop).map_err(|_| {
        LaunchError::local(
            format!("port {} is taken by another program", replica.port),
            "stop it, or choose another --port",
        )
    })
}

fn send(process: &Process, signal: Signal) -> Result<(), LaunchError> {
    process.signal(signal).map(drop).map_err(|cause| {
        LaunchError::local(
            format!("process {} cannot be signalled: {cause}", process.pid),
            "is it another user's?",
        )
    })
}

/// A paused process hears of its end only when it goes on.
fn ask_to_stop(process: &Process) -> Result<(), LaunchError> {
    send(process, Signal::TERM)?;
    send(process, Signal::CONT)
}

async fn stop(process: &Process) -> Result<bool, LaunchError> {
    ask_to_stop(process)?;
    if gone(process, STOP_TIME).await {
        return Ok(true);
    }
    send(process, Signal::KILL)?;
    gone(process, KILL_TIME).await;
    Ok(false)
}

/// Waits until a process is gone.
async fn gone(process: &Process, limit: Duration) -> bool {
    let gone = until(LOOK_EVERY, limit, async || process.is_gone().then_some(()));
    let gone = gone.await.is_some();
    if gone {
        process.reap();
    }
    gone
}

fn tail_of(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let from = bytes.len().saturating_sub(LOG_SHOWN);
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default())
        .trim()
        .to_owned()
}
