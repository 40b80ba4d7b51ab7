//! `fairlead scale log [POOL]`, `scale explain POOL`, `scale quota [N]`: the decisions of pools, and why.

use fairlead_api::{PoolDecision, PoolView, ScalingSettings};

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper, harmless},
};

/// The actions on decisions.
#[derive(Debug, clap::Args)]
pub(crate) struct ScaleArgs {
    #[command(subcommand)]
    what: ScaleAction,
}

#[derive(Debug, clap::Subcommand)]
enum ScaleAction {
    /// List decisions to ask for machines or to retire some, the newest first
    Log {
        /// The pool [default: all pools]
        pool: Option<String>,
        /// Most decisions of a pool
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
    },
    /// Explain the last decision of a pool with its numbers
    Explain {
        /// The pool
        pool: String,
    },
    /// Show or set the most machines of all pools together
    Quota {
        /// Number of machines, or `none`
        machines: Option<String>,
    },
}

pub(crate) async fn run(args: &ScaleArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    match &args.what {
        ScaleAction::Log { pool, limit } => {
            let pools = if let Some(pool) = pool {
                vec![pool.clone()]
            } else {
                let pools = client.pools().await.map_err(Failure::from)?;
                pools.into_iter().map(|pool| pool.name).collect()
            };
            let mut decisions = Vec::new();
            for pool in pools {
                let some = client.pool_decisions(&pool, 0, *limit).await;
                decisions.extend(some.map_err(Failure::from)?);
            }
            decisions.sort_by_key(|decision| std::cmp::Reverse(decision.at_ms));
            context.print(&decisions, |all| table(all, context.output.paper()))?;
        }
        ScaleAction::Explain { pool } => {
            let view = client.pool(pool).await.map_err(Failure::from)?;
            let last = client.pool_decisions(pool, 0, 1).await;
            let last = last.map_err(Failure::from)?.pop();
            context.print(&last, |last| explained(&view, last.as_ref()))?;
        }
        ScaleAction::Quota { machines } => {
            let settings = match machines {
                None => client.scaling().await,
                Some(text) => client.set_scaling(&quota(text)?).await,
            };
            context.print(&settings.map_err(Failure::from)?, |settings| {
                let quota = settings.quota.map(|quota| quota.to_string());
                format!("quota  {}", quota.as_deref().unwrap_or("none"))
            })?;
        }
    }
    Ok(exit::OK)
}

fn quota(text: &str) -> Result<ScalingSettings, Failure> {
    if text == "none" {
        return Ok(ScalingSettings::default());
    }
    let quota = text.parse().map_err(|_| {
        Failure::usage(
            format!("'{}' is no number of machines", harmless(text)),
            "write a number, or none",
        )
    })?;
    Ok(ScalingSettings { quota: Some(quota) })
}

fn table(decisions: &[PoolDecision], paper: Paper) -> String {
    if decisions.is_empty() {
        return "no decisions".to_owned();
    }
    let mut grid = Grid::new(&["POOL", "TIME", ">ADDED", ">RETIRED", "WHY"]).keep(&["TIME", "WHY"]);
    for decision in decisions {
        grid.row([
            harmless(&decision.pool),
            clock::shown(decision.at_ms),
            decision.added.len().to_string(),
            decision.retired.len().to_string(),
            harmless(&decision.sentence),
        ]);
    }
    grid.render(paper)
}

/// Returns the present state of the pool, and the numbers of its last decision.
fn explained(pool: &PoolView, last: Option<&PoolDecision>) -> String {
    let mut lines = vec![format!(
        "pool {}: {} machines, {} to {}, law {}",
        harmless(&pool.name),
        pool.machines.len(),
        pool.min,
        pool.max,
        harmless(&pool.law)
    )];
    if pool.paused {
        lines.push("it is paused: nothing is asked for and nothing retires".to_owned());
    }
    if !pool.problem.is_empty() {
        lines.push(format!("its provider failed: {}", harmless(&pool.problem)));
    }
    let Some(last) = last else {
        lines.push("nothing was decided yet".to_owned());
        return lines.join("\n");
    };
    let time = |seconds: u64| clock::length(seconds.saturating_mul(1_000));
    lines.push(format!(
        "decision {} at {} by replica {}: {}",
        last.number,
        clock::shown(last.at_ms),
        harmless(&last.replica),
        harmless(&last.sentence)
    ));
    lines.push(format!(
        "  waiting  {} jobs, {} of work",
        last.waiting,
        time(last.work_s)
    ));
    lines.push(format!(
        "  supply   {} within {}",
        time(last.supply_s),
        time(last.horizon_s)
    ));
    lines.push(format!(
        "  machines {} boot, {} run jobs, {} are idle, {} are closed",
        last.booting, last.busy, last.idle, last.closed
    ));
    lines.push(format!("  wanted   {} more machines", last.wanted));
    for machine in &last.added {
        lines.push(format!("  asked    {}", harmless(machine)));
    }
    for machine in &last.retired {
        lines.push(format!("  retires  {}", harmless(machine)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_a_number_or_none() {
        assert_eq!(quota("20").unwrap().quota, Some(20));
        assert_eq!(quota("none").unwrap().quota, None);
        assert!(quota("many").unwrap_err().message.contains("'many'"));
    }

    #[test]
    fn a_decision_is_explained_with_its_numbers() {
        let pool = PoolView {
            name: "vms".to_owned(),
            max: 10,
            law: "queue_time".to_owned(),
            ..PoolView::default()
        };
        assert!(explained(&pool, None).ends_with("nothing was decided yet"));
        let decision = PoolDecision {
            pool: "vms".to_owned(),
            number: 7,
            waiting: 3,
            work_s: 60,
            added: vec!["vms--a".to_owned()],
            sentence: "3 jobs wait".to_owned(),
            ..PoolDecision::default()
        };
        let text = explained(&pool, Some(&decision));
        for part in ["decision 7", "3 jobs wait", "3 jobs, 1m", "asked    vms--a"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let table = table(&[decision], Paper::PIPE);
        assert!(table.contains("3 jobs wait"), "{table}");
    }
}
