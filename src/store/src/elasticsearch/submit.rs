//! Submits: two documents per job, acknowledged only when both are stored.
//!
//! Both are `create`, in one bulk and in one shard. So a repeated submit completes a half-written job and never makes
//! a second one. Documents that already exist are compared, as a whole, with those that were sent.

use std::collections::HashMap;

use fairlead_job::{JobId, Spec};
use serde_json::{Value, json};

use super::{
    body_cache::BodyCache,
    bulk::{How, Op},
    cluster::Cluster,
    document_cache::DocumentCache,
    documents,
    indices::Address,
    jobs, setup,
};
use crate::{
    Created, ItemError, NewJob, StoreError, StoredJob, Version,
    codec::{self, refused},
};

/// The result of one item.
type Item = Result<Created, ItemError>;
/// Result of one of its two writes.
type Half = Result<Version, ItemError>;

/// Job with its two writes, of the body and of the state, and their results.
#[derive(Debug)]
struct Sent<'j> {
    number: usize,
    job: &'j NewJob,
    ops: [&'j Op; 2],
    halves: [Half; 2],
}

/// Stored documents of a job.
type Stored = (Option<StoredJob>, Option<(Spec, Version)>);

/// Creates jobs. The results are in their order.
pub(super) async fn submit_jobs(
    cluster: &Cluster,
    kept: &DocumentCache,
    bodies: &BodyCache,
    jobs: Vec<NewJob>,
) -> Vec<Item> {
    setup::make_ahead(cluster).await;
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
        let ([body_op, state_op], [body, state]) = (ops, halves) else {
            continue;
        };
        let sent = Sent {
            number,
            job,
            ops: [body_op, state_op],
            halves: [body.clone(), state.clone()],
        };
        if sent.halves.iter().any(is_conflict) {
            conflicts.push(sent);
        } else {
            let id = job.state.job_id;
            let result = sent.join_halves(cluster).await;
            if let (Ok(created), true) = (&result, job.state.ready) {
                kept.keep(id, created.version, document(state_op));
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

/// Returns the writes of a job's body and state, in this order. A state is then never stored before its body.
fn pair(cluster: &Cluster, job: &NewJob) -> Result<[Op; 2], ItemError> {
    let id = job.state.job_id;
    let text = codec::encode_job(job)?;
    let state = documents::state_document(&job.state, &text.state).map_err(refused)?;
    let body = format!(r#"{{"body":{}}}"#, text.body);
    let indices = &cluster.indices;
    Ok([
        create(indices.body(id), &body),
        create(indices.state(id), &state),
    ])
}

fn create(at: Address, document: &str) -> Op {
    let Address { index, id, routing } = at;
    let routing = routing.map_or_else(String::new, |routing| format!(r#","routing":"{routing}""#));
    let lines = format!(
        "{{\"create\":{{\"_index\":\"{index}\",\"_id\":\"{id}\"{routing}}}}}\n{document}\n"
    );
    Op { index, lines }
}

/// Returns another action on the document that an op creates, at this version, and perhaps with a document.
fn again(create: &Op, action: &str, at: Version, document: Option<&str>) -> Op {
    let line = create.lines.lines().next().unwrap_or_default();
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    let mut target = line["create"].clone();
    target["if_seq_no"] = json!(at.seq_no);
    target["if_primary_term"] = json!(at.primary_term);
    let document = document.map_or_else(String::new, |document| format!("{document}\n"));
    Op {
        index: create.index.clone(),
        lines: format!("{}\n{document}", json!({action: target})),
    }
}

impl Sent<'_> {
    /// Returns the result of a stored job, with its halves at these versions.
    fn created([body, version]: [Version; 2]) -> Created {
        let body = Some(body);
        Created { version, body }
    }

    /// Returns the result of a job of which no half existed.
    async fn join_halves(&self, cluster: &Cluster) -> Item {
        let [body, state] = self.halves.clone();
        match (body, state) {
            (Ok(body), Ok(version)) => Ok(Self::created([body, version])),
            // Refused for what it holds: do not leave the other half behind.
            (Err(ItemError::Refused { reason }), other)
            | (other, Err(ItemError::Refused { reason })) => {
                if let Ok(version) = other {
                    self.take_back(cluster, version).await;
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

    async fn take_back(&self, cluster: &Cluster, version: Version) {
        // Only the half of this very version goes: of the other one there is nothing.
        let halves = self.ops.map(|op| again(op, "delete", version, None));
        let results = cluster.bulk(&halves, ONCE).await;
        if !results.iter().any(Result::is_ok) {
            let id = self.job.state.job_id;
            tracing::warn!(job_id = %id, "one document of a refused job remains in the store");
        }
    }
}

/// Settles jobs of which a half existed. If both halves equal the sent ones, the job was sent twice and succeeds. A
/// write that was only read may still be lost, so it is written once more.
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
    let (mut ours, mut ops) = (Vec::new(), Vec::new());
    for (sent, stored) in conflicts.into_iter().zip(stored) {
        match compare(&sent, stored) {
            Err(error) => results.push((sent.number, Err(error))),
            Ok(versions) => {
                let each = sent.ops.iter().zip(versions);
                ops.extend(each.map(|(op, at)| again(op, "index", at, Some(document(op)))));
                ours.push(sent);
            }
        }
    }
    let mut written = cluster.bulk(&ops, ONCE).await.into_iter();
    for sent in ours {
        let result = match (written.next(), written.next()) {
            (Some(Ok(body)), Some(Ok(version))) => Ok(Sent::created([body, version])),
            (Some(Err(error)), _) | (_, Some(Err(error))) => {
                Err(unknown(format!("an equal job is stored, but: {error}")))
            }
            _ => Err(unknown("no answer".to_owned())),
        };
        results.push((sent.number, result));
    }
    results
}

async fn read_halves(cluster: &Cluster, conflicts: &[Sent<'_>]) -> Result<Vec<Stored>, StoreError> {
    let ids: Vec<JobId> = conflicts.iter().map(|sent| sent.job.state.job_id).collect();
    let states = jobs::get_states(cluster, &ids).await?;
    let bodies = jobs::get_job_bodies(cluster, &ids).await?;
    Ok(states.into_iter().zip(bodies).collect())
}

/// Sends each write once. Only a certain refusal is tried again.
const ONCE: How = How {
    is_repeatable: false,
    in_flight: 1,
};

fn unknown(reason: String) -> ItemError {
    ItemError::Unknown { reason }
}

fn is_conflict(half: &Half) -> bool {
    matches!(half, Err(ItemError::Conflict { .. }))
}

fn set(results: &mut [Option<Item>], number: usize, result: Item) {
    if let Some(slot) = results.get_mut(number) {
        *slot = Some(result);
    }
}

/// Returns the versions of both halves if they equal the sent ones.
fn compare(sent: &Sent<'_>, stored: Stored) -> Result<[Version; 2], ItemError> {
    let (Some(state), Some((body, body_version))) = stored else {
        let other = sent.halves.iter().find(|half| !is_conflict(half));
        let why = other.and_then(|half| half.as_ref().err());
        return Err(unknown(match why {
            Some(error) => format!("only one document of the job is stored: {error}"),
            None => "only one document of the job is stored".to_owned(),
        }));
    };
    if state.state == sent.job.state && body == *sent.job.body {
        Ok([body_version, state.version])
    } else {
        Err(ItemError::Conflict { current: None })
    }
}

/// Returns the document of a write, without the line of its address.
fn document(op: &Op) -> &str {
    let rest = op.lines.split_once('\n').map_or("", |(_, rest)| rest);
    rest.trim_end()
}

/// Returns for each job the number of the first one with its id.
fn first_of_each_id(jobs: &[NewJob]) -> Vec<usize> {
    let mut firsts = HashMap::with_capacity(jobs.len());
    jobs.iter()
        .enumerate()
        .map(|(number, job)| *firsts.entry(job.state.job_id).or_insert(number))
        .collect()
}

/// Returns the results for ids that occur twice in one batch. An equal job shares the first result, a different one
/// conflicts.
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
