//! A lab as a start finds it: its templates, and its indices with their fields and aliases. Two reads tell all of it.

use std::collections::BTreeMap;

use futures_util::future::try_join;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    config::ElasticConfig,
    reply, start_error,
};
use crate::StoreError;

/// Present state of a lab in Elasticsearch.
#[derive(Debug, Default)]
pub(super) struct There {
    pub(super) templates: BTreeMap<String, Stored>,
    pub(super) indices: BTreeMap<String, Index>,
}

/// Relevant parts of a template.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stored {
    pub(super) version: u64,
    #[serde(rename = "_meta")]
    pub(super) meta: Meta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    pub(super) format: u64,
}

/// An index.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Index {
    pub(super) mappings: Mappings,
    aliases: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Mappings {
    pub(super) properties: Value,
}

impl There {
    /// Reads the present state.
    pub(super) async fn read(
        cluster: &Cluster,
        config: &ElasticConfig,
    ) -> Result<Self, StoreError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Templates {
            index_templates: Vec<Named>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Named {
            name: String,
            index_template: Stored,
        }
        let both = try_join(read_templates(cluster), read_indices(cluster)).await;
        let unusable = |failure| start_error::unusable(failure, config);
        let (templates, indices) = both.map_err(unusable)?;
        let templates: Templates = reply::parse(templates).await?;
        let templates = templates.index_templates.into_iter();
        Ok(Self {
            templates: templates
                .map(|named| (named.name, named.index_template))
                .collect(),
            indices: reply::parse(indices).await?,
        })
    }

    /// Returns true if there is an index or an alias of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.indices.contains_key(name) || self.indices.keys().any(|index| self.is_at(index, name))
    }

    /// Returns true if a name is an alias of an index.
    pub(super) fn is_at(&self, index: &str, name: &str) -> bool {
        let index = self.indices.get(index);
        index.is_some_and(|index| index.aliases.contains_key(name))
    }
}

/// Reads the templates whose names begin with the prefix. Those of another lab may be among them.
async fn read_templates(cluster: &Cluster) -> Result<bytes::Bytes, Failure> {
    let path = format!(
        "/_index_template/{}-*?filter_path=index_templates.name,\
        index_templates.index_template.version,index_templates.index_template._meta.format",
        cluster.indices.prefix
    );
    answer(cluster, path).await
}

/// Reads the indices of the lab, and those of older versions.
async fn read_indices(cluster: &Cluster) -> Result<bytes::Bytes, Failure> {
    // The settings name each index, also one without fields or aliases.
    let path = format!(
        "/{}?ignore_unavailable=true&allow_no_indices=true\
        &filter_path=*.mappings.properties,*.aliases,*.settings.index.uuid",
        cluster.indices.all().join(",")
    );
    answer(cluster, path).await
}

/// Returns the answer to a read. A 404 counts as an empty answer.
async fn answer(cluster: &Cluster, path: String) -> Result<bytes::Bytes, Failure> {
    match cluster.call(&Call::read(Method::GET, path)).await {
        Err(Failure::Status { status: 404, .. }) => Ok(bytes::Bytes::from_static(b"{}")),
        answer => answer,
    }
}
