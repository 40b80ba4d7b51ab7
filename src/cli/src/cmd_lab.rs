//! `fairlead lab`, `lab pause`, `lab resume`: the lab as a whole.

use std::{collections::BTreeMap, time::Duration};

use fairlead_api::{
    BulkAction, LabRow, Preview, PreviewRequest, PreviewState, ReplicaRow, Snapshot, client::Client,
};
use fairlead_job::units::counted;

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper, harmless},
};

/// Interval between checks of an action in progress.
const LOOK: Duration = Duration::from_millis(200);

/// State of the lab with its replicas, for JSON.
#[derive(Debug, serde::Serialize)]
struct LabNow<'a> {
    lab: Option<&'a LabRow>,
    replicas: &'a BTreeMap<String, ReplicaRow>,
}

/// Arguments of `fairlead lab`.
#[derive(Debug, clap::Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    what: Option<LabAction>,
}

#[derive(Debug, clap::Subcommand)]
enum LabAction {
    /// Dispatch nothing in the whole lab; running jobs go on
    Pause {
        /// Why, for everybody who looks
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Dispatch jobs again
    Resume,
}

pub(crate) async fn run(args: &LabArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let asked = match &args.what {
        None => {
            let snapshot = client.overview().await.map_err(Failure::from)?;
            let paper = context.output.paper();
            let now = LabNow {
                lab: snapshot.tables.lab.values().next(),
                replicas: &snapshot.tables.replicas,
            };
            context.print(&now, |_| shown(&snapshot, paper))?;
            return Ok(exit::OK);
        }
        Some(LabAction::Pause { reason }) => PreviewRequest {
            action: BulkAction::PauseLab,
            reason: reason.clone(),
            ..PreviewRequest::default()
        },
        Some(LabAction::Resume) => PreviewRequest {
            action: BulkAction::ResumeLab,
            ..PreviewRequest::default()
        },
    };
    let done = do_it(&client, &asked).await?;
    let told = done.left_out.first().map(|one| one.why.clone());
    context.print(&done, |done| {
        told.clone().unwrap_or_else(|| done.sentence.clone())
    })?;
    Ok(exit::OK)
}

/// Requests an action without showing its preview, executes it, and waits for its end.
async fn do_it(client: &Client, asked: &PreviewRequest) -> Result<Preview, Failure> {
    let shown = client.make_preview(asked).await.map_err(Failure::from)?;
    if shown.total == 0 {
        return Ok(shown);
    }
    let mut now = client.run_preview(&shown.preview_id).await;
    loop {
        let preview = now.map_err(Failure::from)?;
        if preview.state != PreviewState::Running {
            return Ok(preview);
        }
        clock::pause(LOOK).await;
        now = client.preview(&shown.preview_id).await;
    }
}

/// Returns a description of a replica: its lag, and its pending requests.
fn words_of_replica(name: &str, replica: &ReplicaRow) -> String {
    let pace = if replica.behind {
        format!("is {} s behind the store", replica.lag_s)
    } else {
        "keeps up".to_owned()
    };
    let requests = counted(
        replica.store_requests,
        "request at the store",
        "requests at the store",
    );
    let version = if replica.version.is_empty() {
        "of an unknown version"
    } else {
        &replica.version
    };
    format!(
        "{} {}: {pace}, {requests}, {} in its inbox, {} jobs on hosts",
        harmless(name),
        harmless(version),
        replica.inbox,
        replica.held
    )
}

fn shown(snapshot: &Snapshot, paper: Paper) -> String {
    let lab = snapshot
        .tables
        .lab
        .values()
        .next()
        .cloned()
        .unwrap_or_default();
    let mut lines = Vec::new();
    if let Some(paused) = &lab.paused {
        let by = harmless(&paused.by);
        let why = if paused.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", harmless(&paused.reason))
        };
        lines.push(format!(
            "paused by {by} at {}{why}",
            clock::shown(paused.at_ms)
        ));
    }
    let store = if lab.store.well { "well" } else { "not well" };
    lines.push(format!("store     {}, {store}", harmless(&lab.store.name)));
    for (side, what) in [
        (&lab.store.reads, "no reads"),
        (&lab.store.writes, "no writes"),
    ] {
        if let Some(problem) = side {
            let words = harmless(&problem.problem);
            lines.push(format!(
                "          {what} for {} s: {words}",
                problem.seconds
            ));
        }
    }
    for (name, replica) in &snapshot.tables.replicas {
        lines.push(format!("replica   {}", words_of_replica(name, replica)));
    }
    lines.push(format!(
        "jobs      {} wait for a host, {} run, {} wait for a time or other jobs",
        lab.waiting, lab.running, lab.not_ready
    ));
    let mut grid = Grid::new(&["WHAT", "WHICH", ">COUNT"]);
    let mut rows = |what: &str, counts: &BTreeMap<String, u64>| {
        for (word, count) in counts {
            grid.row([what.to_owned(), harmless(word), count.to_string()]);
        }
    };
    rows("stage", &lab.stages);
    rows("ended in 24 h", &lab.ended_24h);
    rows("hosts", &lab.hosts_by_state);
    lines.push(grid.render(paper));
    lines.join("\n")
}
