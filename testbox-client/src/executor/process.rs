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

/// The longest grace that is counted, 10 years: beyond it the clock's arithmetic could overflow.
const GRACE_MAX: Duration = Duration::from_hours(10 * 365 * 24);
/// The exit code by which a shell says that its child died of SIGKILL.
const SHELL_SIGKILL: i32 = 128 + 9;

/// What to run, and where.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) task: Task,
    /// The user that it runs under; `None`: the agent's own.
    pub(crate) user: Option<JobUser>,
    pub(crate) place: Place,
    /// Count what it uses, and limit it.
    pub(crate) groups: Groups,
}

/// Where a workload runs.
#[derive(Debug)]
pub(crate) enum Place {
    /// As processes of this host.
    Host,
    /// In a container of its own.
    Container(Box<ContainerPlan>),
    /// In a virtual machine of its own.
    Machine(Box<MachinePlan>),
}

/// What is around a workload that runs.
#[derive(Debug)]
enum Guest {
    None,
    Container(Container),
    Machine(Machine),
}

/// When to stop a workload that goes on.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Cancelled when it has run too long.
    pub(crate) expired: CancellationToken,
    /// Cancelled when its output has a crash that ends it.
    pub(crate) crashed: CancellationToken,
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
    /// Its guest could not begin it.
    NotBegun(NotBegun),
    /// Its guest ended before it did.
    Unfinished,
}

/// How a workload ended, and what it used.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// What its guest noted; nothing for processes of this host.
    pub(crate) note: Note,
    /// Why a part of its results is missing.
    pub(crate) missing: Option<String>,
}

/// A workload that runs.
#[derive(Debug)]
pub(crate) struct Workload {
    child: Child,
    _own: OwnChild,
    group: Group,
    run: String,
    /// Its user.
    user: Option<JobUser>,
    /// What its launcher was told.
    post: Option<Post>,
    guest: Guest,
    counted: Option<Counted>,
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

/// What is started for a workload.
struct Start {
    command: Command,
    user: Option<JobUser>,
    /// What the launcher is told that becomes the workload as its user.
    post: Option<Post>,
    guest: Guest,
    /// Where its memory and CPU time are counted.
    counted: Option<Counted>,
}

/// How a workload is started whose output goes into `writer`.
fn start_of(launch: Launch, writer: &PipeWriter) -> io::Result<Start> {
    let Launch {
        task,
        user,
        place,
        groups,
        ..
    } = launch;
    // A container has groups of its own.
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
        // A container has no mark: a later agent removes it as a whole.
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
    // Else it could not open what `/dev/stderr` names.
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
    /// Starts it; its output comes out of the pipe.
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
        // A launcher does so itself, before it is a job.
        if let (Some(counted), None, Some(pid)) = (&start.counted, &start.post, child.id()) {
            counted.add(pid);
        }
        // The command holds the writing ends: with it they close here, so that the reader sees the end.
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

    /// Watches it to its end, then kills what is left of it.
    pub(crate) async fn supervise(
        mut self,
        limits: &Limits,
        told: &mut watch::Receiver<Told>,
    ) -> io::Result<Outcome> {
        let (status, cause) = self.watch(limits, told).await?;
        // The group's number stays taken while anything of it lives, and otherwise was free for
        // microseconds: no other group can be meant.
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

    /// Kills what is left of it, and looks at what remains to be known.
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

    /// Asks it to end by itself.
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
                    self.ask_to_stop().await;
                    kill_at = Some(Instant::now() + limits.grace.min(GRACE_MAX));
                }
                () = limits.crashed.cancelled(), if cause.is_none() => {
                    cause = Some(Cause::TooLong);
                    // The kernel of a machine that crashed listens to nobody.
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

/// What is known of a workload that has ended.
#[derive(Default)]
struct After {
    /// Its exit code, and not that of its guest.
    code: i32,
    failure: Option<Failure>,
    not_begun: Option<NotBegun>,
    is_unfinished: bool,
    note: Note,
    /// Whether memory ran out, if it died of a SIGKILL.
    is_oom: bool,
    missing: Option<String>,
}

impl After {
    /// What a guest brings back whose program ended with `code`; `is_oom` is known of processes of this host. Blocks.
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
                    // Nobody sent its first process a SIGKILL but the kernel.
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
