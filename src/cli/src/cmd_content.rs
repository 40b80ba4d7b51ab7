//! `fairlead content ls|stat|keep|rm|gc|check`: what was put, how long it stays, and whether it is whole.

use fairlead_api::{
    ContentCareRequest, ContentChecked, ContentCollected, ContentKeep, ContentView, client::Client,
};
use fairlead_job::units::counted;
use serde_json::json;

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    sizes::size,
    table::{Grid, Paper, harmless, or_dash},
};

/// Number of ids that a list requests at a time.
const PAGE: u64 = 1_000;

/// The actions on content.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ContentArgs {
    #[command(subcommand)]
    what: Option<ContentAction>,
}

#[derive(Debug, clap::Subcommand)]
enum ContentAction {
    /// List what you have
    Ls {
        /// Account whose content is listed
        #[arg(
            long,
            value_name = "ACCOUNT",
            default_value = "",
            hide_default_value = true
        )]
        of: String,
    },
    /// Show one id
    Stat {
        /// The id
        id: String,
    },
    /// Keep an id until a time, whatever jobs do
    Keep {
        /// The id
        id: String,
        /// Until when: `+14d` from now, or a time such as 2026-11-22T05:00:00Z; at most 366 days ahead
        #[arg(long, value_name = "WHEN", required_unless_present = "release")]
        until: Option<String>,
        /// Keep it no longer than jobs name it
        #[arg(long, conflicts_with = "until")]
        release: bool,
    },
    /// Give ids up; files that no job names are removed after the grace period
    Rm {
        /// The ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Remove what no job names and nobody keeps, as schedulers do by themselves
    Gc {
        /// Only tell what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Read all that is stored, tell what is damaged or missing, and move damaged chunks aside
    Check,
}

pub(crate) async fn run(args: &ContentArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    match &args.what {
        None => list("", &client, context).await?,
        Some(ContentAction::Ls { of }) => list(of, &client, context).await?,
        Some(ContentAction::Stat { id }) => {
            let one = client.content(id).await.map_err(Failure::from)?;
            context.print(&one, card)?;
        }
        Some(ContentAction::Keep { id, until, .. }) => {
            let keep = ContentKeep {
                until: until.clone().unwrap_or_default(),
            };
            let kept = client.keep_content(id, &keep).await;
            context.print(&kept.map_err(Failure::from)?, card)?;
        }
        Some(ContentAction::Rm { ids }) => {
            for id in ids {
                client.forget_content(id).await.map_err(Failure::from)?;
            }
            let many = counted(ids.len(), "id was given up", "ids were given up");
            context.print(&json!({ "given_up": ids }), |_| many)?;
        }
        Some(ContentAction::Gc { dry_run }) => {
            let dry_run = *dry_run;
            let request = ContentCareRequest { dry_run };
            let done = client.collect_content(&request).await;
            context.print(&done.map_err(Failure::from)?, |done| {
                collected(done, dry_run)
            })?;
        }
        Some(ContentAction::Check) => {
            let request = ContentCareRequest::default();
            let found = client.check_content(&request).await;
            let found = found.map_err(Failure::from)?;
            context.print(&found, checked)?;
            if found.problems_total > 0 {
                return Ok(exit::TO_MEND);
            }
        }
    }
    Ok(exit::OK)
}

async fn list(account: &str, client: &Client, context: &Context) -> anyhow::Result<()> {
    let all = all_of(account, client).await?;
    context.print(&all, |all| table(all, context.output.paper()))?;
    Ok(())
}

/// Returns the content of all pages.
async fn all_of(account: &str, client: &Client) -> Result<Vec<ContentView>, Failure> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = client
            .contents(account, after.as_deref(), Some(PAGE))
            .await?;
        all.extend(page.content);
        // A list that does not advance would be read forever.
        if page.next.is_none() || page.next <= after {
            return Ok(all);
        }
        after = page.next;
    }
}

/// Returns the end of the retention, for people.
fn kept_until(one: &ContentView) -> String {
    one.keep_until_ms
        .map_or_else(|| "-".to_owned(), clock::shown)
}

fn table(all: &[ContentView], paper: Paper) -> String {
    let headings = [
        "id",
        "name",
        ">files",
        ">size",
        "put",
        "kept until",
        "job",
        "account",
    ];
    let mut grid = Grid::new(&headings).keep(&["name", "size", "put"]);
    for one in all {
        grid.row([
            one.id.clone(),
            or_dash(&one.name),
            one.files.to_string(),
            size(one.bytes),
            clock::shown(one.put_ms),
            kept_until(one),
            or_dash(&one.job_id),
            or_dash(&one.my_account),
        ]);
    }
    grid.render(paper)
}

fn card(one: &ContentView) -> String {
    let lines = [
        format!("id          {}", one.id),
        format!("name        {}", or_dash(&one.name)),
        format!("account     {}", or_dash(&one.my_account)),
        format!("files       {}", one.files),
        format!("size        {} ({} bytes)", size(one.bytes), one.bytes),
        format!("chunks      {}", one.chunks),
        format!("put         {}", clock::shown(one.put_ms)),
        format!("kept until  {}", kept_until(one)),
        format!("outputs of  {}", or_dash(&one.job_id)),
    ];
    lines.map(|line| harmless(&line)).join("\n")
}

fn collected(done: &ContentCollected, dry_run: bool) -> String {
    let verb = if dry_run { "would go" } else { "removed" };
    format!(
        "{verb}: {} of {} and {} of {}, {}\nkept: {}",
        done.manifests_removed,
        counted(done.manifests, "id", "ids"),
        done.chunks_removed,
        counted(done.chunks, "chunk", "chunks"),
        size(done.bytes_removed),
        size(done.bytes_kept),
    )
}

fn checked(found: &ContentChecked) -> String {
    let mut lines: Vec<String> = found.problems.iter().map(|line| harmless(line)).collect();
    let shown = u64::try_from(lines.len()).unwrap_or(u64::MAX);
    if found.problems_total > shown {
        lines.push(format!("… and {} more", found.problems_total - shown));
    }
    lines.push(format!(
        "read {} and {}, {}: {}",
        counted(found.manifests, "id", "ids"),
        counted(found.chunks, "chunk", "chunks"),
        size(found.bytes),
        counted(found.problems_total, "problem", "problems"),
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_sentences() {
        let done = ContentCollected {
            manifests: 3,
            manifests_removed: 1,
            chunks: 40,
            chunks_removed: 12,
            bytes_removed: 70_000,
            bytes_kept: 12,
        };
        assert_eq!(
            collected(&done, true),
            "would go: 1 of 3 ids and 12 of 40 chunks, 68 KB\nkept: 12 bytes"
        );
        let found = ContentChecked {
            manifests: 1,
            chunks: 2,
            bytes: 5,
            problems: vec!["chunk x is\u{1b} damaged".into()],
            problems_total: 3,
        };
        assert_eq!(
            checked(&found),
            "chunk x is  damaged\n… and 2 more\nread 1 id and 2 chunks, 5 bytes: 3 problems"
        );
    }

    #[test]
    fn content_is_a_row() {
        let one = ContentView {
            id: "ab".into(),
            name: "build".into(),
            my_account: "alice".into(),
            files: 2,
            bytes: 70_000,
            ..ContentView::default()
        };
        assert_eq!(
            table(&[one], Paper::PIPE),
            "id  name   files   size  put  kept until  job  account\n\
             ab  build      2  68 KB  -    -           -    alice"
        );
    }
}
