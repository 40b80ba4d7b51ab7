//! Which accounts have what.

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, path::Path};
use percent_encoding::percent_decode_str;

use crate::{ContentError, ContentStore, Digest, Owned, names::OWNERS, store::ABREAST};

impl ContentStore {
    /// Returns the accounts that own something, sorted.
    pub async fn accounts(&self) -> Result<Vec<String>, ContentError> {
        let owners = Path::from(OWNERS);
        let found = self.objects.list_with_delimiter(Some(&owners)).await?;
        let folders = found.common_prefixes.iter();
        let mut accounts: Vec<String> = folders
            .filter_map(|folder| Some(folder.parts().next_back()?.as_ref().to_owned()))
            .map(|name| percent_decode_str(&name).decode_utf8_lossy().into_owned())
            .collect();
        accounts.sort_unstable();
        Ok(accounts)
    }

    /// Returns all that an account owns, sorted by id.
    pub async fn all_of(&self, account: &str) -> Result<Vec<(Digest, Owned)>, ContentError> {
        let ids = self.ids_of(account, None, usize::MAX).await?;
        let reads = stream::iter(ids).map(async |id| {
            let owned = self.owned(account, id).await?;
            Ok::<_, ContentError>(owned.map(|owned| (id, owned)))
        });
        reads
            .buffered(ABREAST)
            .try_filter_map(async |found| Ok(found))
            .try_collect()
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_that_each_account_has_is_found() {
        let store = ContentStore::in_memory();
        let id = |n: u8| Digest::from_bytes([n; 32]);
        let owned = |bytes| Owned {
            bytes,
            ..Owned::default()
        };
        for (account, n) in [("zoé~x", 1), ("ann", 2), ("ann", 1)] {
            store.own(account, id(n), &owned(n.into())).await.unwrap();
        }
        assert_eq!(store.accounts().await.unwrap(), ["ann", "zoé~x"]);
        let all = store.all_of("ann").await.unwrap();
        assert_eq!(all, [(id(1), owned(1)), (id(2), owned(2))]);
        assert_eq!(store.all_of("an").await.unwrap(), []);
    }
}
