//! Opens the store that the configuration names.

use std::sync::Arc;

use fairlead_content::{ContentStore, Location};
use fairlead_store::{ElasticStore, EmbeddedStore, JobStore};

use crate::{
    Config, StoreChoice, file_modes::private_folders, start_error::StartError,
    storage::lab_folder::refuse_embedded,
};

/// Opens the place of inputs and outputs.
pub fn open_content(config: &Config) -> Result<ContentStore, StartError> {
    let usual = || Location::Folder(config.data_dir.join("content"));
    let location = config.content.clone().unwrap_or_else(usual);
    location.open().map_err(|cause| StartError::Content {
        location: location.to_string(),
        cause: cause.to_string(),
    })
}

/// Opens the store of an existing lab for reading. Changes nothing.
pub async fn open_to_read(config: &Config) -> Result<Arc<dyn JobStore>, StartError> {
    Ok(match &config.store {
        StoreChoice::Embedded => {
            refuse_embedded(&config.data_dir)?;
            Arc::new(EmbeddedStore::open_to_read(&config.data_dir)?)
        }
        StoreChoice::Elasticsearch(elastic) => {
            Arc::new(ElasticStore::open_to_read(elastic.as_ref().clone()).await?)
        }
    })
}

/// Opens the store of an existing lab.
pub async fn open_existing(config: &Config) -> Result<Arc<dyn JobStore>, StartError> {
    drop(open_to_read(config).await?);
    open_store(config).await
}

/// Opens the store, and creates it if there is none. Used by commands that begin a lab.
pub async fn open_store(config: &Config) -> Result<Arc<dyn JobStore>, StartError> {
    let data = |cause| StartError::Data {
        path: config.data_dir.display().to_string(),
        cause,
    };
    private_folders(&config.data_dir).map_err(data)?;
    Ok(match &config.store {
        StoreChoice::Embedded => {
            refuse_embedded(&config.data_dir)?;
            Arc::new(EmbeddedStore::open(&config.data_dir)?)
        }
        StoreChoice::Elasticsearch(elastic) => {
            let mut elastic = elastic.as_ref().clone();
            elastic.documents_kept = config.cache_jobs_max;
            Arc::new(ElasticStore::open(elastic).await?)
        }
    })
}
