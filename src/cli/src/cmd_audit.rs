//! `fairlead audit`: who did what.

use fairlead_api::AuditEvent;

use crate::{
    amounts::length_ms,
    clock,
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper, harmless},
};

/// Number of entries on one page.
const PAGE: u32 = 1_000;
/// Length of a night, ms.
const NIGHT_MS: u64 = 12 * 3_600_000;
/// Length of a week, ms.
const WEEK_MS: u64 = 7 * 86_400_000;

/// Which entries of the audit log.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An admin sees all entries. Others see their own acts, and those on hosts, queues, pools and the lab.")]
pub(crate) struct AuditArgs {
    /// Begin, this long ago: 90m, 24h, 7d [default: 7d, or 12h with --incidents]
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    since: Option<u64>,
    /// Only what happened to the lab, oldest first: hosts lost and back, starts and stops of schedulers, outages of
    /// the store, pauses, drains and faults
    #[arg(long, conflicts_with = "what")]
    incidents: bool,
    /// Accounts, hosts or replicas that acted, separated by commas
    #[arg(long, value_name = "NAMES", default_value = "")]
    who: String,
    /// Which acts, such as job.cancel or `queue.*`, separated by commas
    #[arg(long, value_name = "ACTS", default_value = "")]
    what: String,
    /// On which jobs, queues, hosts or accounts, separated by commas
    #[arg(long, value_name = "NAMES", default_value = "")]
    subject: String,
    /// Most entries
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

pub(crate) async fn run(args: &AuditArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let usual = if args.incidents { NIGHT_MS } else { WEEK_MS };
    let since_ms = clock::now_ms().saturating_sub(args.since.unwrap_or(usual));
    let wanted = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let (mut events, mut after) = (Vec::new(), String::new());
    while events.len() < wanted {
        let mut filters = vec![
            ("since_ms", since_ms.to_string()),
            ("limit", args.limit.min(PAGE).to_string()),
        ];
        if args.incidents {
            filters.push(("incidents", "true".to_owned()));
        }
        for (name, value) in [
            ("who", &args.who),
            ("what", &args.what),
            ("subject", &args.subject),
            ("after", &after),
        ] {
            if !value.is_empty() {
                filters.push((name, value.clone()));
            }
        }
        let page = client.audit(filters).await.map_err(Failure::from)?;
        events.extend(page.events);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    events.truncate(wanted);
    if args.incidents {
        events.reverse();
    }
    context.print(&events, |events| table(events, context.output.paper()))?;
    Ok(exit::OK)
}

fn table(events: &[AuditEvent], paper: Paper) -> String {
    if events.is_empty() {
        return "no entries".to_owned();
    }
    let mut grid = Grid::new(&["TIME", "WHO", "WHAT", "SUBJECT", "DETAIL"]).keep(&["TIME", "WHAT"]);
    for event in events {
        let detail = match &event.detail {
            serde_json::Value::Null => String::new(),
            detail => detail.to_string(),
        };
        grid.row([
            clock::shown(event.at_ms),
            harmless(&event.who),
            harmless(&event.what),
            harmless(&event.subject),
            harmless(&detail),
        ]);
    }
    grid.render(paper)
}
