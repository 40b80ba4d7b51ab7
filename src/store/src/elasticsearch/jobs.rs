//! Jobs by id: read, compare-and-set.

use std::sync::Arc;

use fairlead_job::{JobId, Spec, Stage};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    body_cache::StoredBody,
    bulk::{How, Op, Written},
    cluster::Cluster,
    document_cache::DocumentCache,
    documents,
    gets::Part,
    indices::Address,
    reply::{self, Got},
};
use crate::{
    ItemError, Patch, StoreError, StoredJob, Version,
    codec::{self, refused},
};

/// States asked for in one request.
const GET_STATES: usize = 1_000;
/// Bodies asked for in one request; they are larger.
const GET_BODIES: usize = 100;
/// Patches are sent once each, because the result of a compare-and-set is unknown after another try.
const PATCHES: How = How {
    is_repeatable: false,
    in_flight: 3,
};

/// Reads states in real time.
pub(super) async fn get_states(
    cluster: &Cluster,
    ids: &[JobId],
) -> Result<Vec<Option<StoredJob>>, StoreError> {
    let mut jobs = Vec::with_capacity(ids.len());
    for ids in ids.chunks(GET_STATES) {
        let names: Vec<Address> = ids.iter().map(|id| cluster.indices.state(*id)).collect();
        let got: Vec<Got<Box<RawValue>>> = cluster.multi_get(&names, Part::Whole).await?;
        let ids = ids.to_vec();
        let read = reply::aside(move || {
            let each = ids.into_iter().zip(got);
            each.map(|(id, got)| read_state(id, got)).collect()
        });
        let read: Result<Vec<Option<StoredJob>>, StoreError> = read.await?;
        jobs.extend(read?);
    }
    Ok(jobs)
}

/// Reads bodies in real time, with their versions.
pub(super) async fn get_job_bodies(
    cluster: &Cluster,
    ids: &[JobId],
) -> Result<Vec<Option<(Spec, Version)>>, StoreError> {
    let mut bodies = Vec::with_capacity(ids.len());
    for ids in ids.chunks(GET_BODIES) {
        let names: Vec<Address> = ids.iter().map(|id| cluster.indices.body(*id)).collect();
        let got: Vec<Got<StoredBody>> = cluster.multi_get(&names, Part::Whole).await?;
        bodies.extend(got.into_iter().map(|got| {
            let version = got.version();
            got.source.map(|source| (source.body, version))
        }));
    }
    Ok(bodies)
}

/// Compare-and-set of states: bulks of writes, each with its expected version. A cached document is written whole.
pub(super) async fn patch_jobs(
    cluster: &Cluster,
    cache: &DocumentCache,
    patches: &[Patch],
) -> Vec<Result<Version, ItemError>> {
    let (written, known) = write(cluster, cache, patches, Part::Version).await;
    let each = patches.iter().zip(written).zip(known);
    let keep = |((patch, written), known): ((&Patch, Result<Written, _>), Option<String>)| {
        let version = written?.version;
        if let Some(document) = &known {
            keep_on(cache, patch, version, document);
        }
        Ok(version)
    };
    each.map(keep).collect()
}

/// Same as [`patch_jobs`], but returns the resulting states.
pub(super) async fn patch_and_read(
    cluster: &Cluster,
    cache: &Arc<DocumentCache>,
    patches: Vec<Patch>,
) -> Vec<Result<StoredJob, ItemError>> {
    let (written, known) = write(cluster, cache, &patches, Part::Whole).await;
    let unread = |reason: String| ItemError::Unknown { reason };
    let (cache, count) = (Arc::clone(cache), patches.len());
    let read = move || {
        let read = |patch: &Patch, written: Written, known: Option<String>| {
            let source = match (&known, &written.source) {
                (Some(known), _) => known,
                (None, Some(source)) => source.get(),
                (None, None) => return Err(unread("no state was answered".to_owned())),
            };
            let state = documents::state_of(source).map_err(unread)?;
            let version = written.version;
            keep_on(&cache, patch, version, source);
            Ok(StoredJob { state, version })
        };
        let each = patches.iter().zip(written).zip(known);
        each.map(|((patch, written), known)| read(patch, written?, known))
            .collect()
    };
    match reply::aside(read).await {
        Ok(jobs) => jobs,
        Err(error) => vec![Err(unread(error.to_string())); count],
    }
}

/// Writes patches. The second list has the whole documents that were written, if they were cached.
async fn write(
    cluster: &Cluster,
    cache: &DocumentCache,
    patches: &[Patch],
    part: Part,
) -> (Vec<Result<Written, ItemError>>, Vec<Option<String>>) {
    let known: Vec<_> = patches.iter().map(|patch| cache.patched(patch)).collect();
    let mut ops = Vec::with_capacity(patches.len());
    for (patch, known) in patches.iter().zip(&known) {
        ops.push(if let Some(whole) = known {
            Ok(replace(cluster, patch, whole))
        } else {
            let cell = cell_of(cluster, patch).await;
            cell.and_then(|cell| update(cluster, patch, cell, part))
        });
    }
    (cluster.bulk_made(ops, PATCHES).await, known)
}

/// Caches the document of a job that has not ended, for its next patch.
fn keep_on(cache: &DocumentCache, patch: &Patch, version: Version, document: &str) {
    let stage = patch.set.fields().get("stage").map(Stage::deserialize);
    if !stage.is_some_and(|stage| stage.is_ok_and(Stage::is_terminal)) {
        cache.keep(patch.id, version, document);
    }
}

/// Replaces the whole document at the expected version.
fn replace(cluster: &Cluster, patch: &Patch, document: &str) -> Op {
    let index = cluster.indices.jobs(patch.id);
    let lines = format!("{}\n{document}\n", json!({"index": at(&index, patch)}));
    Op { index, lines }
}

fn update(
    cluster: &Cluster,
    patch: &Patch,
    cell: Option<Value>,
    part: Part,
) -> Result<Op, ItemError> {
    let id = patch.id;
    codec::check_id(id).map_err(|_| ItemError::Missing)?;
    let mut fields = documents::to_stored(patch.set.fields().clone());
    if fields.get("job_id").is_some_and(|new| *new != json!(id)) {
        return Err(refused(format!(
            "a patch cannot change job {id} into another"
        )));
    }
    if let Some(cell) = cell {
        fields.insert(documents::CELL.to_owned(), cell);
    }
    let index = cluster.indices.jobs(id);
    // Without `detect_noop` an update that changes nothing is a write too, acknowledged by all copies.
    let mut body = json!({"doc": fields, "detect_noop": false});
    if let Part::Whole = part {
        body["_source"] = json!(true);
    }
    let lines = format!("{}\n{body}\n", json!({"update": at(&index, patch)}));
    Ok(Op { index, lines })
}

/// Returns the new `cell` of a patch that changes queue or account. If it names only one of them (a move by a person:
/// rare), the other one is read.
async fn cell_of(cluster: &Cluster, patch: &Patch) -> Result<Option<Value>, ItemError> {
    let fields = patch.set.fields();
    let named = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
    match (named("queue"), named("account")) {
        (None, None) => Ok(None),
        (Some(queue), Some(account)) => Ok(Some(documents::cell(&queue, &account))),
        (queue, account) => match get_states(cluster, &[patch.id]).await {
            Ok(mut read) => read.pop().flatten().map_or(Err(ItemError::Missing), |job| {
                let queue = queue.unwrap_or(job.state.queue);
                let account = account.unwrap_or(job.state.account);
                Ok(Some(documents::cell(&queue, &account)))
            }),
            Err(error) => Err(ItemError::NotTaken {
                reason: error.to_string(),
            }),
        },
    }
}

/// Returns the address of a patch and its expected version.
fn at(index: &str, patch: &Patch) -> Value {
    json!({
        "_index": index, "_id": patch.id.to_string(),
        "if_seq_no": patch.expect.seq_no, "if_primary_term": patch.expect.primary_term.max(1),
    })
}

fn read_state(id: JobId, got: Got<Box<RawValue>>) -> Result<Option<StoredJob>, StoreError> {
    let version = got.version();
    let state = got.source.map(|source| documents::state_of(source.get()));
    let state = state.transpose().map_err(|reason| StoreError::Refused {
        reason: format!("job {id} cannot be read: {reason}"),
    })?;
    Ok(state.map(|state| StoredJob { state, version }))
}
