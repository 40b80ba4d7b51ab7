//! `fairlead hosts [NAME]`.

use std::time::Duration;

use fairlead_api::{
    ExecutorSaid, HostClose, HostReserve, HostReset, HostView, UnknownMachine,
    client::{Client, ClientError},
};

mod import;
mod load;

use crate::{
    amounts::length_ms,
    clock,
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper, harmless, or_dash},
};

/// Interval between checks of hosts that are drained.
const DRAIN_LOOK: Duration = Duration::from_secs(1);

/// Which hosts.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HostsArgs {
    #[command(subcommand)]
    change: Option<Change>,
    /// List machines that asked this scheduler what to boot in the last hour, and that nobody registered
    #[arg(long, conflicts_with = "name")]
    unknown: bool,
    /// List hosts with all of these tags; facts are tags, such as pci:8086:1521
    #[arg(
        long = "tag",
        value_name = "TAG[,TAG]",
        value_delimiter = ',',
        conflicts_with_all = ["name", "unknown"]
    )]
    tags: Vec<String>,
    /// Show this host and why it is idle [default: list all hosts]
    name: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Change {
    /// Register the machines that host files of a lab describe; run it again after changes
    Import(import::ImportArgs),
    /// Give a host no new jobs; running jobs go on
    Cordon(CloseArgs),
    /// Give hosts no new jobs; `hosts NAME` shows `drained` when one is empty
    Drain(DrainArgs),
    /// Open a closed or suspect host
    Uncordon {
        /// The host
        name: String,
    },
    /// Reserve a host for some accounts until a time; running jobs go on
    Reserve(ReserveArgs),
    /// End a reservation early
    Unreserve {
        /// The host
        name: String,
    },
    /// Forget hosts that are gone for good
    Forget {
        /// The hosts
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Repair malformed session, lease and registration documents of a host
    Reset {
        /// The host
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct CloseArgs {
    /// The host
    name: String,
    /// The reason, shown to everybody
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

#[derive(Debug, clap::Args)]
struct DrainArgs {
    /// The hosts
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The reason, shown to everybody
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Wait until all of them are empty
    #[arg(long)]
    wait: bool,
    /// With --wait: give up after this time; the hosts stay closed [default: never]
    #[arg(long, value_name = "TIME", value_parser = length_ms, requires = "wait")]
    timeout: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct ReserveArgs {
    /// The host
    name: String,
    /// Accounts whose jobs the host gets
    #[arg(
        long = "for",
        value_name = "ACCOUNT[,ACCOUNT]",
        value_delimiter = ',',
        required = true
    )]
    accounts: Vec<String>,
    /// End: +2h from now, or a time (2026-11-22T05:00:00+08:00; UTC without a zone)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: String,
    /// The reason, shown to everybody
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

pub(crate) async fn run(args: &HostsArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let now_ms = clock::now_ms();
    if let Some(change) = &args.change {
        let changed = match change {
            Change::Import(args) => return import::run(args, context, &client).await,
            Change::Cordon(args) => client.cordon(&args.name, &args.close()).await,
            Change::Drain(args) => return drain(args, context, &client).await,
            Change::Forget { names } => return forget(names, context, &client).await,
            Change::Uncordon { name } => client.uncordon(name).await,
            Change::Reserve(args) => client.reserve(&args.name, &args.asked()).await,
            Change::Unreserve { name } => client.unreserve(name).await,
            Change::Reset { name } => {
                let reset = client.reset_host(name).await.map_err(Failure::from)?;
                context.print(&reset, repaired)?;
                return Ok(exit::OK);
            }
        };
        let host = changed.map_err(Failure::from)?;
        context.print(&host, |host| one(host, now_ms))?;
    } else if let Some(name) = &args.name {
        let host = client.host(name).await.map_err(Failure::from)?;
        context.print(&host, |host| one(host, now_ms))?;
    } else if args.unknown {
        let machines = client.unknown_machines().await.map_err(Failure::from)?;
        let paper = context.output.paper();
        context.print(&machines, |machines| unknown(machines, now_ms, paper))?;
    } else {
        let hosts = client.hosts(&args.tags).await.map_err(Failure::from)?;
        let paper = context.output.paper();
        context.print(&hosts, |hosts| all(hosts, now_ms, paper))?;
    }
    Ok(exit::OK)
}

/// Closes hosts, and waits until they are empty if requested. A refusal for one host does not stop the others.
async fn drain(args: &DrainArgs, context: &Context, client: &Client) -> anyhow::Result<u8> {
    let close = HostClose {
        reason: args.reason.clone(),
        drain: true,
    };
    let (mut hosts, mut code) = (Vec::new(), exit::OK);
    for name in &args.names {
        match client.cordon(name, &close).await {
            Ok(host) => hosts.push(host),
            Err(error) => code = refused(name, error, context)?,
        }
    }
    let began = clock::monotonic();
    let limit = args.timeout.map(Duration::from_millis);
    let is_open = |host: &HostView| host.state != "drained";
    while args.wait && hosts.iter().any(is_open) {
        if limit.is_some_and(|limit| clock::monotonic().duration_since(began) >= limit) {
            let open: Vec<&str> = hosts
                .iter()
                .filter(|host| is_open(host))
                .map(|host| host.hostname.as_str())
                .collect();
            let message = format!("{} still have jobs", open.join(", "));
            let hint = "they stay closed; see which: fairlead jobs --host NAME --stage running";
            return Err(Failure::new(exit::TOO_LATE, message, hint).into());
        }
        clock::pause(DRAIN_LOOK).await;
        for host in &mut hosts {
            *host = client.host(&host.hostname).await.map_err(Failure::from)?;
        }
    }
    let (paper, now_ms) = (context.output.paper(), clock::now_ms());
    context.print(&hosts, |hosts| all(hosts, now_ms, paper))?;
    Ok(code)
}

/// Forgets hosts, each with its own result.
async fn forget(names: &[String], context: &Context, client: &Client) -> anyhow::Result<u8> {
    let mut code = exit::OK;
    for name in names {
        match client.forget_host(name).await {
            Ok(()) if context.json => {}
            Ok(()) => {
                let closed = client.host(name).await.map(|_| "; it stays closed");
                let words = format!("host {name}: forgotten{}", closed.unwrap_or_default());
                context.output.line(&words);
            }
            Err(error) => code = refused(name, error, context)?,
        }
    }
    Ok(code)
}

/// Reports the refusal for one of several hosts. Other errors end the command.
fn refused(name: &str, error: ClientError, context: &Context) -> Result<u8, Failure> {
    if error.code().is_none() {
        return Err(error.into());
    }
    let failure = Failure::from(error);
    context.output.remark(&format!("host {name}: {failure}"));
    Ok(exit::REFUSED)
}

impl CloseArgs {
    fn close(&self) -> HostClose {
        HostClose {
            reason: self.reason.clone(),
            drain: false,
        }
    }
}

impl ReserveArgs {
    fn asked(&self) -> HostReserve {
        HostReserve {
            accounts: self.accounts.clone(),
            until: self.until.clone(),
            reason: self.reason.clone(),
        }
    }
}

/// Returns a description of the result of a reset.
fn repaired(reset: &HostReset) -> String {
    let HostReset { hostname, repaired } = reset;
    let what = if repaired.is_empty() {
        "nothing to repair; all its documents can be read".to_owned()
    } else {
        format!("repaired: {}", repaired.join(", "))
    };
    harmless(&format!("{hostname}: {what}"))
}

/// Returns the state of a host, and whether it is reserved, loaded or in conflict with another agent.
fn state(host: &HostView) -> String {
    let kept = host.reserved.as_ref().map(|_| "reserved".to_owned());
    let conflict = host.conflict.as_ref().map(|_| "conflict".to_owned());
    let state = Some(host.state.clone()).filter(|state| !state.is_empty());
    let more = kept.into_iter().chain(load::word(host)).chain(conflict);
    let all: Vec<String> = state.into_iter().chain(more).collect();
    all.join(",")
}

/// Returns the state of a host. A machine that is off also shows since when.
fn state_since(host: &HostView) -> String {
    match host.state.as_str() {
        "off" if host.seen_ms > 0 => format!("off since {}", clock::shown(host.seen_ms)),
        state => state.to_owned(),
    }
}

/// Returns a sentence about another agent with the same name. Empty: none.
fn conflict(host: &HostView, now_ms: u64) -> String {
    host.conflict.as_ref().map_or_else(String::new, |conflict| {
        let ago = clock::length(now_ms.saturating_sub(conflict.at_ms));
        let instance = &conflict.instance;
        format!("agent {instance} has the same name and is refused, last {ago} ago")
    })
}

/// Returns the accounts, end and reason of the reservation.
fn reserved(host: &HostView) -> String {
    let Some(reserved) = &host.reserved else {
        return String::new();
    };
    let why = if reserved.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", reserved.reason)
    };
    format!(
        "for {} until {} by {}{why}",
        reserved.accounts.join(", "),
        clock::shown(reserved.until_ms),
        reserved.by
    )
}

/// Returns a line about an executor, with its version or the reason why it is missing.
fn executor_line(executor: &ExecutorSaid) -> String {
    let name = [executor.name.as_str(), executor.version.as_str()].join(" ");
    match executor.problem.as_str() {
        "" => name.trim_end().to_owned(),
        problem => format!("{} is missing: {problem}", name.trim_end()),
    }
}

/// Returns the isolation of jobs on the host, with its consequence for submitters.
fn isolation(host: &HostView) -> &'static str {
    let is_hw = host.kinds.iter().any(|kind| kind == "hw");
    match host.isolation.as_str() {
        "users" => "each job runs under a user of its own",
        _ if is_hw => "one job at a time has the whole machine",
        _ if host.kinds.is_empty() => "",
        _ => "none: submitters on this host trust each other",
    }
}

fn memory(host: &HostView) -> String {
    format!("{} of {}", host.free_memory_mb, host.memory_mb)
}

/// Returns the table of unregistered machines.
fn unknown(machines: &[UnknownMachine], now_ms: u64, paper: Paper) -> String {
    let mut grid = Grid::new(&["MAC", "arch", "address", "first", "last"]);
    let ago = |ms: u64| format!("{} ago", clock::length(now_ms.saturating_sub(ms)));
    for machine in machines {
        grid.row([
            machine.mac.clone(),
            or_dash(&machine.arch),
            or_dash(&machine.address),
            ago(machine.first_ms),
            ago(machine.last_ms),
        ]);
    }
    grid.render(paper)
}

/// Returns the number of free CPUs. Empty: the agent does not report CPUs, so they are not counted.
fn cpus(host: &HostView) -> String {
    let Some(all) = host.cpus else {
        return String::new();
    };
    format!("{} of {all}", host.free_cpus.unwrap_or(all))
}

fn seen(host: &HostView, now_ms: u64) -> String {
    match host.seen_ms {
        0 => "never".to_owned(),
        seen_ms => format!("{} ago", clock::length(now_ms.saturating_sub(seen_ms))),
    }
}

fn all(hosts: &[HostView], now_ms: u64, paper: Paper) -> String {
    let headings = [
        "host",
        "state",
        "kinds",
        "arch",
        "group",
        "free MB",
        "free CPUs",
        ">jobs",
        "seen",
    ];
    let mut grid = Grid::new(&headings);
    for host in hosts {
        grid.row([
            host.hostname.clone(),
            or_dash(&state(host)),
            or_dash(&host.kinds.join(",")),
            or_dash(&host.arch),
            or_dash(&host.group),
            memory(host),
            or_dash(&cpus(host)),
            host.jobs.len().to_string(),
            seen(host, now_ms),
        ]);
    }
    grid.render(paper)
}

fn one(host: &HostView, now_ms: u64) -> String {
    let mut lines = Vec::new();
    let mut say = |name: &str, value: String| {
        lines.push(harmless(&format!("{name:<10}{}", or_dash(&value))));
    };
    say("host", host.hostname.clone());
    say("state", state_since(host));
    say("reserved", reserved(host));
    if host.conflict.is_some() {
        say("conflict", conflict(host, now_ms));
    }
    say("kinds", host.kinds.join(", "));
    say("arch", host.arch.clone());
    say("group", host.group.clone());
    say("free MB", memory(host));
    say("free CPUs", cpus(host));
    if let Some(load) = load::line(host) {
        say("load", load);
    }
    say("tags", host.tags.join(", "));
    say("devices", host.devices.join(", "));
    say("isolation", isolation(host).to_owned());
    for executor in &host.executors {
        say("executor", executor_line(executor));
    }
    for (family, values) in &host.facts {
        say(family, values.join(" "));
    }
    say("seen", seen(host, now_ms));
    say("jobs", host.jobs.join(" "));
    if let Some(empties) = &host.empties {
        say("empty", empties.words.clone());
    }
    if !host.why_idle.is_empty() {
        lines.push("why idle:".to_owned());
        lines.extend(
            host.why_idle
                .iter()
                .map(|why| format!("  - {}", harmless(why))),
        );
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostView {
        HostView {
            hostname: "h1".into(),
            kinds: vec!["vm".into(), "dc".into()],
            arch: "x86_64".into(),
            memory_mb: 8000,
            free_memory_mb: 7000,
            cpus: Some(8),
            free_cpus: Some(6),
            state: "waiting".into(),
            seen_ms: 5_000,
            why_idle: vec!["no job asks for dc".into()],
            ..HostView::default()
        }
    }

    #[test]
    fn a_host_is_a_row() {
        assert_eq!(
            all(&[host()], 8_500, Paper::PIPE),
            "host  state    kinds  arch    group  free MB       free CPUs  jobs  seen\n\
             h1    waiting  vm,dc  x86_64  -      7000 of 8000  6 of 8        0  3.5s ago"
        );
    }

    #[test]
    fn two_agents_of_one_name_are_shown() {
        let host = HostView {
            conflict: Some(fairlead_api::ConflictView {
                instance: "other".into(),
                at_ms: 5_000,
            }),
            ..host()
        };
        assert!(all(std::slice::from_ref(&host), 8_500, Paper::PIPE).contains("waiting,conflict"));
        let text = one(&host, 8_500);
        assert!(
            text.contains("agent other has the same name and is refused, last 3.5s ago"),
            "{text}"
        );
    }

    #[test]
    fn one_host_says_whom_its_submitters_trust() {
        let said = |isolation: &str, kind: &str| {
            let host = HostView {
                isolation: isolation.into(),
                kinds: vec![kind.into()],
                ..host()
            };
            let text = one(&host, 8_500);
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("isolation "));
            line.unwrap_or_default().to_owned()
        };
        assert_eq!(said("users", "dc"), "each job runs under a user of its own");
        assert!(said("none", "dc").contains("trust each other"));
        assert!(said("", "vm").contains("trust each other"));
        assert!(said("none", "hw").contains("whole machine"));
    }

    #[test]
    fn one_host_says_why_it_is_idle() {
        let text = one(&host(), 8_500);
        assert!(
            text.ends_with("why idle:\n  - no job asks for dc"),
            "{text}"
        );
        assert!(text.contains("state     waiting\n"), "{text}");
    }
}
