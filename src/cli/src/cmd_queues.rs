//! `fairlead queues`, `queues set NAME …`, `queues delete NAME`.

use fairlead_api::{QueueChange, QueueUsers, QueueView};

use crate::{
    amounts,
    context::Context,
    exit::{self, Failure},
    limits::{self, LimitArgs},
    table::{Grid, Paper, harmless, or_dash},
};

/// The actions on queues.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct QueuesArgs {
    #[command(subcommand)]
    what: Option<QueueAction>,
}

#[derive(Debug, clap::Subcommand)]
enum QueueAction {
    /// List queues with their policy, waiting and running jobs, and share
    List,
    /// Change the policy of a queue; other settings stay
    Set(Box<SetArgs>),
    /// Reset a queue to the default policy
    Delete {
        /// The queue
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The queue
    name: String,
    /// Share inside its class, 1 to 10000
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    weight: Option<u32>,
    /// Class, 0 to 9; a higher class always goes first
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,
    /// Stop dispatching its jobs
    #[arg(long, conflicts_with = "resume")]
    pause: bool,
    /// Dispatch its jobs again
    #[arg(long)]
    resume: bool,
    /// Share of dispatches for this queue while higher classes also wait: 5%; at most 50%, 0% for
    /// none. Only hosts that could run its jobs count
    #[arg(long, value_name = "SHARE", value_parser = amounts::permille)]
    background_share: Option<u16>,
    /// Accounts that may submit into it: a list with commas, `all`, or `own` for the account of its name.
    /// A new queue is `own`
    #[arg(long, value_name = "ACCOUNTS")]
    users: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Parses the users of a queue.
fn users(text: &str) -> QueueUsers {
    let names = text.split(',').map(|name| name.trim().to_owned());
    match text {
        "own" => QueueUsers::Own,
        "all" => QueueUsers::All,
        _ => QueueUsers::Named(names.filter(|name| !name.is_empty()).collect()),
    }
}

impl SetArgs {
    fn change(&self) -> Result<QueueChange, Failure> {
        let change = QueueChange {
            priority: self.priority,
            weight: self.weight,
            paused: (self.pause || self.resume).then_some(self.pause),
            background_permille: self.background_share,
            limits: self.limits.change(),
            users: self.users.as_deref().map(users),
        };
        if change == QueueChange::default() {
            return Err(Failure::usage(
                format!("queue '{}': no change was given", self.name),
                "use --users, --weight, --priority, --background-share, --waiting, --running, --hours, --pause or --resume",
            ));
        }
        Ok(change)
    }
}

pub(crate) async fn run(args: &QueuesArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    match &args.what {
        None | Some(QueueAction::List) => {}
        Some(QueueAction::Set(set)) => {
            let change = set.change()?;
            client
                .set_queue(&set.name, &change)
                .await
                .map_err(Failure::from)?;
        }
        Some(QueueAction::Delete { name }) => {
            client.delete_queue(name).await.map_err(Failure::from)?;
        }
    }
    let queues = client.queues().await.map_err(Failure::from)?;
    context.print(&queues, |queues| table(queues, context.output.paper()))?;
    for queue in queues.iter().filter(|queue| !queue.warning.is_empty()) {
        let warning = harmless(&queue.warning);
        context.output.remark(&format!("warning: {warning}"));
    }
    Ok(exit::OK)
}

/// Maximum number of accounts that a table names. The others are only counted.
const NAMED_MAX: usize = 3;

/// Returns the accounts that may submit to the queue.
fn users_of(queue: &QueueView) -> String {
    match &queue.users {
        Some(QueueUsers::Own) => "own".to_owned(),
        Some(QueueUsers::All) => "all".to_owned(),
        Some(QueueUsers::Named(accounts)) => {
            let more = accounts.len().saturating_sub(NAMED_MAX);
            let mut named: Vec<&str> = accounts.iter().map(String::as_str).collect();
            named.truncate(NAMED_MAX);
            let more = (more > 0).then(|| format!("+{more}"));
            named.extend(more.as_deref());
            named.join(",")
        }
        None if !queue.warning.is_empty() => "all (unsaid)".to_owned(),
        None => String::new(),
    }
}

/// Returns the limits and the background share of a queue.
fn limits_of(queue: &QueueView) -> String {
    let kept = queue.background_permille;
    let kept = (kept > 0).then(|| format!("background {}.{} %", kept / 10, kept % 10));
    let used = |what: &str| match what {
        "waiting" => Some(queue.waiting),
        "running" => Some(queue.running),
        _ => None,
    };
    let limits = Some(limits::beside(&queue.limits, used)).filter(|shown| !shown.is_empty());
    let both: Vec<String> = kept.into_iter().chain(limits).collect();
    both.join(" ")
}

fn per_cent(permille: Option<u32>) -> String {
    permille.map_or_else(
        || "-".to_owned(),
        |permille| format!("{}.{} %", permille / 10, permille % 10),
    )
}

fn table(queues: &[QueueView], paper: Paper) -> String {
    let headings = [
        "queue",
        ">priority",
        ">weight",
        ">waiting",
        ">running",
        ">share",
        ">got 1h",
        ">got 24h",
        "policy",
        "users",
        "limits",
    ];
    let mut grid = Grid::new(&headings);
    for queue in queues {
        let policy = match (queue.paused, queue.set) {
            (true, _) => "paused",
            (false, true) => "set",
            (false, false) => "default",
        };
        grid.row([
            queue.name.clone(),
            queue.priority.to_string(),
            queue.weight.to_string(),
            queue.waiting.to_string(),
            queue.running.to_string(),
            per_cent(Some(queue.share_permille)),
            per_cent(queue.got_1h_permille),
            per_cent(queue.got_24h_permille),
            policy.to_owned(),
            or_dash(&users_of(queue)),
            or_dash(&limits_of(queue)),
        ]);
    }
    grid.render(paper)
}

#[cfg(test)]
mod tests {
    use fairlead_api::{Bounds, Limits};

    use super::*;

    #[test]
    fn a_queue_is_a_row_with_its_share_in_percent() {
        let queue = QueueView {
            name: "user1".into(),
            priority: 3,
            weight: 100,
            paused: false,
            background_permille: 55,
            waiting: 12,
            running: 2,
            share_permille: 755,
            got_1h_permille: Some(600),
            got_24h_permille: None,
            got_7d_permille: None,
            oldest_ready_ms: None,
            set: true,
            users: Some(QueueUsers::All),
            warning: String::new(),
            limits: Limits {
                running: Bounds {
                    soft: Some(5),
                    hard: Some(10),
                },
                ..Limits::default()
            },
        };
        assert_eq!(
            table(&[queue], Paper::PIPE),
            "queue  priority  weight  waiting  running   share  got 1h  got 24h  policy  users  limits\n\
             user1         3     100       12        2  75.5 %  60.0 %        -  set     all    background 5.5 % running 2 of soft=5,hard=10"
        );
    }
}
