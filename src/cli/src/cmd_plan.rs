//! `fairlead plan FILE` and `fairlead apply FILE`: the lab as a file.

use std::path::{Path, PathBuf};

use fairlead_api::Client;
use serde_json::json;

use crate::{
    context::Context,
    exit::{self, Failure},
    lab_file::{self, Change, Present, Tokens},
    selecting::agrees,
};

/// Which file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 the lab is as the file says, 1 it differs, 2 the file is wrong.")]
pub(crate) struct PlanArgs {
    /// The lab file (YAML)
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

/// Which file, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// The lab file (YAML)
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Do not ask
    #[arg(short = 'y', long)]
    yes: bool,
    /// Write the token of each new account to DIR/ACCOUNT.token (mode 0600), and do not show it
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    tokens: Option<PathBuf>,
}

/// Returns the differences between the lab and its file.
async fn changes(file: &Path, client: &Client) -> Result<Vec<Change>, Failure> {
    let lab = lab_file::read(file)?;
    let own = client.whoami().await?.my_account;
    let present = Present::read(&lab, client).await?;
    lab_file::check(file, &lab, &present, &own)?;
    Ok(lab_file::plan(&lab, &present))
}

pub(crate) async fn plan(args: &PlanArgs, context: &Context) -> anyhow::Result<u8> {
    let changes = changes(&args.file, &context.client()?).await?;
    if context.json {
        context.output.json(&json!({ "changes": changes }))?;
    } else {
        tell(&changes, context);
    }
    Ok(if changes.is_empty() {
        exit::OK
    } else {
        exit::DIFFERS
    })
}

fn tell(changes: &[Change], context: &Context) {
    for change in changes {
        context.output.line(&change.words());
    }
}

pub(crate) async fn apply(args: &ApplyArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let changes = changes(&args.file, &client).await?;
    let tokens = Tokens(args.tokens.clone());
    tokens.check(&changes)?;
    if !changes.is_empty() && !args.yes {
        for change in &changes {
            context.output.remark(&change.words());
        }
        let what = fairlead_job::units::counted(changes.len(), "change", "changes");
        agrees(
            &format!("apply {what} to the lab"),
            "repeat the command with --yes",
            context,
        )?;
    }
    let mut done = Vec::new();
    for change in &changes {
        let said = match lab_file::carry_out(change, &tokens, &client).await {
            Ok(said) => said,
            Err(failure) => {
                report(&done, context)?;
                let left = changes.len() - done.len();
                context.output.remark(&format!(
                    "{} of {} changes done; {left} left, from: {}",
                    done.len(),
                    changes.len(),
                    change.words()
                ));
                return Err(failure.into());
            }
        };
        if !context.json {
            let said = said.as_ref().map(|said| format!("; {said}"));
            let line = format!("{}{}", change.words(), said.unwrap_or_default());
            context.output.line(&line);
        }
        done.push((change, said));
    }
    report(&done, context)?;
    Ok(exit::OK)
}

/// Prints the completed actions for programs.
fn report(done: &[(&Change, Option<String>)], context: &Context) -> anyhow::Result<()> {
    if !context.json {
        return Ok(());
    }
    let done: Vec<_> = done
        .iter()
        .map(|(change, said)| {
            let mut value = json!(change);
            if let Some(said) = said {
                value["said"] = json!(said);
            }
            value
        })
        .collect();
    context.output.json(&json!({ "done": done }))?;
    Ok(())
}
