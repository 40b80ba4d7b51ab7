//! Documents by index and id, in real time.

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    indices::Address,
    reply::{self, Got, Multi},
};
use crate::StoreError;

/// Part of the documents that is returned.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Whole,
    /// Only existence and version.
    Version,
}

impl Cluster {
    /// Gets documents by index and id, in real time, in the order of `names`. Missing documents have no source.
    pub(super) async fn multi_get<S>(
        &self,
        names: &[Address],
        part: Part,
    ) -> Result<Vec<Got<S>>, StoreError>
    where
        S: DeserializeOwned + Send + 'static,
    {
        let docs: Vec<Value> = names
            .iter()
            .map(|Address { index, id, routing }| match routing {
                Some(routing) => json!({"_index": index, "_id": id, "routing": routing}),
                None => json!({"_index": index, "_id": id}),
            })
            .collect();
        let path = match part {
            Part::Whole => {
                "/_mget?filter_path=docs.found,docs._source,docs._seq_no,docs._primary_term,docs.error"
            }
            Part::Version => {
                "/_mget?_source=false&filter_path=docs.found,docs._seq_no,docs._primary_term,docs.error"
            }
        };
        let call = Call::read(Method::POST, path).json(&json!({"docs": docs}));
        let body = self.call(&call).await.map_err(Failure::of_read)?;
        let mut reply: Multi<S> = reply::parse(body).await?;
        if reply.docs.len() != names.len() {
            return Err(StoreError::Refused {
                reason: format!(
                    "{} documents were asked for, {} answered",
                    names.len(),
                    reply.docs.len()
                ),
            });
        }
        for got in &mut reply.docs {
            match &got.error {
                Some(cause) if cause.kind != "index_not_found_exception" => {
                    return Err(StoreError::Unavailable {
                        reason: cause.in_words(),
                    });
                }
                _ if !got.found => got.source = None,
                _ => {}
            }
        }
        Ok(reply.docs)
    }
}
