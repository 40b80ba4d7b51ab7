//! Checks the lab's key without creating one, before a scheduler starts (`fairlead doctor`).

use fairlead_store::{JobStore, Search, StoreError};
use futures_util::future::BoxFuture;

use crate::{Config, StartError};
use fairlead_base::{keyring, storage::open::open_to_read};

/// How the key of a lab is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It is in the store.
    Good,
    /// There is none, and no job that could need one.
    None,
    /// There is none, though there are jobs.
    Lost {
        /// How many.
        jobs: u64,
    },
    /// What is in the store is no key.
    Unreadable,
}

/// Looks at the key of the lab that `config` names.
///
/// # Errors
/// The store cannot be opened or read.
pub fn look_at_key(config: &Config) -> BoxFuture<'_, Result<KeyState, StartError>> {
    Box::pin(async move {
        let store = open_to_read(config).await?;
        Ok(key_state(store.as_ref()).await?)
    })
}

async fn key_state(store: &dyn JobStore) -> Result<KeyState, StoreError> {
    match keyring::show(store).await {
        Err(StoreError::Unusable { .. }) => return Ok(KeyState::Unreadable),
        ring => {
            if ring?.newest_first().next().is_some() {
                return Ok(KeyState::Good);
            }
        }
    }
    let jobs = store.search(&Search::default()).await?.total;
    Ok(if jobs == 0 {
        KeyState::None
    } else {
        KeyState::Lost { jobs }
    })
}

#[cfg(test)]
mod tests {
    use fairlead_store::{DocKind, DocWrite, Expect};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{flows, state, store_job};

    #[tokio::test]
    async fn a_key_is_looked_at_and_never_made() {
        let (_data, flows) = flows().await;
        let store = flows.ctx.store.as_ref();
        let put = async |expect: Expect, body: Option<Value>| {
            let write = DocWrite {
                id: "sealing-key".to_owned(),
                expect,
                body,
            };
            store.put_docs(DocKind::Setting, vec![write]).await;
        };
        put(Expect::Any, None).await;
        assert_eq!(key_state(store).await.unwrap(), KeyState::None);
        store_job(&flows, state(7)).await;
        assert_eq!(key_state(store).await.unwrap(), KeyState::Lost { jobs: 1 });
        put(Expect::Any, Some(json!({"key": "zz"}))).await;
        assert_eq!(key_state(store).await.unwrap(), KeyState::Unreadable);
        put(Expect::Any, Some(json!({"key": "ab".repeat(32)}))).await;
        assert_eq!(key_state(store).await.unwrap(), KeyState::Good);
    }
}
