//! The arguments of `fairlead-faults`.

use std::{collections::BTreeSet, fs, path::Path, path::PathBuf};

use super::{
    clocks::library,
    disk,
    lanes::Kind,
    run::{Options, run},
};
use fairlead_cluster::launch::LaunchError;

/// Kills and pauses replicas, Elasticsearch nodes and testboxes while jobs run, and checks the results
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FaultsArgs {
    /// Duration of the faults, minutes
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    minutes: f64,
    /// Maximum time to end all jobs after the faults, seconds
    #[arg(long, value_name = "S", default_value_t = 60)]
    calm: u64,
    /// Seed of the plan of faults: their kinds, times and victims [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Kinds of faults, separated by commas; `none` for no faults [default: all; replica-clock where
    /// libfaketime is, folder-full where a file system can be mounted]
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Number of replicas
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: u16,
    /// Port of the first replica; the others have the next ports
    #[arg(long, value_name = "PORT", default_value_t = 3300)]
    port: u16,
    /// Number of Elasticsearch nodes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    nodes: u16,
    /// Port of the first Elasticsearch node
    #[arg(long, value_name = "PORT", default_value_t = 9300)]
    elasticsearch_port: u16,
    /// Number of testboxes, all in this process
    #[arg(long, value_name = "N", default_value_t = 60)]
    agents: usize,
    /// Jobs to submit per second
    #[arg(long, value_name = "N", default_value_t = 10)]
    rate: u32,
    /// Program of the replicas [default: `fairlead` beside this program]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

impl FaultsArgs {
    /// Runs in folder `dir`, and passes each step to `remark`. Returns the report, and true if all rules held.
    pub(crate) async fn run(
        &self,
        dir: &Path,
        remark: impl Fn(&str),
    ) -> anyhow::Result<(String, bool)> {
        let options = Options {
            dir: dir.to_owned(),
            seconds: seconds(self.minutes)?,
            calm_s: self.calm,
            seed: self.seed.unwrap_or_else(fresh_seed),
            kinds: kinds(&self.kinds, lacks)?,
            replicas: self.replicas,
            port: self.port,
            nodes: self.nodes,
            elasticsearch_port: self.elasticsearch_port,
            agents: self.agents,
            rate: self.rate,
            binary: self.binary.clone(),
        };
        let (report, held) = run(&options, &remark).await?;
        if let Some(path) = &self.report {
            fs::write(path, &report)?;
        }
        Ok((report, held))
    }
}

fn seconds(minutes: f64) -> Result<u64, LaunchError> {
    let whole = std::time::Duration::try_from_secs_f64(minutes * 60.0);
    let whole = whole.ok().map(|time| time.as_secs());
    whole.filter(|s| (5..=86_400).contains(s)).ok_or_else(|| {
        LaunchError::usage(
            format!("--minutes: {minutes} is out of range"),
            "give 0.1 to 1440 minutes",
        )
    })
}

/// Something that a kind needs and this machine lacks, and the remedy.
type Lack = (&'static str, &'static str);

fn lacks(kind: Kind) -> Option<Lack> {
    match kind {
        Kind::ReplicaClock if library().is_none() => {
            Some(("libfaketime, which is not there", "install faketime"))
        }
        Kind::FolderFull if !disk::is_possible() => Some((
            "a mount namespace, which this user may not make",
            "run it as root with util-linux",
        )),
        _ => None,
    }
}

fn kinds(
    words: &[String],
    lacks: impl Fn(Kind) -> Option<Lack>,
) -> Result<BTreeSet<Kind>, LaunchError> {
    let of = |word: &String| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word);
        let kind = kind.ok_or_else(|| {
            let all = Kind::ALL.map(Kind::word).join(", ");
            LaunchError::usage(
                format!("--kinds: unknown kind '{word}'"),
                format!("give none, or some of {all}"),
            )
        })?;
        match lacks(kind) {
            None => Ok(kind),
            Some((what, todo)) => Err(LaunchError::usage(
                format!("--kinds: {word} needs {what}"),
                format!("{todo}, or name other kinds"),
            )),
        }
    };
    match words {
        [] => {
            let all = Kind::ALL.into_iter();
            Ok(all.filter(|kind| lacks(*kind).is_none()).collect())
        }
        [none] if none == "none" => Ok(BTreeSet::new()),
        words => words.iter().map(of).collect(),
    }
}

fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) % 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn kinds_are_named_and_time_has_limits() {
        let kinds = |text: &str| kinds(&words(text), |_| None);
        assert_eq!(kinds("none").unwrap().len(), 0);
        let two = kinds("outage,agent-kill").unwrap();
        assert_eq!(two, [Kind::Outage, Kind::AgentKill].into());
        let unknown = kinds("fire").unwrap_err().to_string();
        assert!(unknown.contains("node-kill"), "{unknown}");
        assert_eq!(seconds(0.5).unwrap(), 30);
        for bad in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_kind_that_the_machine_cannot_do_is_no_default_and_is_refused() {
        for hard in [Kind::ReplicaClock, Kind::FolderFull] {
            let lacks = |kind| (kind == hard).then_some(("fire", "light one"));
            let all = kinds(&[], lacks).unwrap();
            assert_eq!(all.len(), Kind::ALL.len() - 1);
            assert!(!all.contains(&hard));
            let named = words(&format!("outage,{}", hard.word()));
            let refused = kinds(&named, lacks).unwrap_err().to_string();
            let why = format!("--kinds: {} needs fire\nhint: light one", hard.word());
            assert!(refused.starts_with(&why), "{refused}");
        }
        assert_eq!(lacks(Kind::FolderFull).is_none(), disk::is_possible());
        assert_eq!(lacks(Kind::ReplicaClock).is_none(), library().is_some());
        assert_eq!(lacks(Kind::Outage), None);
    }
}
