//! Start and stop of the agent: the work folder and its lock, jobs of an earlier agent, the loop.

use std::{
    fs, io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use fairlead_api::{Client, ClientConfig};
use fairlead_job::{CONTENT_TAG, Health};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::driver::{Driver, new_session};
use crate::{
    AgentConfig, AgentEvent, BadConfig, JobUsers, Kinds,
    cache::Cache,
    event::Events,
    executor::{Executors, kill_marked},
    facts,
    isolation::{
        children::reap_orphans,
        users::{Users, clear_left},
    },
    job::{Context, End, JobFolder, Journal, deliver_leftover, leftovers},
    load,
    lock::Lock,
    open_files,
    protocol::{Event, Leftover, Measured},
    timer::pause,
};

/// Timeout of a heartbeat at one replica before the next is tried.
const BEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval between checks of images.
const LOOK_AT_IMAGES_EVERY: Duration = Duration::from_secs(30);

/// Interval between measurements of the machine's load.
const MEASURE_EVERY: Duration = Duration::from_secs(2);

/// Runs an agent until `stop` is cancelled.
///
/// A stop is graceful. The agent asks for no more work, and running jobs get SIGTERM, after `grace` SIGKILL. They end
/// with health `abort_provider`. The agent delivers results for up to `report_on_stop`; the next agent in the same
/// `work_dir` delivers the rest. Nothing is left running. `config.kill_now` kills at once. `events` may be full or
/// closed without effect.
///
/// Errors: an invalid configuration, a `work_dir` that is unusable or in use, or a first answer that refuses this
/// testbox (a wrong token). An unreachable scheduler is no error: the agent waits for it.
pub fn run(
    config: AgentConfig,
    stop: CancellationToken,
    events: Option<mpsc::Sender<AgentEvent>>,
) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>> {
    Box::pin(work(config, stop, events))
}

async fn work(
    mut config: AgentConfig,
    stop: CancellationToken,
    events: Option<mpsc::Sender<AgentEvent>>,
) -> anyhow::Result<()> {
    config.check()?;
    config.jobs_max = held_at_once(config.jobs_max);
    let client = |retry_for: Duration, request_timeout: Duration| {
        Client::new(ClientConfig {
            token: config.token.clone(),
            retry_for,
            request_timeout,
            ..ClientConfig::new(config.servers.clone())
        })
    };
    let whole = ClientConfig::default();
    let reporter = client(whole.retry_for, whole.request_timeout)?;
    let asker = client(Duration::ZERO, whole.request_timeout)?;
    let beater = client(Duration::ZERO, BEAT_TIMEOUT)?;
    let (work_dir, keep) = (config.work_dir.clone(), config.keep);
    let shown = work_dir.display().to_string();
    let opened = tokio::task::spawn_blocking(move || open(&work_dir, keep)).await?;
    let Opened {
        lock,
        work_dir,
        instance,
        left,
    } = opened.with_context(|| format!("cannot work in '{shown}'"))?;
    config.work_dir = work_dir;
    let cache = cache(&config).await?;
    let users = users(&config).await?.map(Arc::new);
    let isolation = if users.is_some() { "users" } else { "none" };
    let agent = instance.split('.').next().unwrap_or_default();
    let executors = Executors::find(&config, agent).await?;
    executors.clear_left().await;
    config.kinds = executors.kinds();
    let mut tags = executors.tags();
    tags.push(CONTENT_TAG.to_owned());
    let told = (executors.said(), tags);
    let facts = tokio::task::spawn_blocking(|| facts::find(Path::new("/"))).await?;
    let host = config.host(&new_session(), &instance, isolation, told, facts);
    let context = Arc::new(Context {
        config,
        users,
        executors,
        cache,
        client: reporter,
        events: Events(events),
    });
    let load = measure(&context).await;
    let mut driver = Driver::new(Arc::clone(&context), (asker, beater), host, load);
    let mut beside = watch(&context).await;
    beside.spawn(watch_load(Arc::clone(&context), driver.sender.clone()));
    driver.adopt(left);
    let worked = driver.work(&stop).await;
    driver.wind_down().await;
    beside.shutdown().await;
    drop(lock);
    worked
}

/// Returns the number of jobs that this process can hold, of `jobs_max`.
fn held_at_once(jobs_max: u32) -> u32 {
    let held = open_files::raise(jobs_max);
    if held < jobs_max {
        tracing::warn!(
            jobs_max,
            held,
            "the limit of open files is too low for so many jobs at once (hint: raise the hard limit, LimitNOFILE= of systemd)"
        );
    }
    held
}

/// Starts the background tasks.
async fn watch(context: &Arc<Context>) -> JoinSet<()> {
    context.executors.look_at_images().await;
    let mut tasks = JoinSet::new();
    tasks.spawn(reap_orphans());
    tasks.spawn(watch_images(Arc::clone(context)));
    tasks
}

/// Checks the images regularly, so that changes are reported.
async fn watch_images(context: Arc<Context>) {
    loop {
        pause(LOOK_AT_IMAGES_EVERY).await;
        context.executors.look_at_images().await;
    }
}

/// Measures the load of the machine regularly, so that changes are reported.
async fn watch_load(context: Arc<Context>, events: mpsc::Sender<Event>) {
    while context.config.load_root.is_some() {
        pause(MEASURE_EVERY).await;
        let measured = Event::Measured(measure(&context).await);
        if events.send(measured).await.is_err() {
            return;
        }
    }
}

/// Returns the present load of the machine. `None`: not to be measured.
async fn measure(context: &Context) -> Option<Measured> {
    let root = context.config.load_root.clone()?;
    let measuring = tokio::task::spawn_blocking(move || load::measure(&root));
    measuring.await.ok().flatten()
}

/// Opens the cache of inputs.
async fn cache(config: &AgentConfig) -> anyhow::Result<Arc<Cache>> {
    let folder = match &config.input_cache_dir {
        Some(folder) => std::path::absolute(folder)?,
        None => config.work_dir.join("cache"),
    };
    let bytes_max = config.input_cache_mb.map(|mb| u64::from(mb) << 20);
    let shown = folder.display().to_string();
    let opened = tokio::task::spawn_blocking(move || Cache::open(&folder, bytes_max)).await?;
    let cache = opened.with_context(|| format!("cannot keep inputs in '{shown}'"))?;
    Ok(Arc::new(cache))
}

/// Returns the users for jobs, after a trial. `None`: jobs run as the agent.
async fn users(config: &AgentConfig) -> anyhow::Result<Option<Users>> {
    let Some(range) = config.job_users.range() else {
        return Ok(None);
    };
    let is_asked_for = matches!(config.job_users, JobUsers::Range(_));
    if config.kinds == Kinds::Hw {
        // One job at a time has the whole machine.
        return Ok(None);
    }
    let users = Users::new(range);
    let work_dir = config.work_dir.clone();
    let tried = tokio::task::spawn_blocking(move || users.try_out(&work_dir).map(|()| users));
    match tried.await? {
        Ok(users) => {
            tracing::info!(users = %range, "each job runs as its own user");
            Ok(Some(users))
        }
        Err(error) if is_asked_for => Err(BadConfig(format!(
            "jobs cannot run as their own users: {error} (hint: run the agent as root, or use --job-user none to run all jobs as the agent's user)"
        ))
        .into()),
        Err(error) => {
            tracing::warn!(
                %error,
                "jobs cannot run as their own users here, so all submitters to this host must trust each other (hint: --job-user none accepts this)"
            );
            Ok(None)
        }
    }
}

type Left = (JobFolder, Journal);

/// Work folder of a starting agent.
struct Opened {
    lock: Lock,
    work_dir: PathBuf,
    instance: String,
    left: Vec<Left>,
}

/// Returns the name of the agent instance: the id of its work folder, created if missing, and the machine's boot id. So
/// a restarted agent keeps its name, and a copy of the folder on another machine gets a new one.
fn instance(work_dir: &Path) -> io::Result<String> {
    let file = work_dir.join("instance");
    let kept = fs::read_to_string(&file).ok();
    let kept = kept.and_then(|text| text.trim().parse::<uuid::Uuid>().ok());
    let id = if let Some(id) = kept {
        id
    } else {
        let id = uuid::Uuid::new_v4();
        let next = work_dir.join("instance.next");
        fs::write(&next, format!("{id}\n"))?;
        fs::rename(next, &file)?;
        id
    };
    // Without a boot id, all boots of the machine count as the same.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Ok(format!("{id}.{}", boot.trim()))
}

/// Creates and locks the work folder, and cleans up after an earlier agent. Blocks.
fn open(work_dir: &Path, keep: bool) -> io::Result<Opened> {
    fs::create_dir_all(work_dir)?;
    // Jobs run in their own folders, where relative paths would be wrong.
    let work_dir = fs::canonicalize(work_dir)?;
    let lock = Lock::take(&work_dir.join("lock"))?.ok_or_else(|| {
        io::Error::other(
            "another agent uses this folder (hint: give each agent its own --work-dir)",
        )
    })?;
    let mut open = Vec::new();
    for (folder, mut journal) in leftovers(&work_dir, keep)? {
        let killed = kill_marked(&journal.run)?;
        if let Some(uid) = journal.uid {
            clear_left(uid)?;
        }
        if let Err(error) = folder.take_back(keep) {
            let job_id = &journal.job_id;
            tracing::warn!(job_id, %error, "files of a job, also its secrets, may still be in its folder");
        }
        if killed > 0 {
            let job_id = &journal.job_id;
            tracing::warn!(
                job_id,
                killed,
                "killed the remaining processes of an earlier agent's job"
            );
        }
        if journal.end.is_none() && !journal.started {
            // The job was never started: the scheduler hands it out again when no request names it.
            folder.remove()?;
            continue;
        }
        if journal.end.is_none() {
            journal.end = Some(End {
                health: Health::AbortProvider.as_str().to_owned(),
                exit_code: None,
                reason: "agent restarted".to_owned(),
                ran: true,
                lost: None,
                avoid_host: false,
                crash_signature: None,
                used: None,
            });
            folder.save(&journal)?;
        }
        open.push((folder, journal));
    }
    Ok(Opened {
        lock,
        instance: instance(&work_dir)?,
        work_dir,
        left: open,
    })
}

impl Driver {
    /// Continues deliveries that an earlier agent left.
    fn adopt(&mut self, left: Vec<Left>) {
        let mut adopted = Vec::new();
        for (folder, journal) in left {
            tracing::info!(
                job_id = journal.job_id,
                attempt = journal.attempt,
                "reporting jobs that an earlier agent left"
            );
            let key = (journal.job_id.clone(), journal.attempt);
            adopted.push(Leftover {
                job: journal.held(),
                job_token: journal.job_token.clone(),
                memory_mb: 0,
                cpus: 0,
                runs: false,
                stop_when_cut_off: false,
            });
            let context = Arc::clone(&self.context);
            self.spawn(key, |line| deliver_leftover(context, folder, journal, line));
        }
        self.handle(Event::Adopted(adopted));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_stays_with_its_work_folder() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = instance(one.path()).unwrap();
        assert_eq!(instance(one.path()).unwrap(), first);
        assert_ne!(instance(other.path()).unwrap(), first);
        fs::write(one.path().join("instance"), "?").unwrap();
        assert_ne!(instance(one.path()).unwrap(), first);
    }
}
