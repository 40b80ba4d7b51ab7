//! `fairlead doctor`: finds problems of a lab and suggests fixes.

use serde_json::json;

use crate::{
    context::Context,
    doctor::{self, Check, Verdict},
    exit::{self, Failure},
    store_args::StoreArgs,
    table::harmless,
};

/// Where to look.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Checks of the scheduler use --server; name all replicas to compare their clocks. Lists of
accounts need the token of an admin. Checks of the data folder need --data, on the machine of the
scheduler. A check that cannot run tells why.

Exit code 0 if there is no problem, 6 if there is one.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) async fn run(args: &DoctorArgs, context: &Context) -> anyhow::Result<u8> {
    let settings = context.settings()?;
    let mut checks = doctor::of_scheduler(&settings).await?;
    checks.extend(doctor::of_folder(args.store.data()));
    checks.push(key(args, context).await?);
    let problems = of_verdict(&checks, Verdict::Problem);
    let value = json!({"checks": checks, "problems": problems});
    context.print(&value, |_| text(&checks))?;
    Ok(if problems == 0 {
        exit::OK
    } else {
        exit::TO_MEND
    })
}

/// Checks the lab's key in the store itself.
async fn key(args: &DoctorArgs, context: &Context) -> Result<Check, Failure> {
    if !args.store.is_given() {
        return Ok(doctor::of_key(None));
    }
    let config = args.store.config(&context.env)?;
    let found = fairlead_scheduler::look_at_key(&config).await;
    Ok(doctor::of_key(Some(found)))
}

fn of_verdict(checks: &[Check], verdict: Verdict) -> usize {
    checks
        .iter()
        .filter(|check| check.verdict == verdict)
        .count()
}

fn text(checks: &[Check]) -> String {
    let mut lines = Vec::new();
    for check in checks {
        let word = match check.verdict {
            Verdict::Ok => "ok",
            Verdict::Problem => "PROBLEM",
            Verdict::NotMade => "not made",
        };
        lines.push(harmless(&format!(
            "{word:<9} {}: {}",
            check.name, check.found
        )));
        if !check.todo.is_empty() {
            lines.push(harmless(&format!("{:<9} -> {}", "", check.todo)));
        }
    }
    let problems = of_verdict(checks, Verdict::Problem);
    let not_made = of_verdict(checks, Verdict::NotMade);
    lines.push(format!(
        "{} of {} ran; {problems} found",
        checks.len() - not_made,
        fairlead_job::units::counted(checks.len(), "check", "checks")
    ));
    lines.join("\n")
}
