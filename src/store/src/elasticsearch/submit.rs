//! Submits: two documents per job, acknowledged only when both are stored.
//!
//! Both are `create`, in one bulk. So a repeated submit completes a half-written job and never makes a second one.
//! Documents that already exist are compared, as a whole, with those that were sent.

use std::collections::HashMap;

use fairlead_job::{JobId, Spec};

use super::{
    body_cache::BodyCache,
    bulk::{How, Op},
    cluster::Cluster,
    document_cache::DocumentCache,
    documents, jobs,
};
use crate::{
    ItemError, JobState, NewJob, StoreError, StoredJob, Version,
    codec::{self, refused},
};

/// The result of one item.
type Item = Result<Version, ItemError>;

/// A job with its two writes, and what became of them.
#[derive(Debug)]
struct Sent<'j> {
    number: usize,
    job: &'j NewJob,
    ops: [Op; 2],
    state: Item,
    body: Item,
}

/// What is stored of a job.
type Stored = (Option<StoredJob>, Option<(Spec, Version)>);

/// Creates jobs; the results are in their order.
pub(super) async fn submit_jobs(
    cluster: &Cluster,
    kept: &DocumentCache,
    bodies: &BodyCache,
    jobs: Vec<NewJob>,
) -> Vec<Item> {
    let firsts = first_of_each_id(&jobs);
    let mut results: Vec<Option<Item>> = jobs.iter().map(|_| None).collect();
    let (mut sent, mut ops) = (Vec::new(), Vec::new());
    for (number, (job, first)) in jobs.iter().zip(&firsts).enumerate() {
        if *first != number {
            continue;
        }
        match pair(cluster, job) {
            Ok(pair) => {
                ops.extend(pair);
                sent.push((number, job));
            }
            Err(error) => set(&mut results, number, Err(error)),
        }
    }
    let how = How {
        is_repeatable: true,
        in_flight: 3,
    };
    let halves = cluster.bulk(&ops, how).await;
    let mut conflicts = Vec::new();
    let each = sent.into_iter().zip(ops.chunks(2)).zip(halves.chunks(2));
    for (((number, job), ops), halves) in each {
        let ([state_op, body_op], [state, body]) = (ops, halves) else {
            continue;
        };
        let (state, body) = (state.clone(), body.clone());
        if is_conflict(&state) || is_conflict(&body) {
            conflicts.push(Sent {
                number,
                job,
                ops: [state_op.clone(), body_op.clone()],
                state,
                body,
            });
        } else {
            let id = job.state.job_id;
            let result = join_halves(cluster, id, state, body).await;
            if let (Ok(version), true) = (&result, job.state.ready) {
                kept.keep(id, *version, document(state_op));
                bodies.keep(id, document(body_op));
            }
            set(&mut results, number, result);
        }
    }
    for (number, result) in settle_conflicts(cluster, conflicts).await {
        set(&mut results, number, result);
    }
    share_repeats(&jobs, &firsts, &results)
}

fn pair(cluster: &Cluster, job: &NewJob) -> Result<[Op; 2], ItemError> {
    let id = job.state.job_id;
    let text = codec::encode_job(job)?;
    let state = documents::state_document(&job.state, &text.state).map_err(refused)?;
    let (format, body) = (JobState::FORMAT, text.body);
    let create = |index: &str| format!(r#"{{"create":{{"_index":"{index}","_id":"{id}"}}}}"#);
    let (jobs, bodies) = (cluster.indices.jobs(id), cluster.indices.bodies(id));
    Ok([
        Op {
            lines: format!("{}\n{state}\n", create(&jobs)),
            index: jobs,
        },
        Op {
            lines: format!(
                "{}\n{{\"job_id\":\"{id}\",\"format\":{format},\"body\":{body}}}\n",
                create(&bodies)
            ),
            index: bodies,
        },
    ])
}

/// The result of a job of which no half existed.
async fn join_halves(cluster: &Cluster, id: JobId, state: Item, body: Item) -> Item {
    match (state, body) {
        (Ok(version), Ok(_)) => Ok(version),
        // Refused for what it holds: do not leave the other half behind.
        (Err(ItemError::Refused { reason }), other)
        | (other, Err(ItemError::Refused { reason })) => {
            if let Ok(version) = other {
                take_back(cluster, id, version).await;
            }
            Err(refused(reason))
        }
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => Err(unknown(format!(
            "only one document of the job is stored: {error}"
        ))),
        (Err(ItemError::NotTaken { reason }), Err(ItemError::NotTaken { .. })) => {
            Err(ItemError::NotTaken { reason })
        }
        (Err(error), Err(_)) => Err(unknown(error.to_string())),
    }
}

async fn take_back(cluster: &Cluster, id: JobId, version: Version) {
    let delete = |index: String| Op {
        lines: format!(
            "{{\"delete\":{{\"_index\":\"{index}\",\"_id\":\"{id}\",\"if_seq_no\":{},\"if_primary_term\":{}}}}}\n",
            version.seq_no, version.primary_term
        ),
        index,
    };
    // Only the half of this very version goes: of the other one there is nothing.
    let halves = [
        delete(cluster.indices.jobs(id)),
        delete(cluster.indices.bodies(id)),
    ];
    let results = cluster.bulk(&halves, ONCE).await;
    if !results.iter().any(Result::is_ok) {
        tracing::warn!(job_id = %id, "one document of a refused job remains in the store");
    }
}

/// Jobs of which a half existed. When both halves are equal to what was sent, they are ours, sent
/// twice. To see a write is no proof that it stays: halves that were only seen are written once more.
async fn settle_conflicts(cluster: &Cluster, conflicts: Vec<Sent<'_>>) -> Vec<(usize, Item)> {
    let stored = match read_halves(cluster, &conflicts).await {
        Ok(stored) => stored,
        Err(error) => {
            let error = unknown(error.to_string());
            let all = conflicts.iter();
            return all.map(|sent| (sent.number, Err(error.clone()))).collect();
        }
    };
    let mut results = Vec::with_capacity(conflicts.len());
    let (mut ours, mut again) = (Vec::new(), Vec::new());
    for (sent, stored) in conflicts.into_iter().zip(stored) {
        match compare(&sent, stored) {
            Err(error) => results.push((sent.number, Err(error))),
            Ok(versions) => {
                let id = sent.job.state.job_id;
                let [state, body] = &sent.ops;
                again.push(rewrite(state, id, versions[0]));
                again.push(rewrite(body, id, versions[1]));
                ours.push(sent.number);
            }
        }
    }
    let mut written = cluster.bulk(&again, ONCE).await.into_iter();
    for number in ours {
        let result = match (written.next(), written.next()) {
            (Some(Ok(version)), Some(Ok(_))) => Ok(version),
            (Some(Err(error)), _) | (_, Some(Err(error))) => {
                Err(unknown(format!("an equal job is stored, but: {error}")))
            }
            _ => Err(unknown("no answer".to_owned())),
        };
        results.push((number, result));
    }
    results
}

async fn read_halves(cluster: &Cluster, conflicts: &[Sent<'_>]) -> Result<Vec<Stored>, StoreError> {
    let ids: Vec<JobId> = conflicts.iter().map(|sent| sent.job.state.job_id).collect();
    let states = jobs::get_states(cluster, &ids).await?;
    let bodies = jobs::get_job_bodies(cluster, &ids).await?;
    Ok(states.into_iter().zip(bodies).collect())
}

/// Sent once; nothing but a certain refusal is tried again.
const ONCE: How = How {
    is_repeatable: false,
    in_flight: 1,
};

fn unknown(reason: String) -> ItemError {
    ItemError::Unknown { reason }
}

fn is_conflict(half: &Item) -> bool {
    matches!(half, Err(ItemError::Conflict { .. }))
}

fn set(results: &mut [Option<Item>], number: usize, result: Item) {
    if let Some(slot) = results.get_mut(number) {
        *slot = Some(result);
    }
}

/// The versions of both halves when they are what was sent.
fn compare(sent: &Sent<'_>, stored: Stored) -> Result<[Version; 2], ItemError> {
    let (Some(state), Some((body, body_version))) = stored else {
        let halves = [&sent.state, &sent.body];
        let other = halves.into_iter().find(|half| !is_conflict(half));
        let why = other.and_then(|half| half.as_ref().err());
        return Err(unknown(match why {
            Some(error) => format!("only one document of the job is stored: {error}"),
            None => "only one document of the job is stored".to_owned(),
        }));
    };
    if state.state == sent.job.state && body == *sent.job.body {
        Ok([state.version, body_version])
    } else {
        Err(ItemError::Conflict { current: None })
    }
}

/// The same document again, over the version that was read.
fn rewrite(op: &Op, id: JobId, at: Version) -> Op {
    let document = document(op);
    Op {
        index: op.index.clone(),
        lines: format!(
            "{{\"index\":{{\"_index\":\"{}\",\"_id\":\"{id}\",\"if_seq_no\":{},\"if_primary_term\":{}}}}}\n{document}\n",
            op.index, at.seq_no, at.primary_term
        ),
    }
}

/// What is written, without the line that says where.
fn document(op: &Op) -> &str {
    let rest = op.lines.split_once('\n').map_or("", |(_, rest)| rest);
    rest.trim_end()
}

/// For each job the number of the first one with its id.
fn first_of_each_id(jobs: &[NewJob]) -> Vec<usize> {
    let mut firsts = HashMap::with_capacity(jobs.len());
    jobs.iter()
        .enumerate()
        .map(|(number, job)| *firsts.entry(job.state.job_id).or_insert(number))
        .collect()
}

/// The same id twice in one batch: the same job shares the result of the first, another one conflicts.
fn share_repeats(jobs: &[NewJob], firsts: &[usize], results: &[Option<Item>]) -> Vec<Item> {
    let not_sent = || Err(unknown("the job was not sent".to_owned()));
    let each = jobs.iter().zip(firsts).zip(results);
    each.map(|((job, first), result)| match result {
        Some(result) => result.clone(),
        None if jobs.get(*first) == Some(job) => {
            let shared = results.get(*first).cloned().flatten();
            shared.unwrap_or_else(not_sent)
        }
        None => Err(ItemError::Conflict { current: None }),
    })
    .collect()
}
