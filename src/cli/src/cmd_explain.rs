//! `fairlead explain ID`: why a job waits, or where it is.

use fairlead_api::{ConstraintCost, Explanation};
use fairlead_job::units::counted;

use crate::{
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper, harmless},
};

/// Of which job.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Id of the job
    id: String,
}

pub(crate) async fn run(args: &ExplainArgs, context: &Context) -> anyhow::Result<u8> {
    let explanation = context
        .client()?
        .explain(&args.id)
        .await
        .map_err(Failure::from)?;
    context.print(&explanation, |explanation| {
        text(explanation, context.output.paper())
    })?;
    Ok(exit::OK)
}

/// Returns the explanation for people.
pub(crate) fn text(explanation: &Explanation, paper: Paper) -> String {
    let mut lines = vec![format!(
        "job {} ({}): {}",
        explanation.job_id,
        explanation.job_stage,
        harmless(&explanation.summary)
    )];
    lines.extend(
        explanation
            .reasons
            .iter()
            .map(|reason| format!("  - {}", harmless(reason))),
    );
    lines.extend(cost_lines(&explanation.costs));
    if !explanation.hosts.is_empty() {
        let mut grid = Grid::new(&["host", "could run it", "lacks or waits for"]);
        for host in &explanation.hosts {
            let could = if host.could { "yes" } else { "no" };
            grid.row([
                host.hostname.clone(),
                could.to_owned(),
                host.lacks.join("; "),
            ]);
        }
        lines.push(String::new());
        lines.push(grid.render(paper));
    }
    if explanation.hosts_more > 0 {
        let more = counted(explanation.hosts_more, "more host", "more hosts");
        lines.push(format!("and {more}"));
    }
    lines.join("\n")
}

/// Returns the cost of each constraint of a job, for people.
pub(crate) fn cost_lines(costs: &[ConstraintCost]) -> Vec<String> {
    if costs.is_empty() {
        return Vec::new();
    }
    let each = costs
        .iter()
        .map(|cost| format!("  - {}", harmless(&cost.words)));
    let head = "  cost of each constraint:".to_owned();
    std::iter::once(head)
        .chain(each.map(|line| format!("  {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use fairlead_api::HostVerdict;

    use super::*;

    #[test]
    fn an_explanation_has_its_answer_first_then_reasons_then_hosts() {
        let explanation = Explanation {
            job_id: "7".into(),
            job_stage: fairlead_job::Stage::Submit.into(),
            summary: "no host has enough memory".into(),
            reasons: vec!["it needs 64000 MB".into()],
            hosts: vec![HostVerdict {
                hostname: "h1".into(),
                could: false,
                lacks: vec!["memory".into(), "tag ssd".into()],
            }],
            hosts_more: 2,
            costs: vec![ConstraintCost {
                words: "2 more hosts without `tags: [ssd]`, 1 now".into(),
                ..ConstraintCost::default()
            }],
            ..Explanation::default()
        };
        assert_eq!(
            text(&explanation, Paper::PIPE),
            "job 7 (submit): no host has enough memory\n  - it needs 64000 MB\n  cost of each constraint:\n\
             \x20   - 2 more hosts without `tags: [ssd]`, 1 now\n\n\
             host  could run it  lacks or waits for\nh1    no            memory; tag ssd\nand 2 more hosts"
        );
    }
}
