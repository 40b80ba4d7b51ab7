//! `fairlead reuse show`, `set …`, `explain ID` and `forget ID`: how the lab reuses results, whether a job has the result of
//! another one, and results that are no longer taken.

use fairlead_api::{NearestRun, ReuseExplanation, ReuseForgotten, ReuseSettings, SuiteReuse};

use crate::{
    context::Context,
    exit::{self, Failure},
    reuse_settings::{ReuseChange, suite_reuse, words_of},
    table::harmless,
};

/// The actions on reused results.
#[derive(Debug, clap::Args)]
pub(crate) struct ReuseArgs {
    #[command(subcommand)]
    what: ReuseAction,
}

#[derive(Debug, clap::Subcommand)]
enum ReuseAction {
    /// Show how the lab reuses results
    Show,
    /// Change how the lab reuses results; other settings stay
    Set(SetArgs),
    /// Explain whether a job has the result of another one, and which part of its key differs from the nearest earlier job
    Explain {
        /// Id of the job
        id: String,
    },
    /// Forget the results of what a job runs, also that it is flaky: the next equal job runs
    Forget {
        /// Id of the job
        id: String,
    },
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// Suites whose jobs reuse results if they do not say, and how old a result may be: a list with commas, or `none`. The
    /// first suite that fits counts
    #[arg(long, value_name = "SUITE=AGE,…")]
    suites: Option<String>,
    /// Suites that measure, so that their jobs always run: a list with commas, or `none`
    #[arg(long, value_name = "SUITE,…")]
    performance: Option<String>,
    /// Of a hundred jobs that could take a result, how many run all the same, so that results are compared
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    audit_percent: Option<u8>,
    /// Any text, or `none`: with another one, nothing that ran before is reused
    #[arg(long, value_name = "TEXT")]
    salt: Option<String>,
}

/// Splits a list with commas. `none` is the empty list.
fn listed(text: &str) -> Vec<&str> {
    let entries = text.split(',').map(str::trim);
    entries
        .filter(|entry| !entry.is_empty() && *entry != NONE)
        .collect()
}

const NONE: &str = "none";

/// Parses `ltp*=14d`.
fn suite(entry: &str) -> Result<SuiteReuse, Failure> {
    let (suite, within) = entry.split_once('=').unwrap_or((entry, ""));
    suite_reuse(suite.trim(), within.trim()).map_err(|problem| {
        let message = format!("--suites: '{}': {problem}", harmless(entry));
        Failure::usage(message, "write SUITE=AGE, such as 'ltp*=14d', at most 366d")
    })
}

impl SetArgs {
    fn change(&self) -> Result<ReuseChange, Failure> {
        let names = |text: &String| listed(text).into_iter().map(str::to_owned).collect();
        let suites = self.suites.as_deref().map(|text| {
            let suites = listed(text).into_iter().map(suite);
            suites.collect::<Result<Vec<_>, Failure>>()
        });
        let salt = self.salt.as_deref();
        let change = ReuseChange {
            salt: salt.map(|salt| if salt == NONE { "" } else { salt }.to_owned()),
            audit_percent: self.audit_percent,
            performance: self.performance.as_ref().map(names),
            suites: suites.transpose()?,
        };
        if change == ReuseChange::default() {
            return Err(Failure::usage(
                "no change was given",
                "use --suites, --performance, --audit-percent or --salt",
            ));
        }
        Ok(change)
    }
}

pub(crate) async fn run(args: &ReuseArgs, context: &Context) -> anyhow::Result<u8> {
    match &args.what {
        ReuseAction::Show => {
            let client = context.client()?;
            let settings = client.reuse().await.map_err(Failure::from)?;
            context.print(&settings, settings_text)?;
        }
        ReuseAction::Set(set) => {
            let change = set.change()?;
            let client = context.client()?;
            let before = client.reuse().await.map_err(Failure::from)?;
            let after = client.set_reuse(&change.of(&before)).await;
            context.print(&after.map_err(Failure::from)?, settings_text)?;
        }
        ReuseAction::Explain { id } => {
            let explanation = context.client()?.explain_reuse(id).await;
            context.print(&explanation.map_err(Failure::from)?, text)?;
        }
        ReuseAction::Forget { id } => {
            let forgotten = context.client()?.forget_reuse(id).await;
            context.print(&forgotten.map_err(Failure::from)?, forgotten_text)?;
        }
    }
    Ok(exit::OK)
}

/// Default percentage of reusable jobs that run anyway. The scheduler has the same constant.
const AUDIT_PERCENT: u8 = 1;

/// Returns the settings for people.
fn settings_text(settings: &ReuseSettings) -> String {
    let or_none = |words: Vec<String>| {
        if words.is_empty() {
            NONE.to_owned()
        } else {
            harmless(&words.join(", "))
        }
    };
    let salt = Some(settings.salt.clone()).filter(|salt| !salt.is_empty());
    let audits = settings.audit_percent.unwrap_or(AUDIT_PERCENT);
    [
        format!(
            "suites         {}",
            or_none(settings.suites.iter().map(words_of).collect())
        ),
        format!("performance    {}", or_none(settings.performance.clone())),
        format!("audit percent  {audits}"),
        format!("salt           {}", or_none(salt.into_iter().collect())),
    ]
    .join("\n")
}

/// Returns the answer to `forget`, for people.
fn forgotten_text(forgotten: &ReuseForgotten) -> String {
    let (id, key) = (&forgotten.job_id, harmless(&forgotten.key));
    let mut lines = vec![if forgotten.forgotten.is_empty() {
        format!("job {id}: no result of its key {key} was known")
    } else {
        format!("job {id}: the results of its key {key} are forgotten, and the next equal job runs")
    }];
    if !forgotten.was.is_empty() {
        lines.push(format!("  before: {}", harmless(&forgotten.was)));
    }
    if !forgotten.still.is_empty() {
        let still = harmless(&forgotten.still);
        lines.push(format!(
            "  the lab still takes no result of it: {still}; an admin can forget that, too"
        ));
    }
    lines.join("\n")
}

/// Returns the explanation for people.
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
                job_health: fairlead_job::Health::Success.into(),
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

    fn set(args: &[&str]) -> Result<ReuseChange, Failure> {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            set: SetArgs,
        }
        let line = [&["set"], args].concat();
        Line::try_parse_from(line).unwrap().set.change()
    }

    #[test]
    fn a_change_names_what_changes() {
        let change = set(&["--suites", "ltp-io=1h, ltp*=14d", "--salt", "none"]).unwrap();
        let expected = ReuseChange {
            salt: Some(String::new()),
            suites: Some(vec![
                suite_reuse("ltp-io", "1h").unwrap(),
                suite_reuse("ltp*", "14d").unwrap(),
            ]),
            ..ReuseChange::default()
        };
        assert_eq!(change, expected);
        let change = set(&["--performance", "fio*,iozone", "--audit-percent", "5"]).unwrap();
        assert_eq!(
            (change.performance, change.audit_percent),
            (Some(vec!["fio*".to_owned(), "iozone".to_owned()]), Some(5))
        );
        assert_eq!(set(&["--suites", "none"]).unwrap().suites, Some(Vec::new()));
        for (args, word) in [
            (&[][..], "no change"),
            (&["--suites", "ltp"], "'ltp'"),
            (&["--suites", "ltp=soon"], "soon"),
            (&["--suites", "=14d"], "no name"),
        ] {
            let refused = set(args).unwrap_err();
            assert!(refused.message.contains(word), "{refused}");
        }
    }

    #[test]
    fn settings_and_what_was_forgotten_are_told() {
        let settings = ReuseSettings {
            suites: vec![suite_reuse("ltp*", "14d").unwrap()],
            performance: vec!["fio*".to_owned(), "iozone".to_owned()],
            ..ReuseSettings::default()
        };
        assert_eq!(
            settings_text(&settings),
            "suites         ltp*=14d\nperformance    fio*, iozone\naudit percent  1\nsalt           none"
        );
        let mut forgotten = ReuseForgotten {
            job_id: "7".to_owned(),
            key: "ab".to_owned(),
            forgotten: vec!["account".to_owned()],
            was: "it is flaky".to_owned(),
            still: String::new(),
        };
        assert_eq!(
            forgotten_text(&forgotten),
            "job 7: the results of its key ab are forgotten, and the next equal job runs\n  before: it is flaky"
        );
        forgotten = ReuseForgotten {
            forgotten: Vec::new(),
            was: String::new(),
            still: "an audit failed".to_owned(),
            ..forgotten
        };
        let told = forgotten_text(&forgotten);
        assert!(
            told.starts_with("job 7: no result of its key ab was known\n"),
            "{told}"
        );
        assert!(told.contains("an audit failed; an admin"), "{told}");
    }
}
