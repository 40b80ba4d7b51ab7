//! `fairlead reuse explain ID`: whether a job has the result of another one, and why or why not.

use fairlead_api::{NearestRun, ReuseExplanation};

use crate::{
    context::Context,
    exit::{self, Failure},
    table::harmless,
};

/// The actions on reused results.
#[derive(Debug, clap::Args)]
pub(crate) struct ReuseArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Explain whether a job has the result of another one, and which part of its key differs from the nearest earlier job
    Explain {
        /// Id of the job
        id: String,
    },
}

pub(crate) async fn run(args: &ReuseArgs, context: &Context) -> anyhow::Result<u8> {
    let What::Explain { id } = &args.what;
    let client = context.client()?;
    let explanation = client.explain_reuse(id).await.map_err(Failure::from)?;
    context.print(&explanation, text)?;
    Ok(exit::OK)
}

/// The explanation for people.
fn text(explanation: &ReuseExplanation) -> String {
    let (id, verdict) = (&explanation.job_id, &explanation.verdict);
    let summary = harmless(&explanation.summary);
    let mut lines = vec![format!("job {id} ({verdict}): {summary}")];
    if !explanation.key.is_empty() {
        lines.push(format!("  key {}", harmless(&explanation.key)));
    }
    for (part, hash) in &explanation.parts {
        lines.push(format!("    {part:<12}  {}", harmless(hash)));
    }
    lines.extend(explanation.nearest.as_ref().map(nearest));
    lines.join("\n")
}

fn nearest(run: &NearestRun) -> String {
    let (id, health) = (&run.job_id, &run.job_health);
    if run.differs.is_empty() {
        return format!("  the nearest earlier job {id} ({health}) ran the same thing");
    }
    let part = |(part, fields): (&String, &Vec<String>)| {
        let fields: Vec<_> = fields.iter().map(|field| harmless(field)).collect();
        match fields.join(", ") {
            fields if fields.is_empty() => part.clone(),
            fields => format!("{part} ({fields})"),
        }
    };
    let differs: Vec<String> = run.differs.iter().map(part).collect();
    format!(
        "  the nearest earlier job {id} ({health}) differs in {}",
        differs.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_names_the_parts_and_what_differs() {
        let mut explanation = ReuseExplanation {
            job_id: "7".to_owned(),
            verdict: "ran".to_owned(),
            summary: "it runs itself: no earlier job".to_owned(),
            key: "ab".to_owned(),
            parts: [("image".to_owned(), "cd".to_owned())].into(),
            nearest: Some(NearestRun {
                job_id: "5".to_owned(),
                job_health: "success".to_owned(),
                differs: [
                    (
                        "parameters".to_owned(),
                        vec!["n".to_owned(), "m".to_owned()],
                    ),
                    ("salt".to_owned(), Vec::new()),
                ]
                .into(),
            }),
            ..ReuseExplanation::default()
        };
        assert_eq!(
            text(&explanation),
            "job 7 (ran): it runs itself: no earlier job\n  key ab\n    image         cd\n  \
             the nearest earlier job 5 (success) differs in parameters (n, m); salt"
        );
        explanation.nearest = explanation.nearest.map(|run| NearestRun {
            differs: [].into(),
            ..run
        });
        assert!(text(&explanation).ends_with("ran the same thing"));
    }
}
