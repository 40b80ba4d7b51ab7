//! Runs a workload as processes of this host. They have their own process group, an empty stdin, stdout and stderr in
//! one pipe, and a minimal environment. After the end none of them runs, in any case. Dropping a [`Workload`] kills it.

use std::{
    ffi::OsString,
    io::{self, PipeWriter},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    net::unix::pipe,
    process::{Child, Command},
    sync::watch,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    marked::{MARK, kill_marked},
    oom::OomKills,
};
use crate::{
    isolation::{
        children::{self, OwnChild},
        launcher::{Failure, Order, Post},
        users::JobUser,
    },
    protocol::{Told, Why},
};

/// The longest grace that is counted, 10 years: beyond it the clock's arithmetic could overflow.
const GRACE_MAX: Duration = Duration::from_hours(10 * 365 * 24);
/// The exit code by which a shell says that its child died of SIGKILL.
const SHELL_SIGKILL: i32 = 128 + 9;

/// What to run.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// All of the environment.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) folder: PathBuf,
    /// Marks every process of the run.
    pub(crate) run: String,
    /// The user that it runs under; `None`: the agent's own.
    pub(crate) user: Option<JobUser>,
}

/// When to stop a workload that goes on.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Cancelled when it has run too long.
    pub(crate) expired: CancellationToken,
    /// Time between the polite signal and the last one when it ran too long.
    pub(crate) grace: Duration,
    /// Kills without grace.
    pub(crate) kill_now: CancellationToken,
}

/// How a workload ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// By itself.
    Exited {
        /// Its exit code, 128 + n after signal n.
        code: i32,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The kernel killed for want of memory meanwhile, and it looks as if this was meant.
        oom: bool,
    },
    /// It ran into its own limit.
    TooLong {
        /// As in `Exited`.
        code: i32,
    },
    /// It was ordered to stop.
    Stopped {
        /// As in `Exited`.
        code: i32,
        /// By whom.
        why: Why,
    },
    /// Its launcher could not become it.
    NotLaunched(Failure),
}

/// A workload that runs.
#[derive(Debug)]
pub(crate) struct Workload {
    child: Child,
    _own: OwnChild,
    group: Group,
    run: String,
    /// Its user, and what the launcher was told.
    launched: Option<(JobUser, Post)>,
    oom_before: OomKills,
}

/// A process group, killed when dropped.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The only error that can come is that nobody is left.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// What is started for a workload, and where it has a user of its own, that and what its launcher is told. Its output
/// goes into `writer`.
fn command_of(
    launch: Launch,
    writer: &PipeWriter,
) -> io::Result<(Command, Option<(JobUser, Post)>)> {
    let Some(user) = launch.user else {
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.args)
            .env_clear()
            .envs(launch.env)
            .current_dir(&launch.folder)
            .stdin(Stdio::null());
        return Ok((command, None));
    };
    // Else it could not open what `/dev/stderr` names.
    let uid = rustix::process::Uid::from_raw(user.uid);
    rustix::fs::fchown(writer, Some(uid), None)?;
    let post = Post::of(&Order {
        uid: user.uid,
        folder: launch.folder.into(),
        program: launch.program,
        args: launch.args,
        env: launch
            .env
            .into_iter()
            .chain([(MARK.to_owned(), launch.run)])
            .collect(),
    })?;
    Ok((Command::from(post.command()?), Some((user, post))))
}

impl Workload {
    /// Starts it; its output comes out of the pipe.
    pub(crate) fn start(launch: Launch) -> io::Result<(Self, pipe::Receiver)> {
        let (reader, writer) = io::pipe()?;
        let run = launch.run.clone();
        let (mut command, launched) = command_of(launch, &writer)?;
        command
            .env(MARK, &run)
            .stdout(OwnedFd::from(writer.try_clone()?))
            .stderr(OwnedFd::from(writer))
            .process_group(0)
            .kill_on_drop(true);
        let oom_before = OomKills::now();
        let (child, own) = children::start(|| command.spawn(), Child::id)?;
        // The command holds the writing ends: with it they close here, so that the reader sees the end.
        drop(command);
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let workload = Self {
            group: Group(pid.and_then(Pid::from_raw)),
            child,
            _own: own,
            run,
            launched,
            oom_before,
        };
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        Ok((workload, output))
    }

    /// Watches it to its end, then kills what is left of it.
    pub(crate) async fn supervise(
        mut self,
        limits: &Limits,
        told: &mut watch::Receiver<Told>,
    ) -> io::Result<Verdict> {
        let (status, cause) = self.watch(limits, told).await?;
        // The group's number stays taken while anything of it lives, and otherwise was free for
        // microseconds: no other group can be meant.
        self.group.signal(Signal::KILL);
        self.group.0 = None;
        let (run, launched) = (std::mem::take(&mut self.run), self.launched.take());
        let sweep = tokio::task::spawn_blocking(move || {
            let swept = kill_marked(&run);
            let cleared = launched.as_ref().map(|(user, _)| user.clear());
            let failure = launched.map(|(_, post)| post.failure());
            (
                swept.map(drop).and(cleared.unwrap_or(Ok(()))),
                failure,
                OomKills::now(),
            )
        });
        let (swept, failure, oom_after) = sweep.await.map_err(io::Error::other)?;
        if let Err(error) = swept {
            tracing::warn!(%error, "cannot kill all remaining processes of a job");
        }
        if let Some(failure) = failure.transpose()?.flatten() {
            return Ok(Verdict::NotLaunched(failure));
        }
        let signal = status.signal();
        let code = status
            .code()
            .unwrap_or_else(|| 128 + signal.unwrap_or_default());
        Ok(match cause {
            Some(Cause::TooLong) => Verdict::TooLong { code },
            Some(Cause::Stopped(why)) => Verdict::Stopped { code, why },
            None => Verdict::Exited {
                code,
                signal,
                oom: code == SHELL_SIGKILL && oom_after.since(self.oom_before),
            },
        })
    }

    async fn watch(
        &mut self,
        limits: &Limits,
        told: &mut watch::Receiver<Told>,
    ) -> io::Result<(ExitStatus, Option<Cause>)> {
        let mut cause = None;
        let mut kill_at = None;
        let mut orders = true;
        told.mark_changed();
        loop {
            let kill_time = kill_at.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                status = self.child.wait() => return Ok((status?, cause)),
                () = limits.kill_now.cancelled(), if cause.as_ref().is_none_or(|_| kill_at.is_some()) => {
                    cause.get_or_insert(Cause::Stopped(Why::Agent));
                    kill_at = None;
                    self.group.signal(Signal::KILL);
                }
                changed = told.changed(), if orders => {
                    orders = changed.is_ok();
                    let order = told.borrow_and_update().stop.clone();
                    if let Some(order) = order {
                        if cause.is_none() {
                            self.group.signal(Signal::TERM);
                            kill_at = Some(Instant::now() + order.grace.min(GRACE_MAX));
                        }
                        // A later, stronger order changes what is reported, not when it dies.
                        cause = Some(Cause::Stopped(order.why));
                    }
                }
                () = tokio::time::sleep_until(kill_time), if kill_at.is_some() => {
                    self.group.signal(Signal::KILL);
                    kill_at = None;
                }
                () = limits.expired.cancelled(), if cause.is_none() => {
                    cause = Some(Cause::TooLong);
                    self.group.signal(Signal::TERM);
                    kill_at = Some(Instant::now() + limits.grace.min(GRACE_MAX));
                }
            }
        }
    }
}

#[derive(Debug)]
enum Cause {
    TooLong,
    Stopped(Why),
}
