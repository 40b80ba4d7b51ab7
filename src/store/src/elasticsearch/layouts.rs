//! Where the body of a job is: beside its state, or in an index of bodies.
//!
//! A body beside its state has the id of the job with an ending, and the routing of the job, so both are in one shard. A
//! submit is then one durable write. None of its fields is indexed. Months that an older version made keep their index of
//! bodies for as long as they live. The mapping of an index of states tells which of the two it is.
//!
//! An older version knows only bodies that are apart. So a lab that it used goes on with them for some months: until the
//! present month is one that this version made. Until then the older version may come back.

use std::collections::{BTreeMap, BTreeSet};

use ::elasticsearch::http::Method;
use fairlead_job::JobId;
use parking_lot::Mutex;
use serde::Deserialize;

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    reply, setup,
};
use crate::StoreError;

/// Ends the id of a body that is beside its state.
const ENDING: &str = "-body";
/// What a mapping says if the bodies are beside the states, and if this version made it and they are apart.
const BESIDE: &str = "beside";
pub(super) const APART: &str = "apart";

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) index: String,
    pub(super) id: String,
    /// Where it is no other than the id: none.
    pub(super) routing: Option<String>,
}

impl Address {
    pub(super) fn new(index: String, id: String) -> Self {
        Self {
            index,
            id,
            routing: None,
        }
    }
}

/// What the mapping of each known index of states says of bodies. That never changes.
#[derive(Debug, Default)]
pub(super) struct Layouts(Mutex<BTreeMap<String, String>>);

impl Layouts {
    fn of(&self, index: &str) -> Option<String> {
        self.0.lock().get(index).cloned()
    }
}

impl Cluster {
    /// Where the body of a job is in its month.
    pub(super) fn body_of(&self, id: JobId, is_beside: bool) -> Address {
        if is_beside {
            Address {
                index: self.indices.jobs(id),
                id: format!("{id}{ENDING}"),
                routing: Some(id.to_string()),
            }
        } else {
            Address::new(self.indices.bodies(id), id.to_string())
        }
    }

    /// Reads where the bodies of all months are.
    pub(super) async fn learn_layouts(&self) -> Result<(), StoreError> {
        self.read_layouts(&self.indices.all_jobs()).await
    }

    /// Whether the bodies of a job's month are beside the states; `None`: there is no such month.
    pub(super) async fn is_beside(&self, id: JobId) -> Result<Option<bool>, StoreError> {
        let index = self.indices.jobs(id);
        let known = || self.layouts.0.lock().get(&index).map(|word| word == BESIDE);
        if known().is_none() {
            self.read_layouts(&index).await?;
        }
        Ok(known())
    }

    /// Whether an older version made this month, as far as it is known.
    pub(super) fn is_of_older_version(&self, month: JobId) -> bool {
        let word = self.layouts.of(&self.indices.jobs(month));
        word.is_some_and(|word| word.is_empty())
    }

    /// The same, for a job that is created now: makes its month if there is none.
    pub(super) async fn will_be_beside(&self, id: JobId) -> Result<bool, StoreError> {
        if let Some(known) = self.is_beside(id).await? {
            return Ok(known);
        }
        let index = self.indices.jobs(id);
        setup::make_indices(self, BTreeSet::from([index])).await?;
        Ok(self.is_beside(id).await?.unwrap_or(false))
    }

    async fn read_layouts(&self, indices: &str) -> Result<(), StoreError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Index {
            mappings: Mappings,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Mappings {
            #[serde(rename = "_meta")]
            meta: Meta,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Meta {
            bodies: String,
        }
        // The settings name each index, also one whose mapping says nothing.
        let path = format!("/{indices}?filter_path=*.mappings._meta,*.settings.index.uuid");
        let body = match self.call(&Call::read(Method::Get, path)).await {
            Err(Failure::Status { status: 404, .. }) => return Ok(()),
            answer => answer.map_err(Failure::of_read)?,
        };
        let indices: BTreeMap<String, Index> = reply::parse(body).await?;
        let mut known = self.layouts.0.lock();
        for (index, Index { mappings }) in indices {
            known.insert(index, mappings.meta.bodies);
        }
        Ok(())
    }
}
