//! Moves the small documents of a lab of before into one index, once.
//!
//! A version of before had an index for each kind. The documents are copied into an index of a name of its own. One
//! request then deletes the old indices and gives the copy the name under which replicas look for documents. Elasticsearch
//! does that as a whole or not at all: a lab is in the old form or in the new one, and never in both.
//!
//! - A start that is killed leaves the old form. The next one copies again.
//! - Of two at once, the second finds no old index to delete, and its request fails as a whole.
//! - Nothing writes to the old indices meanwhile: they take no writes from before the copy on, also if a replica of before
//!   makes one of them again.
//! - Such a replica does not start: the template of documents has a newer format.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    bulk::{How, Op},
    call::{Call, Failure},
    cluster::Cluster,
    config::ElasticConfig,
    docs::{self, kind_field},
    reply::{self, Found},
    setup, start_error,
    templates::{self, Template},
    there::There,
};
use crate::{DocKind, StoreError, Version, clock};

/// Time after which a replica of an older version counts as dead. It renews its document every two seconds.
const SILENT: Duration = Duration::from_secs(6);
/// Interval at which their documents are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Documents of one page of a copy.
const PAGE: usize = 500;
/// Prefix of replica documents that reserve a number only.
const NUMBER: &str = "number-";
/// Advice when a move is refused.
const STOP_HINT: &str = "stop all replicas of the older version, and take a snapshot; then start this version, which \
    moves the small documents once ('Upgrade' in docs/install.md)";
const AGAIN_HINT: &str = "start again: the move goes on; see the log of Elasticsearch";
const RIGHT_HINT: &str = "start this version once as a user with the privileges manage on the prefix and \
    manage_index_templates: it moves the small documents once ('Upgrade' in docs/install.md)";

/// Returns the old indices of one kind each, from which the documents must be moved. Empty: the lab is new, or they
/// were moved.
pub(super) fn old_documents(cluster: &Cluster, there: &There) -> Vec<(DocKind, String)> {
    let old = cluster.indices.before();
    let old = old.filter(|(_, index)| there.indices.contains_key(index));
    let old: Vec<_> = old.collect();
    if old.is_empty() || !there.has(&cluster.indices.documents()) {
        return old;
    }
    // A replica of before that was away meanwhile may make one again, which takes no writes.
    let names: Vec<&str> = old.iter().map(|(_, index)| index.as_str()).collect();
    tracing::warn!(
        indices = names.join(","),
        "nobody reads these indices of an older version; delete them"
    );
    Vec::new()
}

/// Refuses a lab whose bodies have their own index: only much older versions read them.
pub(super) fn refuse_bodies_apart(cluster: &Cluster, there: &There) -> Result<(), StoreError> {
    let begin = cluster.indices.bodies();
    let begin = begin.trim_end_matches('*');
    let Some(index) = there.indices.keys().find(|index| index.starts_with(begin)) else {
        return Ok(());
    };
    Err(StoreError::Unusable {
        reason: format!("index {index} has bodies of jobs in a form that this version does not read"),
        hint: "let its jobs end with the version that made it, and delete it; or give another --index-prefix"
            .to_owned(),
    })
}

/// Refuses to read a lab whose documents are not moved yet.
pub(super) fn refuse_unmoved(cluster: &Cluster, there: &There) -> Result<(), StoreError> {
    refuse_bodies_apart(cluster, there)?;
    match old_documents(cluster, there).first() {
        None => Ok(()),
        Some((_, index)) => Err(StoreError::Unusable {
            reason: format!(
                "index {index} is of an older version, and its documents are not moved yet"
            ),
            hint: STOP_HINT.to_owned(),
        }),
    }
}

/// Moves all documents, and returns the new content of the cluster.
pub(super) async fn move_documents(
    cluster: &Cluster,
    config: &ElasticConfig,
    there: &There,
    wanted: &[Template],
    old: &[(DocKind, String)],
) -> Result<There, StoreError> {
    let moved = try_to_move(cluster, there, wanted, old).await;
    let there = There::read(cluster, config).await?;
    // Another replica may have moved them meanwhile: then what failed here does not matter.
    match moved {
        Err(error) if !there.has(&cluster.indices.documents()) => Err(error),
        Err(_) | Ok(()) => Ok(there),
    }
}

async fn try_to_move(
    cluster: &Cluster,
    there: &There,
    wanted: &[Template],
    old: &[(DocKind, String)],
) -> Result<(), StoreError> {
    refuse_live(cluster).await?;
    stop_writes(cluster, old).await?;
    templates::ensure(cluster, there, wanted).await?;
    let names: Vec<&str> = old.iter().map(|(_, index)| index.as_str()).collect();
    docs::refresh(cluster, &names.join(",")).await?;
    let copy = format!("{}{:016x}", cluster.indices.copies(), cluster.chance.next());
    setup::make_index(cluster, &copy).await?;
    let mut copied = 0;
    for (kind, from) in old {
        copied += copy_kind(cluster, *kind, from, &copy).await?;
    }
    docs::refresh(cluster, &copy).await?;
    let all = json!({"size": 0, "track_total_hits": true});
    let found: Found = cluster.search_one(&copy, &all).await?;
    let there = found.hits.total.map_or(0, |total| total.value);
    if there != copied {
        return Err(StoreError::Unavailable {
            reason: format!("{copied} documents were copied to {copy}, and {there} are there"),
        });
    }
    let documents = cluster.indices.documents();
    let removed = names
        .iter()
        .map(|index| json!({"remove_index": {"index": index}}));
    let added = json!({"add": {"index": copy, "alias": documents}});
    let actions: Vec<Value> = removed.chain([added]).collect();
    write(
        cluster,
        Method::POST,
        "/_aliases",
        &json!({"actions": actions}),
    )
    .await?;
    tracing::info!(
        documents = copied,
        index = copy,
        "the small documents are in one index now"
    );
    Ok(())
}

/// Document of a replica of an older version.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Replica {
    id: String,
    body: Named,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
    url: String,
}

/// Refuses while a replica of an older version lives: its document changes or appears.
async fn refuse_live(cluster: &Cluster) -> Result<(), StoreError> {
    let first = replicas(cluster).await?;
    let begun = clock::now();
    while !first.is_empty() && clock::now().duration_since(begun) < SILENT {
        clock::pause(LOOK_EVERY).await;
        let now = replicas(cluster).await?.into_iter();
        let lives = |(id, (version, _)): &(String, (Version, String))| {
            first.get(id).is_none_or(|(before, _)| before != version)
        };
        let live: Vec<String> = now.filter(lives).map(|(_, (_, told))| told).collect();
        if !live.is_empty() {
            return Err(StoreError::Unusable {
                reason: format!(
                    "replicas of an older version run on this lab: {}",
                    live.join(", ")
                ),
                hint: STOP_HINT.to_owned(),
            });
        }
    }
    Ok(())
}

/// Returns the documents of replicas by run, each with its version and the replica's description.
async fn replicas(cluster: &Cluster) -> Result<BTreeMap<String, (Version, String)>, StoreError> {
    let of_replicas = cluster.indices.before();
    let mut of_replicas = of_replicas.filter(|(kind, _)| *kind == DocKind::Replica);
    let Some((_, index)) = of_replicas.next() else {
        return Ok(BTreeMap::new());
    };
    docs::refresh(cluster, &index).await?;
    let search = json!({"size": PAGE, "track_total_hits": false, "seq_no_primary_term": true});
    let found: Found = cluster.search_one(&index, &search).await?;
    let each = found.hits.hits.into_iter().filter_map(|hit| {
        let replica: Replica = serde_json::from_str(hit.source.get()).ok()?;
        let told = format!("'{}' at {}", replica.body.name, replica.body.url);
        (!replica.id.starts_with(NUMBER)).then(|| (replica.id, (hit.version(), told)))
    });
    Ok(each.collect())
}

/// Stops writes to the old indices. Elasticsearch answers when all running writes are done. A template also blocks
/// writes to an index of such a name that is created later.
async fn stop_writes(cluster: &Cluster, old: &[(DocKind, String)]) -> Result<(), StoreError> {
    let before = cluster.indices.before().map(|(_, index)| index);
    let template = json!({
        "index_patterns": before.collect::<Vec<_>>(), "priority": 501,
        "_meta": {"description": "Indices of an older version, which take no writes."},
        "template": {"settings": {"index.blocks.write": true}},
    });
    let path = format!("/_index_template/{}-before", cluster.indices.prefix);
    write(cluster, Method::PUT, &path, &template).await?;
    let names: Vec<&str> = old.iter().map(|(_, index)| index.as_str()).collect();
    let path = format!("/{}/_block/write", names.join(","));
    write(cluster, Method::PUT, &path, &Value::Null).await
}

/// Copies the documents of a kind unchanged, and returns their number.
async fn copy_kind(
    cluster: &Cluster,
    kind: DocKind,
    from: &str,
    to: &str,
) -> Result<u64, StoreError> {
    let (mut last, mut copied) = (None, 0);
    loop {
        let mut search = json!({"size": PAGE, "track_total_hits": false, "sort": [{"id": "asc"}]});
        if let Some(last) = &last {
            search["search_after"] = json!([last]);
        }
        let page: Found = cluster.search_one(from, &search).await?;
        let hits = page.hits.hits;
        let ids = hits.iter().map(|hit| id_of(hit.source.get(), from));
        let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
        let ops = hits.iter().zip(&ids).map(|(hit, id)| {
            let id = cluster.indices.doc(kind, id).id;
            let action = json!({"index": {"_index": to, "_id": id}});
            let document = hit.source.get().trim_start().trim_start_matches('{');
            Op {
                index: to.to_owned(),
                lines: format!("{action}\n{{{}{document}\n", kind_field(kind)),
            }
        });
        let ops: Vec<Op> = ops.collect();
        let how = How {
            is_repeatable: true,
            in_flight: 1,
        };
        for written in cluster.bulk(&ops, how).await {
            written.map_err(|error| StoreError::Unavailable {
                reason: format!("a document of {from} was not copied: {error}"),
            })?;
            copied += 1;
        }
        last = ids.last().cloned();
        if ids.len() < PAGE {
            return Ok(copied);
        }
    }
}

fn id_of(document: &str, index: &str) -> Result<String, StoreError> {
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    let read: Result<Id, _> = serde_json::from_str(document);
    read.map(|read| read.id)
        .map_err(|error| StoreError::Refused {
            reason: format!("a document of {index} cannot be read: {error}"),
        })
}

/// Deletes unused copies of a start that was killed or came second. Called only after the move: until then a copy may
/// be under way.
pub(super) async fn clear_away(cluster: &Cluster, there: &There) {
    let (documents, copies) = (cluster.indices.documents(), cluster.indices.copies());
    let left = there.indices.keys();
    let left = left.filter(|index| index.starts_with(&copies) && !there.is_at(index, &documents));
    let left: Vec<&str> = left.map(String::as_str).collect();
    if left.is_empty() || !there.has(&documents) {
        return;
    }
    let path = format!("/{}?ignore_unavailable=true", left.join(","));
    match cluster.call(&Call::write(Method::DELETE, path)).await {
        // Another replica has deleted them just now.
        Ok(_) | Err(Failure::Status { status: 404, .. }) => {}
        Err(failure) => {
            let reason = failure.words();
            let indices = left.join(",");
            tracing::warn!(reason, indices, "these copies stay; delete them");
        }
    }
}

async fn write(
    cluster: &Cluster,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<(), StoreError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Done {
        acknowledged: bool,
    }
    let mut call = Call::write(method, path);
    if !body.is_null() {
        call = call.json(body);
    }
    let refused = |words: &str, hint: &str| StoreError::Unusable {
        reason: format!("the small documents cannot be moved: {words}"),
        hint: hint.to_owned(),
    };
    let done = cluster.call(&call).await.map_err(|failure| {
        let is_denied = start_error::is_denial(&failure);
        refused(
            failure.words(),
            if is_denied { RIGHT_HINT } else { AGAIN_HINT },
        )
    })?;
    let done: Done = reply::parse(done).await?;
    let words = format!("{path} was not acknowledged by all nodes in time");
    done.acknowledged
        .then_some(())
        .ok_or_else(|| refused(&words, AGAIN_HINT))
}
