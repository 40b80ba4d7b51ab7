//! The jobs that a submit makes of its specs, checked as far as one can without knowing the lab.

use crate::{
    ClusterNode, FieldError, Group, JobFields, JobId, Member, Needs, Sequence, SiteDefaults, Spec,
    SubmitLimits, Together, cluster_nodes,
    fields::{
        bounds::{check_bytes, check_depth},
        limits::limit_s,
        needs::link,
        read::{present, refuse},
    },
    schedule::{CRON, EVERY},
};

/// The field that says how long nodes that have a testbox wait for those that have none.
const WAIT: &str = "cluster_wait";
/// How long they do if nothing is said, seconds.
const WAIT_S: u64 = 300;

/// One spec of a submit: a job, or a cluster of one job a node.
#[derive(Debug)]
pub struct Submitted {
    /// The name under which other jobs of the submit need it.
    pub name: Option<String>,
    /// How many jobs it makes, or as many refusals: at least 1.
    pub count: usize,
    /// The jobs, or why all of them are refused.
    pub jobs: Result<Vec<ParsedJob>, FieldError>,
}

/// A job of a submit, with its fields read.
#[derive(Debug)]
pub struct ParsedJob {
    /// Spec as written by its author; for a node its own job.
    pub spec: Spec,
    /// The fields of it.
    pub fields: JobFields,
    /// Place among the nodes of its cluster; `None`: it runs by itself.
    pub node: Option<NodePlace>,
}

/// Place of a job among the nodes of its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlace {
    /// Its roles.
    pub roles: Vec<String>,
    /// How long nodes that have a testbox wait for those that have none, seconds.
    pub wait_s: u64,
}

impl Submitted {
    /// Reads one spec of a submit.
    pub fn of(spec: Spec, site: &SiteDefaults) -> Self {
        let name = Needs::name_of(&spec);
        let (count, jobs) = match cluster_nodes(&spec) {
            Err(error) => (1, Err(error)),
            Ok(nodes) if nodes.len() <= 1 => {
                (1, ParsedJob::of(spec, None, site).map(|job| vec![job]))
            }
            Ok(nodes) => (nodes.len(), parse_nodes(&nodes, &spec, site)),
        };
        Self { name, count, jobs }
    }

    /// The jobs, if nothing but the lab could refuse them.
    fn checked(
        self,
        site: &SiteDefaults,
        limits: &SubmitLimits,
        now_ms: u64,
        together: &mut Together,
    ) -> Result<Vec<ParsedJob>, FieldError> {
        let parsed = self.jobs?;
        for job in &parsed {
            job.check_shards(site)?;
            job.check_group(site)?;
            job.fields.times(now_ms)?;
        }
        for job in &parsed {
            together.add(&job.fields, limits)?;
        }
        Ok(parsed)
    }
}

impl ParsedJob {
    fn of(spec: Spec, node: Option<NodePlace>, site: &SiteDefaults) -> Result<Self, FieldError> {
        if let Some(field) = [EVERY, CRON]
            .into_iter()
            .find(|field| present(&spec, field).is_some())
        {
            return refuse(
                field,
                "a repeated job is a timer and cannot be submitted as a job".to_owned(),
                "use fairlead timers submit FILE, or omit the field to run the job once",
            );
        }
        let fields = JobFields::parse(&spec, site)?;
        Ok(Self { spec, fields, node })
    }

    /// Checks each way to run a job with shards: one that cannot run would be seen only after the submit.
    ///
    /// # Errors
    /// A field of one of them is wrong.
    pub fn check_shards(&self, site: &SiteDefaults) -> Result<(), FieldError> {
        let Some(shards) = self.fields.shards.as_ref().filter(|all| all.is_varied()) else {
            return Ok(());
        };
        for n in (1..=shards.total()).step_by(usize::from(shards.count)) {
            let spec = shards.spec(&self.spec, JobId::default(), n);
            JobFields::parse(&spec, site)?;
        }
        Ok(())
    }

    /// Checks what a job that joins a group makes of it: the whole, and its shard.
    fn check_group(&self, site: &SiteDefaults) -> Result<(), FieldError> {
        let Some(group) = &self.fields.group else {
            return Ok(());
        };
        JobFields::parse(&group.parent_spec(&self.spec), site)?;
        JobFields::parse(&Group::shard_spec(self.spec.clone()), site)?;
        Ok(())
    }
}

fn parse_nodes(
    nodes: &[ClusterNode],
    whole: &Spec,
    site: &SiteDefaults,
) -> Result<Vec<ParsedJob>, FieldError> {
    if Sequence::of(whole)?.is_some() {
        let field = if whole.contains_key("sequence") {
            "sequence"
        } else {
            "concurrency"
        };
        return refuse(
            field,
            "the nodes of a cluster run at the same time".to_owned(),
            "omit the sequence, or put a job that needs the cluster into it",
        );
    }
    let wait_s = limit_s(whole, WAIT)?.unwrap_or(WAIT_S);
    let parse = |node: &ClusterNode| {
        let place = NodePlace {
            roles: node.roles.clone(),
            wait_s,
        };
        ParsedJob::of(node.job(whole), Some(place), site)
    };
    nodes.iter().map(parse).collect()
}

/// Checks these specs as a submit at `now_ms` does, without knowing the lab: one result for each spec.
pub fn dry_run(
    specs: impl IntoIterator<Item = Spec>,
    site: &SiteDefaults,
    limits: &SubmitLimits,
    now_ms: u64,
) -> Vec<Result<(), FieldError>> {
    let mut outcomes = Vec::new();
    // Of each job: whose spec it is of, what it needs, and how many jobs of other submits it waits for.
    let mut jobs: Vec<(usize, Needs, usize)> = Vec::new();
    let mut together = Together::default();
    for (at, spec) in specs.into_iter().enumerate() {
        if let Err(error) = check_depth(&spec).and_then(|()| check_bytes(&spec, limits)) {
            // Nobody reads its name, either.
            jobs.push((at, Needs::default(), 0));
            outcomes.push(Err(error));
            continue;
        }
        let submitted = Submitted::of(spec, site);
        let (name, count) = (submitted.name.clone(), submitted.count);
        match submitted.checked(site, limits, now_ms, &mut together) {
            Ok(parsed) => {
                jobs.extend(parsed.into_iter().map(|ParsedJob { fields, .. }| {
                    let waits = fields.waits.map_or(0, |waits| waits.conditions.len());
                    (at, fields.needs, waits)
                }));
                outcomes.push(Ok(()));
            }
            Err(error) => {
                let needs = Needs {
                    name,
                    ..Needs::default()
                };
                jobs.extend((0..count).map(|_| (at, needs.clone(), 0)));
                outcomes.push(Err(error));
            }
        }
    }
    let members: Vec<Member<'_>> = jobs
        .iter()
        .map(|(at, needs, waits_for)| Member {
            needs,
            waits_for: *waits_for,
            is_refused: outcomes.get(*at).is_none_or(Result::is_err),
        })
        .collect();
    for (linked, (at, ..)) in link(&members).into_iter().zip(&jobs) {
        if let (Err(error), Some(outcome @ Ok(()))) = (linked, outcomes.get_mut(*at)) {
            *outcome = Err(error);
        }
    }
    outcomes
}
