//! Small documents with compare-and-set, and the audit events.

use fairlead_job::IdMaker;
use reqwest::Method;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json};

use super::{
    bulk::{How, Op},
    call::{Call, Failure},
    cluster::Cluster,
    gets::Part,
    indices::{Address, is_of, own_index},
    reply::{Found, Got},
};
use crate::{
    AT_MS, Doc, DocFind, DocKind, DocPage, DocWrite, DueDoc, EventRecord, Expect, ItemError,
    StoreError, Version, clock, codec,
};

/// Documents of one page of a list.
const LIST_PAGE: usize = 1_000;
/// Layout of small documents and events.
const FORMAT: u16 = 1;

/// Stored form of a small document.
#[derive(Debug, Deserialize)]
struct StoredDoc {
    id: String,
    body: Value,
}

/// Reads documents in real time, in order.
pub(super) async fn docs_by_id(
    cluster: &Cluster,
    kind: DocKind,
    ids: &[String],
) -> Result<Vec<Option<Doc>>, StoreError> {
    let got: Vec<Option<Got<StoredDoc>>> = docs_got(cluster, kind, ids, Part::Whole).await?;
    let read = got.into_iter().map(|got| {
        let got = got?;
        let version = got.version();
        got.source.map(|doc| Doc {
            id: doc.id,
            version,
            body: doc.body,
        })
    });
    Ok(read.collect())
}

/// Reads their versions in real time, in order.
pub(super) async fn versions_by_id(
    cluster: &Cluster,
    kind: DocKind,
    ids: &[String],
) -> Result<Vec<Option<Version>>, StoreError> {
    let got: Vec<Option<Got<IgnoredAny>>> = docs_got(cluster, kind, ids, Part::Version).await?;
    let found = |got: &Got<IgnoredAny>| got.found.then(|| got.version());
    Ok(got.iter().map(|got| found(got.as_ref()?)).collect())
}

/// Gets part of each document. An id that no document can have gets `None`.
async fn docs_got<S>(
    cluster: &Cluster,
    kind: DocKind,
    ids: &[String],
    part: Part,
) -> Result<Vec<Option<Got<S>>>, StoreError>
where
    S: DeserializeOwned + Send + 'static,
{
    let good = ids.iter().filter(|id| codec::is_doc_id(id));
    let names: Vec<Address> = good.map(|id| cluster.indices.doc(kind, id)).collect();
    let got = if names.is_empty() {
        Vec::new()
    } else {
        cluster.multi_get(&names, part).await?
    };
    let mut got = got.into_iter();
    let of = |id: &String| codec::is_doc_id(id).then(|| got.next()).flatten();
    Ok(ids.iter().map(of).collect())
}

/// Writes documents in order: a later write of a batch finds the result of an earlier one.
pub(super) async fn write_docs(
    cluster: &Cluster,
    kind: DocKind,
    writes: Vec<DocWrite>,
) -> Vec<Result<Version, ItemError>> {
    let now = clock::unix_ms();
    let made = writes.iter().map(|write| doc_op(cluster, kind, write, now));
    let how = How {
        is_repeatable: false,
        in_flight: 1,
    };
    let written = cluster.bulk_made(made.collect(), how).await.into_iter();
    written.map(|item| Ok(item?.version)).collect()
}

fn doc_op(cluster: &Cluster, kind: DocKind, write: &DocWrite, now: u64) -> Result<Op, ItemError> {
    let body = codec::encode_doc(write)?;
    let Address { index, id, .. } = cluster.indices.doc(kind, &write.id);
    let mut target = json!({"_index": index, "_id": id});
    if let Expect::Version(version) = write.expect {
        target["if_seq_no"] = json!(version.seq_no);
        target["if_primary_term"] = json!(version.primary_term.max(1));
    }
    let action = match (&body, write.expect) {
        (None, _) => "delete",
        (Some(_), Expect::Absent) => "create",
        (Some(_), Expect::Any | Expect::Version(_)) => "index",
    };
    let action = json!({action: target});
    let at = match codec::doc_at_ms(write) {
        0 => String::new(),
        at_ms => format!(",\"{AT_MS}\":{at_ms}"),
    };
    let kind = match own_index(kind) {
        Some(_) => String::new(),
        None => kind_field(kind),
    };
    let lines = match body {
        None => format!("{action}\n"),
        Some(body) => format!(
            "{action}\n{{{kind}\"id\":{},\"format\":{FORMAT},\"updated_ms\":{now}{at},\"body\":{body}}}\n",
            json!(write.id)
        ),
    };
    Ok(Op { index, lines })
}

/// Returns the field of a document that names its kind, with a comma behind it.
pub(super) fn kind_field(kind: DocKind) -> String {
    format!("\"kind\":\"{}\",", kind.as_str())
}

/// Returns all documents of a kind, by id.
pub(super) async fn read_docs(cluster: &Cluster, kind: DocKind) -> Result<Vec<Doc>, StoreError> {
    let index = cluster.indices.docs(kind);
    let mut docs: Vec<Doc> = Vec::new();
    loop {
        let mut body = json!({
            "size": LIST_PAGE, "track_total_hits": false, "seq_no_primary_term": true,
            "sort": [{"id": "asc"}], "query": {"bool": {"filter": [is_of(kind)]}},
        });
        if let Some(last) = docs.last() {
            body["search_after"] = json!([last.id]);
        }
        let found: Found = cluster.search_one(&index, &body).await?;
        let is_last = found.hits.hits.len() < LIST_PAGE;
        docs.extend(docs_of(found, &index)?);
        if is_last {
            return Ok(docs);
        }
    }
}

/// Returns a page by id, and the number of documents with the prefix.
pub(super) async fn docs_page(
    cluster: &Cluster,
    kind: DocKind,
    find: &DocFind,
) -> Result<DocPage, StoreError> {
    let index = cluster.indices.docs(kind);
    let mut body = json!({
        "size": find.limit.clamp(1, 1_000), "track_total_hits": true,
        "seq_no_primary_term": true, "sort": [{"id": "asc"}],
        "query": {"bool": {"filter": [
            is_of(kind), {"prefix": {"id": find.prefix}},
        ]}},
    });
    if !find.after.is_empty() {
        body["search_after"] = json!([find.after]);
    }
    let found: Found = cluster.search_one(&index, &body).await?;
    let total = found.hits.total.as_ref().map_or(0, |total| total.value);
    let docs = docs_of(found, &index)?;
    Ok(DocPage { docs, total })
}

/// Returns documents that must be looked at before `before_ms`, earliest first.
pub(super) async fn docs_due(
    cluster: &Cluster,
    kind: DocKind,
    before_ms: u64,
    limit: u32,
) -> Result<Vec<DueDoc>, StoreError> {
    let index = cluster.indices.docs(kind);
    // All from columns: nothing of the documents themselves is read.
    let body = json!({
        "size": limit.clamp(1, 10_000), "track_total_hits": false, "seq_no_primary_term": true,
        "_source": false, "stored_fields": "_none_", "docvalue_fields": ["id", AT_MS],
        "sort": [{AT_MS: "asc"}, {"id": "asc"}],
        "query": {"bool": {"filter": [
            is_of(kind), {"range": {AT_MS: {"gt": 0, "lt": before_ms}}},
        ]}},
    });
    let found: Found = cluster.search_one(&index, &body).await?;
    let due = found.hits.hits.into_iter().filter_map(|hit| {
        let field = |name| hit.fields.get(name)?.as_array()?.first();
        Some(DueDoc {
            id: field("id")?.as_str()?.to_owned(),
            version: hit.version(),
            at_ms: field(AT_MS)?.as_u64()?,
        })
    });
    Ok(due.collect())
}

/// Appends events. Elasticsearch generates their ids, because nothing refers to them.
pub(super) async fn write_events(
    cluster: &Cluster,
    events: Vec<EventRecord>,
) -> Result<(), StoreError> {
    let ops: Vec<Op> = events
        .into_iter()
        .map(|event| {
            // An id's month is the month of its second.
            let month = IdMaker::new(0, 0).next(event.at_ms / 1_000).month();
            let index = cluster.indices.events(&month);
            let document = json!({
                "format": FORMAT, "at_ms": event.at_ms, "who": event.who, "what": event.what,
                "subject": event.subject, "detail": event.detail,
            });
            Op {
                lines: format!("{}\n{document}\n", json!({"create": {"_index": index}})),
                index,
            }
        })
        .collect();
    let how = How {
        is_repeatable: false,
        in_flight: 2,
    };
    let results = cluster.bulk(&ops, how).await;
    match results.into_iter().find_map(Result::err) {
        None => Ok(()),
        Some(ItemError::Refused { reason }) => Err(StoreError::Refused { reason }),
        Some(error) => Err(StoreError::Unavailable {
            reason: error.to_string(),
        }),
    }
}

/// Returns the clock of the answering node, UTC epoch ms. A search reports the time that it used for *now*, if there
/// is an index.
pub(super) async fn node_ms(cluster: &Cluster) -> Result<Option<u64>, StoreError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Now {
        now: Ranges,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Ranges {
        buckets: Vec<Range>,
    }
    #[derive(Deserialize)]
    struct Range {
        from_as_string: String,
    }
    // No document has that field.
    let from_now = json!({"date_range": {
        "field": "now", "format": "epoch_millis", "ranges": [{"from": "now"}],
    }});
    let body = json!({"size": 0, "track_total_hits": false, "aggs": {"now": from_now}});
    let index = cluster.indices.docs(DocKind::Replica);
    let found: Found<Now> = cluster.search_one(&index, &body).await?;
    let said = found.aggregations.now.buckets.first();
    Ok(said.and_then(|range| range.from_as_string.parse().ok()))
}

/// Makes all writes visible to searches.
pub(super) async fn refresh_all(cluster: &Cluster) -> Result<(), StoreError> {
    let docs: Vec<String> = cluster.indices.all_docs().into_iter().collect();
    let (jobs, events) = (cluster.indices.all_jobs(), cluster.indices.all_events());
    refresh(cluster, &format!("{jobs},{events},{}", docs.join(","))).await
}

/// Makes all writes of indices visible to searches.
pub(super) async fn refresh(cluster: &Cluster, indices: &str) -> Result<(), StoreError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Refreshed {
        #[serde(rename = "_shards")]
        shards: super::reply::Shards,
    }
    let path = format!("/{indices}/_refresh?ignore_unavailable=true");
    let body = cluster.call(&Call::write(Method::POST, path)).await;
    let body = body.map_err(Failure::of_read)?;
    let refreshed: Refreshed = super::reply::parse(body).await?;
    refreshed.shards.all_answered()
}

/// Returns the documents of an answer.
fn docs_of(found: Found, index: &str) -> Result<Vec<Doc>, StoreError> {
    let hits = found.hits.hits.into_iter();
    hits.map(|hit| {
        let version = hit.version();
        let doc = serde_json::from_str::<StoredDoc>(hit.source.get()).map_err(|error| {
            StoreError::Refused {
                reason: format!("a document of {index} cannot be read: {error}"),
            }
        })?;
        Ok(Doc {
            id: doc.id,
            version,
            body: doc.body,
        })
    })
    .collect()
}
