//! `fairlead pools`, `pools show NAME`, `pools set NAME …`, `pools delete NAME`: pools of machines that come and go.

use fairlead_api::{PoolChange, PoolMachine, PoolView};

use crate::{
    amounts, clock,
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper, harmless, or_dash},
};

/// The actions on pools.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PoolsArgs {
    #[command(subcommand)]
    what: Option<PoolAction>,
}

#[derive(Debug, clap::Subcommand)]
enum PoolAction {
    /// List pools with their limits and machines
    List,
    /// Show a pool with each of its machines
    Show {
        /// The pool
        name: String,
    },
    /// Create a pool, or change one; other settings stay
    Set(Box<SetArgs>),
    /// Delete a pool that has no machines
    Delete {
        /// The pool
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The pool
    name: String,
    /// Program in the folder --providers of the replicas that lists, makes and ends the machines
    #[arg(long, value_name = "PROGRAM")]
    provider: Option<String>,
    /// Jobs that its machines run: `hw` alone, or `vm`, `dc`; repeatable. With it, say all that the machines are
    #[arg(long = "kind", value_name = "KIND", requires = "memory")]
    kinds: Vec<String>,
    /// Architecture of its machines [default: that of this machine]
    #[arg(long, value_name = "ARCH", requires = "kinds")]
    arch: Option<String>,
    /// Memory that a machine offers to jobs
    #[arg(long, value_name = "MEMORY", value_parser = amounts::memory_mb, requires = "kinds")]
    memory: Option<u32>,
    /// CPUs that a machine offers to jobs [default: not checked]
    #[arg(long, value_name = "N", requires = "kinds")]
    cpus: Option<u32>,
    /// Tags of its machines, with commas
    #[arg(long, value_name = "TAGS", value_delimiter = ',', requires = "kinds")]
    tags: Vec<String>,
    /// Devices of its machines, with commas
    #[arg(
        long,
        value_name = "DEVICES",
        value_delimiter = ',',
        requires = "kinds"
    )]
    devices: Vec<String>,
    /// Number of machines that it never falls below. A new pool has 2
    #[arg(long, value_name = "N")]
    min: Option<u32>,
    /// Number of machines that it never exceeds. A new pool has 10
    #[arg(long, value_name = "N")]
    max: Option<u32>,
    /// Number of machines that it asks for in a minute at most. A new pool has 100
    #[arg(long, value_name = "N")]
    max_step: Option<u32>,
    /// Time that a machine takes until it asks for work, until that was measured. A new pool has 3m
    #[arg(long, value_name = "TIME", value_parser = amounts::length_ms)]
    boot: Option<u64>,
    /// Longest time that a job should wait, no less than a boot and a minute. A new pool has these
    #[arg(long, value_name = "TIME", value_parser = amounts::length_ms)]
    target: Option<u64>,
    /// Law that decides: `queue_time` or `seed`
    #[arg(long, value_name = "LAW")]
    law: Option<String>,
    /// Time that a machine may be idle; 0s: as long as a boot takes
    #[arg(long, value_name = "TIME", value_parser = amounts::length_ms)]
    max_idle: Option<u64>,
    /// Number of jobs after which a machine is replaced; 0: never
    #[arg(long, value_name = "N")]
    max_jobs: Option<u32>,
    /// Time after which a machine is replaced; 0s: never
    #[arg(long, value_name = "TIME", value_parser = amounts::length_ms)]
    max_age: Option<u64>,
    /// Time after a change of their number in which no idle machine retires. By the law `seed` 10m
    #[arg(long, value_name = "TIME", value_parser = amounts::length_ms)]
    cooldown: Option<u64>,
    /// Number of decisions in a row with little in use before idle machines retire. By the law `seed` 3
    #[arg(long, value_name = "N")]
    low_rounds: Option<u32>,
    /// Part in use, in percent, below which idle machines retire. By the law `seed` 30
    #[arg(long, value_name = "PERCENT")]
    low_use: Option<u32>,
    /// Ask for no machines, and retire none
    #[arg(long, conflicts_with = "resume")]
    pause: bool,
    /// Decide again
    #[arg(long)]
    resume: bool,
}

impl SetArgs {
    fn machine(&self) -> Option<PoolMachine> {
        let memory_mb = self.memory?;
        let arch = self.arch.clone();
        Some(PoolMachine {
            kinds: self.kinds.clone(),
            arch: arch.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            memory_mb,
            cpus: self.cpus,
            tags: self.tags.clone(),
            devices: self.devices.clone(),
        })
    }

    fn change(&self) -> Result<PoolChange, Failure> {
        let seconds = |ms: Option<u64>| ms.map(|ms| ms.div_ceil(1_000));
        let change = PoolChange {
            provider: self.provider.clone(),
            machine: self.machine(),
            min: self.min,
            max: self.max,
            max_step: self.max_step,
            boot_s: seconds(self.boot),
            target_s: seconds(self.target),
            law: self.law.clone(),
            max_idle_s: seconds(self.max_idle),
            max_jobs: self.max_jobs,
            max_age_s: seconds(self.max_age),
            cooldown_s: seconds(self.cooldown),
            low_rounds: self.low_rounds,
            low_use_percent: self.low_use,
            paused: (self.pause || self.resume).then_some(self.pause),
        };
        if change == PoolChange::default() {
            return Err(Failure::usage(
                format!("pool '{}': no change was given", self.name),
                "use --min, --max, --provider, --kind with --memory, --pause, or others of --help",
            ));
        }
        Ok(change)
    }
}

pub(crate) async fn run(args: &PoolsArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    match &args.what {
        Some(PoolAction::Show { name }) => {
            let pool = client.pool(name).await.map_err(Failure::from)?;
            context.print(&pool, |pool| text(pool, context.output.paper()))?;
            return Ok(exit::OK);
        }
        None | Some(PoolAction::List) => {}
        Some(PoolAction::Set(set)) => {
            let change = set.change()?;
            let set = client.set_pool(&set.name, &change).await;
            let pool = set.map_err(Failure::from)?;
            if let Some(words) = what_acts(&pool) {
                context
                    .output
                    .remark(&format!("pool {}: {words}", harmless(&pool.name)));
            }
        }
        Some(PoolAction::Delete { name }) => {
            client.delete_pool(name).await.map_err(Failure::from)?;
        }
    }
    let pools = client.pools().await.map_err(Failure::from)?;
    context.print(&pools, |pools| table(pools, context.output.paper()))?;
    Ok(exit::OK)
}

/// Returns the number of machines in these states.
fn many(pool: &PoolView, states: &[&str]) -> String {
    let is_so = |state: &str| states.contains(&state);
    let machines = pool.machines.iter();
    let many = machines.filter(|machine| is_so(&machine.state)).count();
    many.to_string()
}

fn table(pools: &[PoolView], paper: Paper) -> String {
    if pools.is_empty() {
        return "no pools".to_owned();
    }
    let mut grid = Grid::new(&[
        "POOL",
        "PROVIDER",
        ">MIN",
        ">MAX",
        ">BOOT",
        ">RUN",
        ">IDLE",
        ">CLOSED",
        ">RETIRE",
        "BOOT TIME",
        "PROBLEM",
    ])
    .keep(&["MIN", "MAX", "BOOT", "RUN", "IDLE", "PROBLEM"]);
    for pool in pools {
        grid.row([
            harmless(&pool.name),
            harmless(&pool.provider),
            pool.min.to_string(),
            pool.max.to_string(),
            many(pool, &["asked", "boots"]),
            many(pool, &["runs"]),
            many(pool, &["idle"]),
            many(pool, &["closed"]),
            many(pool, &["retires"]),
            clock::length(pool.boot_s.saturating_mul(1_000)),
            or_dash(if pool.paused { "paused" } else { &pool.problem }),
        ]);
    }
    grid.render(paper)
}

/// Returns a sentence about the effective time, if the target is too short. `None`: the target is effective.
fn what_acts(pool: &PoolView) -> Option<String> {
    let time = |seconds: u64| clock::length(seconds.saturating_mul(1_000));
    let is_raised = pool.target_s > 0 && pool.horizon_s > pool.target_s;
    is_raised.then(|| {
        format!(
            "the target of {} is below what a boot allows, and {} act instead",
            time(pool.target_s),
            time(pool.horizon_s)
        )
    })
}

/// Returns a pool and its machines, for people.
fn text(pool: &PoolView, paper: Paper) -> String {
    let machine = &pool.machine;
    let time = |seconds: u64| clock::length(seconds.saturating_mul(1_000));
    let or_words = |number: u64, words: &str| {
        if number == 0 {
            words.to_owned()
        } else {
            time(number)
        }
    };
    let cpus = machine
        .cpus
        .map_or(String::new(), |cpus| format!(", {cpus} CPUs"));
    let mut lines = vec![
        format!("pool       {}", harmless(&pool.name)),
        format!("provider   {}", harmless(&pool.provider)),
        format!(
            "machine    {} {}, {} MB{cpus}",
            harmless(&machine.kinds.join(",")),
            harmless(&machine.arch),
            machine.memory_mb
        ),
        format!(
            "machines   {}, {} to {}, {} a minute at most",
            pool.machines.len(),
            pool.min,
            pool.max,
            pool.max_step
        ),
        format!("boot       {} ({} measured)", time(pool.boot_s), pool.boots),
        format!(
            "target     {}",
            what_acts(pool).unwrap_or_else(|| time(pool.horizon_s))
        ),
        format!("law        {}", harmless(&pool.law)),
        format!(
            "shrinks    {} after a change, after {} decisions with less than {} % in use",
            time(pool.cooldown_s),
            pool.low_rounds,
            pool.low_use_percent
        ),
        format!(
            "idle       {}",
            or_words(pool.max_idle_s, "the time of a boot")
        ),
    ];
    if pool.paused {
        lines.push("paused     yes".to_owned());
    }
    if !pool.problem.is_empty() {
        lines.push(format!("problem    {}", harmless(&pool.problem)));
    }
    if !pool.machines.is_empty() {
        lines.push(String::new());
        lines.push(machines(pool, paper));
    }
    lines.join("\n")
}

fn machines(pool: &PoolView, paper: Paper) -> String {
    let mut grid =
        Grid::new(&["MACHINE", "STATE", ">JOBS", "ASKED", "WHY"]).keep(&["STATE", "WHY"]);
    for machine in &pool.machines {
        grid.row([
            harmless(&machine.name),
            harmless(&machine.state),
            machine.jobs.to_string(),
            clock::shown(machine.asked_ms),
            or_dash(&machine.why),
        ]);
    }
    grid.render(paper)
}

#[cfg(test)]
mod tests {
    use fairlead_api::PoolMachineView;

    use super::*;

    fn set(args: &[&str]) -> Result<PoolChange, String> {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            set: SetArgs,
        }
        let line = [&["set", "vms"], args].concat();
        let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
        line.set.change().map_err(|failure| failure.message)
    }

    #[test]
    fn a_change_names_what_changes() {
        let change = set(&[
            "--provider",
            "site",
            "--kind",
            "dc",
            "--kind",
            "vm",
            "--memory",
            "4g",
            "--cpus",
            "2",
            "--arch",
            "x86_64",
            "--min",
            "0",
            "--boot",
            "90s",
        ])
        .unwrap();
        let machine = change.machine.clone().unwrap();
        assert_eq!(
            (machine.kinds.len(), machine.memory_mb, machine.cpus),
            (2, 4_096, Some(2))
        );
        assert_eq!(
            (change.min, change.max, change.boot_s),
            (Some(0), None, Some(90))
        );
        assert_eq!(set(&["--pause"]).unwrap().paused, Some(true));
        assert!(set(&[]).unwrap_err().contains("no change"));
        assert!(set(&["--kind", "dc"]).unwrap_err().contains("--memory"));
        assert!(set(&["--memory", "4g"]).unwrap_err().contains("--kind"));
    }

    #[test]
    fn a_table_counts_machines_by_what_they_do() {
        let machine = |state: &str| PoolMachineView {
            name: format!("vms--{state}"),
            state: state.to_owned(),
            ..PoolMachineView::default()
        };
        let pool = PoolView {
            name: "vms".to_owned(),
            provider: "site".to_owned(),
            max: 10,
            boot_s: 90,
            machines: ["asked", "boots", "runs", "idle", "retires"]
                .map(machine)
                .to_vec(),
            problem: "provider site list: no quota".to_owned(),
            ..PoolView::default()
        };
        let table = table(std::slice::from_ref(&pool), Paper::PIPE);
        let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            row[..9],
            ["vms", "site", "0", "10", "2", "1", "1", "0", "1"]
        );
        assert!(table.contains("no quota"));
        let shown = text(&pool, Paper::PIPE);
        assert!(shown.contains("vms--retires"), "{shown}");
        let raised = PoolView {
            target_s: 10,
            horizon_s: 150,
            ..pool
        };
        let shown = text(&raised, Paper::PIPE);
        assert!(shown.contains("below what a boot allows"), "{shown}");
    }
}
