//! Runs a workload as processes of this host, or through the client of a container engine, which is one. They have their own process group, an empty stdin, stdout and stderr in
//! one pipe, and a minimal environment. After the end none of them runs, in any case. Dropping a [`Workload`] kills it.

use std::{
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
    container::{Container, ContainerPlan, ENGINE_FAILED, NotBegun},
    entry::{Note, Task},
    groups::{Group as Counted, Groups},
    machine::{Machine, MachinePlan},
    marked::{MARK, kill_marked},
    oom::OomKills,
};
use crate::{
    isolation::{
        children::{self, OwnChild},
        launcher::{Failure, Order, Post},
        users::JobUser,
    },
    open_files,
    protocol::{Told, Why},
};

/// Maximum grace period, 10 years. Longer ones could overflow the clock's arithmetic.
const GRACE_MAX: Duration = Duration::from_hours(10 * 365 * 24);
/// Exit code by which a shell reports that its child died of SIGKILL.
const SHELL_SIGKILL: i32 = 128 + 9;

/// Program to run, and its place.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) task: Task,
    /// User of the program. `None`: the agent's own.
    pub(crate) user: Option<JobUser>,
    pub(crate) place: Place,
    /// Control groups that count and limit its use.
    pub(crate) groups: Groups,
}

/// Place in which a workload runs.
#[derive(Debug)]
pub(crate) enum Place {
    /// On this host, as processes.
    Host,
    /// In its own container.
    Container(Box<ContainerPlan>),
    /// In its own virtual machine.
    Machine(Box<MachinePlan>),
}

/// Container or machine around a running workload.
#[derive(Debug)]
enum Guest {
    None,
    Container(Container),
    Machine(Machine),
}

/// Conditions that stop a running workload.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Cancelled when its time limit is reached.
    pub(crate) expired: CancellationToken,
    /// Cancelled when its output has a crash that ends it.
    pub(crate) crashed: CancellationToken,
    /// Time between SIGTERM and SIGKILL at its time limit.
    pub(crate) grace: Duration,
    /// Cancelled to kill it without grace.
    pub(crate) kill_now: CancellationToken,
}

/// Way in which a workload ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ended by itself.
    Exited {
        /// Exit code, 128 + n after signal n.
        code: i32,
        /// Signal that ended it.
        signal: Option<i32>,
        /// True if the kernel killed for lack of memory in the meantime, probably this workload.
        oom: bool,
    },
    /// It reached its own time limit.
    TooLong {
        /// Exit code, as in `Exited`.
        code: i32,
    },
    /// It was stopped by an order.
    Stopped {
        /// Exit code, as in `Exited`.
        code: i32,
        /// Reason of the order.
        why: Why,
    },
    /// The launcher failed to start it.
    NotLaunched(Failure),
    /// Its guest failed to start it.
    NotBegun(NotBegun),
    /// Its guest ended before it did.
    Unfinished,
}

/// End of a workload, and its use.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// Note of its guest. Empty for processes of this host.
    pub(crate) note: Note,
    /// Reason why a part of its results is missing.
    pub(crate) missing: Option<String>,
}

/// A running workload.
#[derive(Debug)]
pub(crate) struct Workload {
    child: Child,
    _own: OwnChild,
    group: Group,
    run: String,
    /// User of the workload.
    user: Option<JobUser>,
    /// Order for its launcher.
    post: Option<Post>,
    guest: Guest,
    counted: Option<Counted>,
    oom_before: OomKills,
}

/// Process group that is killed on drop.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The only possible error is that no process is left.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Command that starts a workload, with its resources.
struct Start {
    command: Command,
    user: Option<JobUser>,
    /// Order for the launcher that becomes the workload as its user.
    post: Option<Post>,
    guest: Guest,
    /// Counter of its memory and CPU time.
    counted: Option<Counted>,
}

/// Returns the start of a workload whose output goes into `writer`.
fn start_of(launch: Launch, writer: &PipeWriter) -> io::Result<Start> {
    let Launch {
        task,
        user,
        place,
        groups,
        ..
    } = launch;
    // A container has its own control groups.
    let counted = !matches!(place, Place::Container(_));
    let counted = counted.then(|| groups.open(&task.run));
    let (mut command, post, guest) = match place {
        Place::Host => match &user {
            None => (plain_command(&task), None, Guest::None),
            Some(user) => {
                let groups = counted.as_ref().map_or(&[][..], Counted::folders);
                let post = post_of(&task, user, groups, writer)?;
                (Command::from(post.command()?), Some(post), Guest::None)
            }
        },
        Place::Container(plan) => {
            let (command, container) = plan.command(&task, user.as_ref())?;
            (command, None, Guest::Container(container))
        }
        Place::Machine(plan) => {
            let (command, machine) = plan.command(&task, user.as_ref())?;
            (command, None, Guest::Machine(machine))
        }
    };
    if !matches!(guest, Guest::Container(_)) {
        // A container has no mark, because a later agent removes it as a whole.
        command.env(MARK, task.run);
    }
    if post.is_none() {
        // The launcher gets its order there.
        command.stdin(Stdio::null());
    }
    Ok(Start {
        command,
        user,
        post,
        guest,
        counted,
    })
}

fn plain_command(task: &Task) -> Command {
    let mut command = Command::new(&task.program);
    command
        .args(&task.args)
        .env_clear()
        .envs(task.env.iter().cloned())
        .current_dir(&task.folder);
    command
}

fn post_of(
    task: &Task,
    user: &JobUser,
    groups: &[PathBuf],
    writer: &PipeWriter,
) -> io::Result<Post> {
    // Otherwise the user could not open the pipe by the name `/dev/stderr`.
    let uid = rustix::process::Uid::from_raw(user.uid);
    rustix::fs::fchown(writer, Some(uid), None)?;
    let mark = (MARK.to_owned(), task.run.clone());
    Post::of(&Order {
        uid: user.uid,
        folder: task.folder.clone().into(),
        program: task.program.clone(),
        args: task.args.clone(),
        env: task.env.iter().cloned().chain([mark]).collect(),
        groups: groups.to_vec(),
    })
}

impl Workload {
    /// Starts the workload. Its output comes out of the pipe.
    pub(crate) fn start(launch: Launch) -> io::Result<(Self, pipe::Receiver)> {
        let (reader, writer) = io::pipe()?;
        let run = launch.task.run.clone();
        let mut start = start_of(launch, &writer)?;
        start
            .command
            .stdout(OwnedFd::from(writer.try_clone()?))
            .stderr(OwnedFd::from(writer))
            .process_group(0)
            .kill_on_drop(true);
        let oom_before = OomKills::now();
        let (child, own) = children::start(|| start.command.spawn(), Child::id)?;
        // A launcher adds itself before it becomes the job.
        if let (Some(counted), None, Some(pid)) = (&start.counted, &start.post, child.id()) {
            counted.add(pid);
        }
        // The command holds the writing ends of the pipe. They close here with it, so that the reader sees the end.
        drop(start.command);
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(Pid::from_raw);
        if let (Guest::None, Some(pid)) = (&start.guest, pid) {
            open_files::give_back(pid);
        }
        let workload = Self {
            group: Group(pid),
            child,
            _own: own,
            run,
            user: start.user,
            post: start.post,
            guest: start.guest,
            counted: start.counted,
            oom_before,
        };
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        Ok((workload, output))
    }

    /// Supervises the workload to its end, then kills its remaining processes.
    pub(crate) async fn supervise(
        mut self,
        limits: &Limits,
        told: &mut watch::Receiver<Told>,
    ) -> io::Result<Outcome> {
        let (status, cause) = self.watch(limits, told).await?;
        // The group's number stays taken while a process of the group lives, and otherwise was free for microseconds.
        // So it cannot mean another group.
        self.group.signal(Signal::KILL);
        self.group.0 = None;
        let signal = status.signal();
        let code = status
            .code()
            .unwrap_or_else(|| 128 + signal.unwrap_or_default());
        if let Guest::Container(container) = &self.guest
            && (signal.is_some() || cause.is_some() || code == ENGINE_FAILED)
        {
            container.remove().await;
        }
        let after = self.sweep(code).await?;
        let code = after.code;
        let verdict = match (after.failure, after.not_begun, cause) {
            (Some(failure), _, _) => Verdict::NotLaunched(failure),
            (None, Some(not_begun), None) => Verdict::NotBegun(not_begun),
            (None, _, Some(Cause::TooLong)) => Verdict::TooLong { code },
            (None, _, Some(Cause::Stopped(why))) => Verdict::Stopped { code, why },
            (None, None, None) if after.is_unfinished => Verdict::Unfinished,
            (None, None, None) => Verdict::Exited {
                code,
                signal,
                oom: code == SHELL_SIGKILL && after.is_oom,
            },
        };
        Ok(Outcome {
            verdict,
            note: after.note,
            missing: after.missing,
        })
    }

    /// Kills its remaining processes, and collects the results.
    async fn sweep(&mut self, code: i32) -> io::Result<After> {
        let run = std::mem::take(&mut self.run);
        let (user, post) = (self.user.take(), self.post.take());
        let guest = std::mem::replace(&mut self.guest, Guest::None);
        let counted = self.counted.take();
        let oom_before = self.oom_before;
        let sweep = tokio::task::spawn_blocking(move || {
            if let Some(counted) = &counted {
                counted.kill();
            }
            let swept = match &guest {
                Guest::Container(_) => Ok(()),
                Guest::None | Guest::Machine(_) => kill_marked(&run).map(drop),
            };
            let cleared = user.as_ref().map_or(Ok(()), JobUser::clear);
            if let Err(error) = swept.and(cleared) {
                tracing::warn!(%error, "cannot kill all remaining processes of a job");
            }
            let failure = post.map(|post| post.failure()).transpose()?.flatten();
            let is_oom = OomKills::now().since(oom_before);
            let mut after = After::of(&guest, code, is_oom);
            if let Some(counted) = counted {
                after.note = counted.note(after.note);
            }
            if let (Guest::None, Some(kills)) = (&guest, after.note.oom_kills) {
                after.is_oom = kills > 0;
            }
            io::Result::Ok(After { failure, ..after })
        });
        sweep.await.map_err(io::Error::other)?
    }

    /// Asks it to end by itself: by SIGTERM, or by the power button of its machine.
    async fn ask_to_stop(&self) {
        match (&self.guest, self.child.id()) {
            (Guest::Machine(_), Some(pid)) => Machine::ask_to_stop(pid).await,
            // The client of a container engine sends it on.
            _ => self.group.signal(Signal::TERM),
        }
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
                            self.ask_to_stop().await;
                            kill_at = Some(Instant::now() + order.grace.min(GRACE_MAX));
                        }
                        // A later, stronger order changes the report, but not the time of the kill.
                        cause = Some(Cause::Stopped(order.why));
                    }
                }
                () = tokio::time::sleep_until(kill_time), if kill_at.is_some() => {
                    self.group.signal(Signal::KILL);
                    kill_at = None;
                }
                () = limits.expired.cancelled(), if cause.is_none() => {
                    cause = Some(Cause::TooLong);
                    self.ask_to_stop().await;
                    kill_at = Some(Instant::now() + limits.grace.min(GRACE_MAX));
                }
                () = limits.crashed.cancelled(), if cause.is_none() => {
                    cause = Some(Cause::TooLong);
                    // A crashed machine reacts to no request.
                    let grace = match self.guest {
                        Guest::Machine(_) => Duration::ZERO,
                        Guest::None | Guest::Container(_) => limits.grace.min(GRACE_MAX),
                    };
                    self.ask_to_stop().await;
                    kill_at = Some(Instant::now() + grace);
                }
            }
        }
    }
}

/// Known facts of a workload that has ended.
#[derive(Default)]
struct After {
    /// Exit code of the workload, not that of its guest.
    code: i32,
    failure: Option<Failure>,
    not_begun: Option<NotBegun>,
    is_unfinished: bool,
    note: Note,
    /// True if it died of a SIGKILL for lack of memory.
    is_oom: bool,
    missing: Option<String>,
}

impl After {
    /// Returns the results of a guest whose program ended with `code`. `is_oom` is known for processes of this host.
    /// Blocks.
    fn of(guest: &Guest, code: i32, is_oom: bool) -> Self {
        match guest {
            Guest::None => Self {
                code,
                is_oom,
                ..Self::default()
            },
            Guest::Container(container) => {
                let (note, not_begun) = container.after(code);
                Self {
                    code,
                    not_begun,
                    // Only the kernel sent its first process a SIGKILL.
                    is_oom: note.oom_kills.is_none_or(|kills| kills > 0),
                    note,
                    ..Self::default()
                }
            }
            Guest::Machine(machine) => {
                let returned = machine.after();
                let not_begun = (!returned.has_begun).then(|| NotBegun {
                    is_job: false,
                    reason: format!(
                        "its machine did not begin it (exit code {code} of QEMU); the output has its console"
                    ),
                });
                Self {
                    code: returned.code.unwrap_or(code),
                    not_begun,
                    is_unfinished: returned.code.is_none(),
                    note: returned.note,
                    is_oom: returned.note.oom_kills.is_some_and(|kills| kills > 0),
                    missing: returned.missing,
                    ..Self::default()
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
