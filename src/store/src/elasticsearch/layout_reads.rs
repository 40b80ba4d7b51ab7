//! Reads where the bodies of each month are, and says where that of a job is.

use std::collections::BTreeMap;

use ::elasticsearch::http::Method;
use fairlead_job::JobId;
use serde::Deserialize;

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    layouts::Address,
    reply,
};
use crate::StoreError;

/// Ends the id of a body that is beside its state.
pub(super) const ENDING: &str = "-body";

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
        if let Some(known) = self.layouts.is_beside(&index) {
            return Ok(Some(known));
        }
        self.read_layouts(&index).await?;
        Ok(self.layouts.is_beside(&index))
    }

    /// Whether there is any month, as far as it is known.
    pub(super) fn has_months(&self) -> bool {
        !self.layouts.is_empty()
    }

    /// Whether an older version made this month, as far as it is known.
    pub(super) fn is_of_older_version(&self, month: JobId) -> bool {
        let word = self.layouts.of(&self.indices.jobs(month));
        word.is_some_and(|word| word.is_empty())
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
        let read = indices.into_iter();
        self.layouts
            .learn(read.map(|(index, read)| (index, read.mappings.meta.bodies)));
        Ok(())
    }
}
