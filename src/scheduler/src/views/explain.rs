//! Renders explanations: the engine's typed reasons, in one wording for the CLI, scripts and people.

use fairlead_api::{Before, ConstraintCost, Explanation, HostVerdict};
use fairlead_dispatch::{
    Count, HostVerdict as EngineVerdict, JobExplanation, JobFacts, JobKey, JobState as EngineState,
    Limited, Millis, OVERTAKES_MAX, QueueStanding, Reason,
};
use fairlead_job::{JobId, Stage, units::counted};
use fairlead_store::{ClusterPlace, JobState, StoredJob};

use crate::{
    submission::SubmissionFlow,
    views::{
        ViewFlow,
        explain_before::before,
        explain_costs,
        explain_host::compared,
        explain_load::{words_of_all_loaded, words_of_load},
        explain_shards::shards_of,
        explain_times::{from_then_on, given_up, words_of_affinity, words_of_silent_store},
    },
};
use fairlead_base::{
    clock::utc_text,
    errors::{HostError, Refusal},
};
use fairlead_known::clusters::of;
use fairlead_lifecycle::{engine_facts::facts, hold::why_held, wait_on::waits_for};

/// Missing peers that an explanation says more of than that they are missing.
const EXPLAINED_MAX: usize = 4;

/// Why a job waits, or where it is.
pub(crate) async fn explain_job(flow: &ViewFlow, id: JobId) -> Result<Explanation, Refusal> {
    let job = flow.jobs.job(id).await?;
    let state = &job.state;
    let timer = timer_of(flow, id).await;
    let peers = Box::pin(why_no_peers(flow, state)).await;
    if state.stage != Stage::Submit {
        let compared = compared(flow, state).await.unwrap_or_default();
        let says = compared.iter().map(|compared| compared.words.clone());
        return Ok(Explanation {
            reasons: says.chain(peers).chain(timer).collect(),
            compared,
            ..plain(state, where_it_is(state))
        });
    }
    let mut explanation = if let Some(seen) = shards_of(flow, state).await {
        let first = match &seen.first_waiting {
            Some(first) => Some(Box::pin(why_it_waits(flow, first)).await?),
            None => None,
        };
        Explanation {
            reasons: seen.reasons(first),
            ..plain(&flow.jobs.as_shown(state.clone()), seen.summary())
        }
    } else if state.ready {
        why_ready(flow, &job).await?
    } else {
        not_ready(state, flow.waiting.why_no_turn(state).await)
    };
    if state.ready {
        explanation
            .reasons
            .extend(flow.scaling.pools_say(state).await);
    }
    if let Some(circle) = flow.waiting.circle_words(state).await {
        explanation.reasons.insert(0, circle);
    }
    explanation.reasons.extend(peers);
    explanation.reasons.extend(from_then_on(state));
    explanation.reasons.extend(given_up(state));
    explanation.reasons.extend(timer);
    Ok(explanation)
}

/// In one sentence why a job waits.
pub(crate) async fn why_it_waits(flow: &ViewFlow, job: &StoredJob) -> Result<String, Refusal> {
    if job.state.ready {
        let asked = ask_engine(flow, job, Costs::Unwanted).await?;
        return Ok(summary(flow, &job.state, &asked.explained));
    }
    let no_turn = flow.waiting.why_no_turn(&job.state).await;
    Ok(not_ready(&job.state, no_turn).summary)
}

/// Which timer made it, and for when. Without an answer of the store: nothing.
async fn timer_of(flow: &ViewFlow, id: JobId) -> Option<String> {
    let body = flow.ctx.store.get_bodies(&[id]).await.ok()?.pop()??;
    let text = |field: &str| body.get(field).and_then(serde_json::Value::as_str);
    let (timer, due) = (text("timer")?, text("timer_due")?);
    Some(format!("it is the run of timer '{timer}' for {due}"))
}

/// What a job's explanation says of its peers: which of them are missing, and why.
async fn why_no_peers(flow: &ViewFlow, state: &JobState) -> Vec<String> {
    let Some((_, jobs)) = of(state) else {
        return Vec::new();
    };
    let place = state.cluster.as_ref();
    let through = place.is_some_and(ClusterPlace::is_through);
    if through || state.stage.is_terminal() {
        return Vec::new();
    }
    let Ok(found) = flow.ctx.store.get(&jobs).await else {
        return Vec::new();
    };
    let mut words = Vec::new();
    for (id, job) in jobs.iter().zip(found) {
        if *id == state.job_id {
            continue;
        }
        let is_detailed = words.len() < EXPLAINED_MAX;
        words.push(match job {
            None => format!("its peer {id} is not there yet"),
            Some(job) => where_peer_is(flow, &job, is_detailed).await,
        });
    }
    words
}

async fn where_peer_is(flow: &ViewFlow, job: &StoredJob, is_detailed: bool) -> String {
    let peer = &job.state;
    let roles = peer.cluster.as_ref().map_or("", |place| &place.roles);
    let named = format!("its peer {} ({roles})", peer.job_id);
    if peer.stage != Stage::Submit {
        return format!("{named} is in stage {} on host {}", peer.stage, peer.host);
    }
    let why = if is_detailed {
        why_it_waits(flow, job).await.ok()
    } else {
        None
    };
    match why {
        Some(why) => format!("{named} has no testbox: {why}"),
        None => format!("{named} has no testbox"),
    }
}

/// What keeps a job from being ready.
fn not_ready(state: &JobState, no_turn: Option<String>) -> Explanation {
    let mut reasons: Vec<String> = why_held(state).into_iter().collect();
    if state.start_ms > 0 {
        reasons.push(format!("waits until {}", utc_text(state.start_ms)));
    }
    for condition in waits_for(state).into_iter().flat_map(|on| &on.conditions) {
        let required: Vec<String> = condition
            .requirements
            .iter()
            .map(ToString::to_string)
            .collect();
        let what = if required.is_empty() {
            "its end".to_owned()
        } else {
            required.join(", ")
        };
        reasons.push(format!("waits for job {}: {what}", condition.job));
    }
    let summary = match (state.start_ms > 0, state.waits.is_some(), no_turn.is_some()) {
        _ if !state.held_by.is_empty() => "somebody holds it back",
        (true, false, false) => "it waits for its time",
        (true, ..) => "it waits for its time and for other jobs",
        (false, false, true) => "it waits for its turn in its sequence",
        (false, ..) => "it waits for other jobs",
    };
    reasons.extend(no_turn);
    if !state.reason.is_empty() {
        reasons.push(state.reason.clone());
    }
    Explanation {
        reasons,
        ..plain(state, summary.to_owned())
    }
}

/// What the engine says of a job.
pub(super) struct Asked {
    pub(super) explained: JobExplanation,
    /// What its constraints cost.
    pub(super) costs: Vec<ConstraintCost>,
}

impl Asked {
    fn is_waiting(&self) -> bool {
        matches!(
            self.explained.state,
            EngineState::NotCached | EngineState::Waiting
        )
    }
}

/// Whether it is asked what the constraints of a job cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Costs {
    Wanted,
    Unwanted,
}

/// Asks the engine of a job that waits, or that is not even submitted.
pub(super) async fn ask_engine(
    flow: &ViewFlow,
    job: &StoredJob,
    costs: Costs,
) -> Result<Asked, Refusal> {
    let facts = facts(job);
    let without = match costs {
        Costs::Wanted => flow.without_each(&job.state, &facts),
        Costs::Unwanted => Vec::new(),
    };
    let others: Vec<JobFacts> = without.iter().map(|one| one.facts.clone()).collect();
    let answer = flow.ctx.engine.ask(move |engine, now| {
        let explained = engine
            .explain_job(now, JobKey(facts.key.0))
            .unwrap_or_else(|| engine.explain_facts(now, &facts));
        (explained, engine.compare_facts(now, &facts, &others))
    });
    let (explained, more) = answer.await.ok_or(HostError::DispatcherStopping)?;
    let costs = explain_costs::costs(&without, &more);
    Ok(Asked { explained, costs })
}

fn plain(state: &JobState, summary: String) -> Explanation {
    Explanation {
        job_id: state.job_id.to_string(),
        job_stage: state.stage.into(),
        summary,
        ..Explanation::default()
    }
}

fn where_it_is(state: &JobState) -> String {
    let because = if state.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", state.reason)
    };
    if state.stage.is_terminal() {
        format!(
            "it ended at {} with {}{because}",
            utc_text(state.end_ms),
            state.health
        )
    } else {
        format!(
            "host {} has it since {} (attempt {})",
            state.host,
            utc_text(state.dispatch_ms),
            state.attempt
        )
    }
}

/// Why a job waits that is ready, what stands before it, and what its constraints cost.
async fn why_ready(flow: &ViewFlow, job: &StoredJob) -> Result<Explanation, Refusal> {
    let (state, asked) = (&job.state, ask_engine(flow, job, Costs::Wanted).await?);
    let is_waiting = asked.is_waiting();
    let before = if is_waiting {
        Some(before(flow, state, &asked.explained.ahead).await)
    } else {
        None
    };
    let mut explanation = render(flow, state, &asked.explained, before.as_ref());
    let Asked { explained, costs } = asked;
    let costs = if is_waiting { costs } else { Vec::new() };
    let is_hopeless = is_waiting && explained.hosts_able == 0 && explained.hosts_known > 0;
    if is_hopeless && costs.is_empty() {
        let words = "to give up one constraint alone would not help: each known host lacks more";
        explanation.reasons.push(words.to_owned());
    }
    Ok(Explanation {
        before,
        costs,
        ..explanation
    })
}

fn render(
    flow: &ViewFlow,
    state: &JobState,
    explained: &JobExplanation,
    before: Option<&Before>,
) -> Explanation {
    let reasons = explained.reasons.iter();
    let mut reasons: Vec<String> = reasons.map(|reason| words_here(flow, reason)).collect();
    reasons.extend(explained.behind.iter().map(|passed| {
        let why = words_here(flow, passed);
        format!("others of its class go first: {why}")
    }));
    if !state.reason.is_empty() {
        reasons.push(state.reason.clone());
    }
    reasons.extend(before.map(|before| before.words.clone()));
    reasons.extend(overtaken(explained));
    reasons.extend(standing(state, &explained.standing));
    if let Some(host) = &explained.reserved_host {
        reasons.push(format!("host {host} is reserved for it"));
    }
    let hosts = explained.hosts.iter();
    Explanation {
        hosts: hosts.map(|host| verdict(flow, state, host)).collect(),
        hosts_more: explained.hosts_more,
        reasons,
        ..plain(state, summary(flow, state, explained))
    }
}

/// What a job's queue gets.
fn standing(state: &JobState, standing: &QueueStanding) -> Vec<String> {
    let percent = |permille: u32| format!("{}.{} %", permille / 10, permille % 10);
    let queue = &standing.queue;
    let mut lines = vec![format!(
        "queue '{queue}' has priority {} and weight {}: {} of its class",
        standing.class,
        standing.weight,
        percent(standing.share_permille),
    )];
    if !state.queue_label.is_empty() {
        lines.push(format!(
            "it waits under label '{}' in queue '{queue}': labels take turns there",
            state.queue_label
        ));
    }
    if standing.background_permille > 0 {
        lines.push(format!(
            "queue '{queue}' gets {} of dispatches while higher classes also wait",
            percent(standing.background_permille.into())
        ));
    }
    lines
}

fn verdict(flow: &ViewFlow, state: &JobState, host: &EngineVerdict) -> HostVerdict {
    let hostname = host.host.clone();
    // A closed host offers nothing: the engine may not know it.
    let closed = flow.lab.cordons.of(&hostname);
    let keeps_off = closed.filter(|closure| !closure.serves(&state.account));
    let closed = keeps_off.filter(|_| flow.placement.could_run(state, &hostname));
    let (could, lacks) = if let Some(closure) = closed {
        (true, vec![closure.words()])
    } else {
        let lacks = host.reasons.iter();
        let lacks = lacks.map(|reason| words_of_host(flow, &hostname, reason));
        (host.able, lacks.collect())
    };
    HostVerdict {
        hostname,
        could,
        lacks,
    }
}

pub(super) fn summary(flow: &ViewFlow, state: &JobState, explained: &JobExplanation) -> String {
    match &explained.state {
        EngineState::InFlight { host, .. } => {
            return format!("it is being assigned to host {host}");
        }
        EngineState::Running { host, .. } => return format!("host {host} has it"),
        EngineState::NotCached | EngineState::Waiting => {}
    }
    if let Some(reason) = explained.reasons.first() {
        return format!("it waits: {}", words_here(flow, reason));
    }
    if explained.hosts_able == 0 {
        return match explained.hosts_known {
            0 => "it waits: no host has asked for work yet".to_owned(),
            1 => format!(
                "it waits: the only known host cannot run it (it needs {})",
                state.host_keys.join(" or ")
            ),
            known => format!(
                "it waits: none of the {known} known hosts can run it (it needs {})",
                state.host_keys.join(" or ")
            ),
        };
    }
    if explained.hosts_ready > 0 {
        let asks = counted(
            explained.hosts_ready,
            "host asks for work and fits",
            "hosts ask for work and fit",
        );
        return format!("it is next: {asks}");
    }
    let able = counted(
        explained.hosts_able,
        "host can run it, but does not ask for work",
        "hosts can run it, but none asks for work",
    );
    format!("it waits for a free host: {able} with enough room now")
}

fn overtaken(explained: &JobExplanation) -> Option<String> {
    let many = explained.ahead.overtaken_by;
    (many > 0).then(|| format!(
        "{many} similar jobs that were submitted later went first: each replica prefers its own jobs, and lets at most {OVERTAKES_MAX} pass an earlier one",
    ))
}

pub(super) fn count(count: Count, one: &str, many: &str) -> String {
    if count.more {
        format!("more than {} {many}", count.counted)
    } else {
        counted(count.counted, one, many)
    }
}

pub(super) fn seen(last_seen: Millis) -> String {
    if last_seen.0 == 0 {
        "not asked since this replica started".to_owned()
    } else {
        format!("last asked at {}", utc_text(last_seen.0))
    }
}

/// The same as [`words`], with all that is known of a host that is kept for some.
fn words_of_host(flow: &ViewFlow, host: &str, reason: &Reason) -> String {
    let reserved = match reason {
        Reason::KeptFor { .. } => flow.placement.reserved(host),
        _ => None,
    };
    reserved.map_or_else(|| words(reason), |reservation| reservation.words())
}

/// The same as [`words`], with the numbers of a limit that only the replica knows.
fn words_here(flow: &ViewFlow, reason: &Reason) -> String {
    match reason {
        Reason::Spent { of } => flow.submission.words_of_spent(of),
        other => words(other),
    }
}

pub(super) fn words(reason: &Reason) -> String {
    match reason {
        Reason::FailedThere => {
            "an earlier attempt failed there, and the job avoids the host".to_owned()
        }
        Reason::KeptFor { accounts } => {
            format!("it is reserved for jobs of {}", accounts.join(", "))
        }
        Reason::MissingKey { wants } => format!("it does not offer {}", wants.join(" or ")),
        Reason::Arch { needs, has } => format!("the job needs arch {needs}; the host has {has}"),
        Reason::Memory {
            needs_mb,
            free_mb,
            total_mb,
        } if needs_mb > total_mb => {
            format!("the job needs {needs_mb} MB; the host has {total_mb} MB ({free_mb} MB free)")
        }
        Reason::Memory {
            needs_mb, free_mb, ..
        } => format!("the job needs {needs_mb} MB; {free_mb} MB are free"),
        Reason::Cpus { needs, free, total } if needs > total => {
            format!("the job needs {needs} CPUs; the host has {total} ({free} free)")
        }
        Reason::Cpus { needs, free, .. } => format!("the job needs {needs} CPUs; {free} are free"),
        Reason::Tags { missing } => format!("it lacks tags: {}", missing.join(", ")),
        Reason::AvoidedTags { has } => {
            format!("it has tags that the job avoids: {}", has.join(", "))
        }
        Reason::NoAlternative { has } => {
            format!(
                "it meets no alternative of any_of; its tags: {}",
                has.join(", ")
            )
        }
        Reason::Devices { missing } => format!("it lacks devices: {}", missing.join(", ")),
        Reason::BusyHw => "a whole-machine job shares no host, and this host has jobs".to_owned(),
        Reason::NotAsking { last_seen } => {
            format!("it does not ask for work now: {}", seen(*last_seen))
        }
        Reason::Loaded {
            memory_used_percent,
        } => words_of_load(*memory_used_percent),
        Reason::AllLoaded { until } => words_of_all_loaded(*until),
        Reason::ReservedFor(job) => format!("it is reserved for job {}", JobId::new(job.0)),
        Reason::RunningLimit { of, held, limit } => {
            SubmissionFlow::words_of_running(of, *held, *limit)
        }
        Reason::Spent { of } => match of {
            Limited::Account(name) => format!("account '{name}' has used up its testbox hours"),
            Limited::Queue(name) => format!("queue '{name}' has used up its testbox hours"),
        },
        Reason::QueuePaused => "its queue is paused".to_owned(),
        Reason::LabPaused => "the whole lab is paused".to_owned(),
        Reason::WaitingForAffinity { until } => words_of_affinity(*until),
        Reason::WaitingForStore { until } => words_of_silent_store(*until),
    }
}
