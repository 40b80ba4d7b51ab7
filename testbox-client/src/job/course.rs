//! One job from its grant to its confirmed end: folder, boot, setup, workload, post run, delivery.
//!
//! Two things run side by side while it runs: the workload, and its output on the way to the scheduler.
//! Neither waits for the network but the start, which waits a little for the first answer: so a grant that
//! is no longer ours is seldom begun. The reports of its stages are sent by the agent's loop.

use std::{io, sync::Arc, time::Duration};

use fairlead_api::{Grant, JobUpdate, Peer};
use fairlead_job::{DataReadiness, Health, Stage};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    context::Context,
    crashes::CrashWatch,
    end::{ended, is_own, not_started, stopped, unrun},
    environment,
    finish::{NOT_OURS, finish},
    folder::JobFolder,
    hooks::{self, Hook},
    inputs,
    journal::{End, Journal},
    launch::{Invocation, Unrunnable, prepare},
    limit::OwnLimits,
    log::LogShipper,
    output, outputs, peers,
    save::save,
    shards,
};
use crate::{
    AgentEvent, JobLine,
    blocking::blocking,
    cache::Hold,
    executor::{
        INSIDE, Launch, Limits, NoPlace, Outcome, Place, ResultLimits, Task, Workload, kill_marked,
    },
    isolation::users::JobUser,
    protocol::Why,
    timer::pause,
};

/// Time for which output is still read after the end of the workload, if an escaped process holds the pipe.
const OUTPUT_DRAIN: Duration = Duration::from_secs(2);
/// A job in progress.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) context: Arc<Context>,
    pub(crate) grant: Grant,
    pub(crate) folder: JobFolder,
    /// Mark of its processes.
    pub(crate) run: String,
    pub(crate) line: JobLine,
    /// Holds that keep its inputs in the cache. Empty until they are fetched.
    pub(crate) holds: Vec<Hold>,
}

impl Course {
    /// Runs the job and delivers its end.
    pub(crate) async fn run(mut self) {
        let mut journal = Journal::new(&self.grant, std::mem::take(&mut self.run));
        let context = Arc::clone(&self.context);
        let client = context.client.clone();
        let shipper = LogShipper::new(client, &journal, self.folder.output());
        let mut shipper = shipper.with_delay(self.grant.log_delay_ms);
        let (size, sizes) = watch::channel(0);
        let over = CancellationToken::new();
        let shipping = async {
            tokio::select! {
                () = shipper.follow(sizes) => {}
                () = over.cancelled() => {}
            }
        };
        let working = async {
            let end = self.work(&mut journal, size).await;
            over.cancel();
            let (folder, keep) = (self.folder.clone(), self.context.config.keep);
            if let Err(error) = blocking(move || folder.take_back(keep)).await {
                tracing::warn!(job_id = journal.job_id, %error, "files of a job, also its secrets, may still be in its folder");
            }
            let is_faulty = journal.end.as_ref().is_some_and(End::is_fault);
            self.line.over(is_faulty).await;
            end
        };
        let (end, ()) = tokio::join!(working, shipping);
        self.line.may_deliver().await;
        let end = end.ok_or_else(|| match self.line.stop().map(|stop| stop.why) {
            Some(Why::Forget { reason }) => reason,
            _ => NOT_OURS.to_owned(),
        });
        finish(&context, &self.folder, journal, end, shipper, self.line).await;
    }

    /// Runs the job and notes its end in the journal. `None`: forget the job.
    async fn work(&mut self, journal: &mut Journal, size: watch::Sender<u64>) -> Option<End> {
        let started = Instant::now();
        let mut ran_since = None;
        let end = match self.prepare(journal).await {
            Ok(Some(launch)) => {
                ran_since = Some(Instant::now());
                let end = self.workload(journal, launch, &size).await;
                self.holds.clear();
                outputs::checked(&self.folder, journal, end).await
            }
            Ok(None) => None,
            Err(end) => Some(end),
        };
        let end = self.judged(journal, end?).await;
        let run_ms = ran_since.map_or(0, |since: Instant| since.elapsed().as_millis());
        tracing::info!(
            job_id = journal.job_id,
            attempt = journal.attempt,
            health = end.health,
            exit_code = end.exit_code,
            reason = end.reason,
            used = ?end.used,
            run_ms,
            all_ms = started.elapsed().as_millis(),
            "job ended"
        );
        self.context.events.send(AgentEvent::Ended {
            job_id: journal.job_id.clone(),
            attempt: journal.attempt,
            health: end.health.parse().unwrap_or(Health::Abort),
            exit_code: end.exit_code,
            reason: end.reason.clone(),
            run_ms: u64::try_from(run_ms).unwrap_or(u64::MAX),
            results: self.folder.result(),
        });
        journal.end = Some(end.clone());
        if let Err(error) = save(&self.folder, journal).await {
            tracing::error!(job_id = journal.job_id, %error, "the journal cannot be written; a restart would lose the end of this job");
        }
        if end.ran {
            let more = JobUpdate {
                job_data_readiness: Some(DataReadiness::Uploading.as_str().to_owned()),
                ..JobUpdate::default()
            };
            self.report(Stage::PostRun, more).await;
        }
        Some(end)
    }

    /// Runs stages boot and setup. `Ok(None)`: forget the job. Errors are the end of a job that never ran.
    async fn prepare(&mut self, journal: &mut Journal) -> Result<Option<Launch>, End> {
        self.make_folder(journal).await?;
        self.report(Stage::Boot, JobUpdate::default()).await;
        // Without an answer in time the job starts anyway, because the lease proves that it is ours.
        if let Err(stop) = self.line.goes_on(Stage::Boot).await {
            return stopped(stop.why, None).map_or(Ok(None), Err);
        }
        self.report(Stage::Setup, JobUpdate::default()).await;
        let Some(place) = self.place().await? else {
            return Ok(None);
        };
        let seen = match &place {
            Place::Host => self.folder.clone(),
            Place::Container(_) | Place::Machine(_) => JobFolder::seen_at(INSIDE),
        };
        let given = inputs::give(
            &self.context,
            &self.grant,
            &self.folder,
            &place,
            &mut self.line,
        );
        let Some(holds) = given.await? else {
            return Ok(None);
        };
        self.holds = holds;
        let invocation = self.invocation(&seen).await?;
        let Some(peers) = self.meet(journal).await? else {
            return Ok(None);
        };
        if !self.prolog(journal).await? {
            return Ok(None);
        }
        let user = self.user().await?;
        journal.uid = user.as_ref().map(|user| user.uid);
        journal.in_machine = matches!(place, Place::Machine(_));
        let executors = &self.context.executors;
        journal.image_digest = executors.image_digest(&self.grant, &place).await;
        journal.started = true;
        save(&self.folder, journal).await.map_err(|error| {
            unrun(
                Health::AbortProvider,
                format!("its journal cannot be written: {error}"),
            )
        })?;
        let config = &self.context.config;
        let path = matches!(place, Place::Host).then_some(config.path.as_str());
        Ok(Some(Launch {
            task: Task {
                program: invocation.program,
                args: invocation.args,
                env: environment::of(&self.grant, &seen, &config.host, path, &peers),
                folder: self.folder.path().to_owned(),
                run: journal.run.clone(),
            },
            user,
            groups: executors.groups(&self.grant, &place),
            place,
        }))
    }

    /// Runs the site's scripts before the job. Returns false if the job must be forgotten.
    async fn prolog(&mut self, journal: &Journal) -> Result<bool, End> {
        let (context, grant) = (Arc::clone(&self.context), &self.grant);
        let done = tokio::select! {
            biased;
            stop = self.line.stopped() => {
                return stopped(stop.why, None).map_or(Ok(false), Err);
            }
            done = hooks::run(&context, grant, &self.folder, &journal.run, Hook::Prolog) => done,
        };
        done.map(|()| true).map_err(|reason| End {
            avoid_host: true,
            ..unrun(Health::AbortProvider, reason)
        })
    }

    /// Returns the end as the site judges it: by its scripts after the job, and by the files that the job left.
    async fn judged(&self, journal: &Journal, end: End) -> End {
        let context = &self.context;
        let hook = Hook::Epilog(&end);
        let done = tokio::select! {
            biased;
            () = context.config.kill_now.cancelled() => Ok(()),
            done = hooks::run(context, &self.grant, &self.folder, &journal.run, hook) => done,
        };
        if context.config.hooks.is_some() {
            let run = journal.run.clone();
            if let Err(error) = blocking(move || kill_marked(&run).map(drop)).await {
                tracing::warn!(%error, "cannot kill all remaining processes of a script of the site");
            }
        }
        if let Err(reason) = done {
            return end.of_bad_host(reason);
        }
        let failed = end.ran && end.health == Health::Fail.as_str();
        let is_shard = shards::is_shard(&self.grant);
        if (context.config.silent_is_fault || is_shard) && failed {
            let folder = self.folder.clone();
            let is_silent = blocking(move || folder.is_silent()).await;
            if is_silent.unwrap_or(false) {
                let reason = "it failed without output and without a result".to_owned();
                return end.of_bad_host(reason);
            }
        }
        if is_shard && end.ran && end.exit_code == Some(0) {
            let (grant, folder) = (self.grant.clone(), self.folder.clone());
            let warned = blocking(move || shards::warn_of_ignored(&grant, &folder)).await;
            if let Err(error) = warned {
                tracing::warn!(%error, "cannot warn of a shard that may have run all tests");
            }
        }
        end
    }

    /// Creates the folder with its first journal.
    async fn make_folder(&self, journal: &Journal) -> Result<(), End> {
        let (folder, grant, first) = (self.folder.clone(), self.grant.clone(), journal.clone());
        let make = move || {
            folder.create(&grant)?;
            shards::write_tests(&grant, &folder)?;
            folder.save(&first)
        };
        blocking(make).await.map_err(|error| {
            unrun(
                Health::AbortProvider,
                format!("its folder cannot be created: {error}"),
            )
        })
    }

    /// Returns the place of the job, with its image fetched. `Ok(None)`: forget the job.
    async fn place(&mut self) -> Result<Option<Place>, End> {
        let config = &self.context.config;
        let fault = |reason| unrun(Health::AbortProvider, reason);
        let limits = ResultLimits {
            files: config.result_files_max,
            bytes: config.result_bytes_max,
        };
        let shared = self.folder.shared();
        let place = self.context.executors.place(&self.grant, shared, limits);
        let mut place = place.map_err(|error| match error {
            NoPlace::Job(reason) => unrun(Health::AbortInvalid, reason),
            NoPlace::Host(reason) => fault(reason),
        })?;
        let Place::Container(plan) = &mut place else {
            return Ok(Some(place));
        };
        let fetched = tokio::select! {
            biased;
            stop = self.line.stopped() => {
                return stopped(stop.why, None).map_or(Ok(None), Err);
            }
            fetched = plan.engine.fetch(&plan.image) => fetched,
        };
        match fetched {
            Ok(fetched) => {
                plan.fetched = Some(fetched);
                Ok(Some(place))
            }
            Err(error) => Err(fault(format!(
                "its image '{}' cannot be had: {error}",
                plan.image.full()
            ))),
        }
    }

    /// Writes the script, and returns the program to run. The job sees its folder as `seen`.
    async fn invocation(&self, seen: &JobFolder) -> Result<Invocation, End> {
        let (folder, grant) = (self.folder.clone(), self.grant.clone());
        let seen = seen.clone();
        let runner = self.context.config.runner.clone();
        let prepared =
            tokio::task::spawn_blocking(move || prepare(&grant, &folder, &seen, runner.as_deref()));
        match prepared.await {
            Ok(Ok(invocation)) => Ok(invocation),
            Ok(Err(Unrunnable::Job(reason))) => Err(unrun(Health::AbortInvalid, reason)),
            Ok(Err(error)) => Err(unrun(Health::AbortProvider, error.to_string())),
            Err(error) => Err(unrun(Health::AbortProvider, error.to_string())),
        }
    }

    /// Takes the job's user, and gives it the folder. `None`: the agent's own.
    async fn user(&self) -> Result<Option<JobUser>, End> {
        let Some(users) = self.context.users.clone() else {
            return Ok(None);
        };
        let folder = self.folder.clone();
        let taking = move || {
            let user = users.take()?;
            folder.give(user.uid)?;
            Ok(Some(user))
        };
        blocking(taking).await.map_err(|error| {
            let reason = format!("it cannot have a user of its own: {error}");
            unrun(Health::AbortProvider, reason)
        })
    }

    /// Runs stage `wait_peer` of a cluster node, and returns its peers. `Ok(None)`: forget the job.
    async fn meet(&mut self, journal: &Journal) -> Result<Option<Vec<Peer>>, End> {
        if !peers::is_node(&self.grant) {
            return Ok(Some(Vec::new()));
        }
        let config = &self.context.config;
        let (said, servers) = (config.address.clone(), config.servers.clone());
        let address = match said {
            Some(address) => Some(address),
            None => tokio::task::spawn_blocking(move || peers::own_address(&servers))
                .await
                .ok()
                .flatten(),
        };
        let more = JobUpdate {
            address,
            ..JobUpdate::default()
        };
        self.report(Stage::WaitPeer, more).await;
        let mut line = self.line.clone();
        let waiting = async {
            line.goes_on(Stage::WaitPeer).await?;
            let client = &self.context.client;
            match peers::wait(client, journal).await {
                Ok(peers) => Ok(peers),
                Err(error) => Err(line.refused(error.to_string()).await),
            }
        };
        let met = tokio::select! {
            biased;
            stop = self.line.stopped() => Err(stop),
            met = waiting => met,
        };
        met.map(Some)
            .or_else(|stop| stopped(stop.why, None).map_or(Ok(None), Err))
    }

    /// Runs stage running. `None`: forget the job.
    async fn workload(
        &mut self,
        journal: &Journal,
        launch: Launch,
        size: &watch::Sender<u64>,
    ) -> Option<End> {
        let program = launch.task.program.to_string_lossy().into_owned();
        let is_console = matches!(launch.place, Place::Machine(_));
        let mut crashes = CrashWatch::of(&self.grant.job, is_console);
        let file = match output::create(&self.folder.output()).await {
            Ok(file) => file,
            Err(error) => {
                let reason = format!("its output cannot be kept: {error}");
                return Some(unrun(Health::AbortProvider, reason));
            }
        };
        let (workload, pipe) = match Workload::start(launch) {
            Ok(started) => started,
            Err(error) => return Some(not_started(&program, &error)),
        };
        self.report(Stage::Running, JobUpdate::default()).await;
        let config = &self.context.config;
        let limits = Limits {
            expired: CancellationToken::new(),
            crashed: crashes.over(),
            grace: config.grace,
            kill_now: config.kill_now.clone(),
        };
        let dead = CancellationToken::new();
        let mut line = self.line.clone();
        let supervising = async {
            let outcome = workload.supervise(&limits, self.line.told()).await;
            dead.cancel();
            outcome
        };
        let heard = Notify::new();
        let log_max = config.log_bytes_max;
        let pump = output::pump(pipe, file, log_max, size, &heard, &mut crashes);
        let pumping = drained(pump, &dead);
        let own = OwnLimits::of(&self.grant);
        let timing = async {
            let over = tokio::select! {
                over = own.reached(&mut line, &heard) => over,
                () = dead.cancelled() => return String::new(),
            };
            limits.expired.cancel();
            over
        };
        let (outcome, pumped, over) = tokio::join!(supervising, pumping, timing);
        let lost = pumped.err().map(|error| lost_output(journal, &error));
        let by_itself = outcome
            .as_ref()
            .is_ok_and(|outcome| is_own(&outcome.verdict));
        let end = end_of(outcome, &program, over)?;
        let end = crashes.note(end, by_itself);
        Some(End { lost, ..end })
    }

    async fn report(&self, stage: Stage, more: JobUpdate) {
        self.context.events.send(AgentEvent::Stage {
            job_id: self.grant.job_id.clone(),
            attempt: self.grant.attempt,
            stage,
        });
        self.line.report(stage, more).await;
    }
}

/// Reads the output to its end, or until shortly after the workload's end.
async fn drained(
    pump: impl Future<Output = io::Result<()>>,
    dead: &CancellationToken,
) -> io::Result<()> {
    let late = async {
        dead.cancelled().await;
        pause(OUTPUT_DRAIN).await;
    };
    tokio::select! {
        pumped = pump => pumped,
        () = late => Ok(()),
    }
}

/// Returns the end of a job whose workload ended. `None`: forget the job.
fn end_of(outcome: io::Result<Outcome>, program: &str, over: String) -> Option<End> {
    match outcome {
        Ok(Outcome {
            verdict,
            note,
            missing,
        }) => ended(verdict, program, over).map(|end| end.with(missing).that_used(note)),
        Err(error) => Some(unwatched(&error)),
    }
}

/// Returns the reason why a part of a job's output is lost, for people.
fn lost_output(journal: &Journal, error: &io::Error) -> String {
    let job_id = &journal.job_id;
    tracing::warn!(job_id, %error, "a part of the output could not be stored");
    format!("a part of its output could not be kept on the testbox: {error}")
}

/// Returns the end of a job that could not be watched.
fn unwatched(error: &io::Error) -> End {
    let reason = format!("it could not be watched: {error}");
    End {
        ran: true,
        ..unrun(Health::AbortProvider, reason)
    }
}
