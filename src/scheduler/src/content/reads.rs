//! What people and jobs read: manifests, chunks, and what is known of them.

use std::time::Duration;

use bytes::Bytes;
use fairlead_api::{ContentList, ContentUrls, ContentUrlsRequest, ContentView};
use fairlead_content::{About, Digest, Owned};

use super::puts::{Holder, digests};
use crate::{
    base::errors::{ContentFault, Refusal},
    core::Core,
};

/// How long an address of a chunk can be used.
const URL_LASTS: Duration = Duration::from_hours(6);

impl Core {
    /// Refuses whoever has nothing under this id as if there were nothing. In an open lab everybody has all.
    async fn may_read_content(&self, holder: &Holder, id: Digest) -> Result<(), Refusal> {
        if !self.people.accounts.tokens_needed()
            || self.content.owned(&holder.account, id).await?.is_some()
        {
            return Ok(());
        }
        Err(ContentFault::Unknown(id).into())
    }

    /// A manifest, for who may read it.
    pub(crate) async fn manifest_of(&self, holder: &Holder, id: &str) -> Result<Bytes, Refusal> {
        let id: Digest = id.parse().map_err(ContentFault::from)?;
        self.may_read_content(holder, id).await?;
        let found = self.content.manifest(id).await?;
        Ok(found.ok_or(ContentFault::Unknown(id))?)
    }

    /// A chunk of a manifest, for who may read that.
    pub(crate) async fn chunk_of(
        &self,
        holder: &Holder,
        id: &str,
        digest: &str,
    ) -> Result<Bytes, Refusal> {
        let id: Digest = id.parse().map_err(ContentFault::from)?;
        let digest: Digest = digest.parse().map_err(ContentFault::from)?;
        self.may_read_content(holder, id).await?;
        let found = self.content.chunk(digest).await?;
        Ok(found.ok_or(ContentFault::NoChunk(digest))?)
    }

    /// From where to read chunks of a manifest.
    pub(crate) async fn chunk_urls(
        &self,
        holder: &Holder,
        request: &ContentUrlsRequest,
    ) -> Result<ContentUrls, Refusal> {
        let id: Digest = request.id.parse().map_err(ContentFault::from)?;
        self.may_read_content(holder, id).await?;
        let chunks = digests(&request.chunks)?;
        let mut urls = Vec::new();
        for chunk in chunks {
            urls.extend(self.content.url_to_get(chunk, URL_LASTS).await?);
        }
        let lasts_ms = u64::try_from(URL_LASTS.as_millis()).unwrap_or(0);
        let until_ms = if urls.is_empty() {
            0
        } else {
            self.clock.wall_ms().saturating_add(lasts_ms)
        };
        Ok(ContentUrls { urls, until_ms })
    }

    /// What an account has under an id.
    pub(crate) async fn content_view(
        &self,
        account: &str,
        id: &str,
    ) -> Result<ContentView, Refusal> {
        let id: Digest = id.parse().map_err(ContentFault::from)?;
        let owned = self.content.owned(account, id).await?;
        let owned = owned.ok_or(ContentFault::Unknown(id))?;
        let about = self.content.about(id).await?;
        Ok(view(
            id,
            account,
            owned,
            &about.ok_or(ContentFault::Unknown(id))?,
        ))
    }

    /// A page of what an account has.
    pub(crate) async fn contents_of(
        &self,
        account: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ContentList, Refusal> {
        let after = after
            .map(str::parse)
            .transpose()
            .map_err(ContentFault::from)?;
        let ids = self.content.ids_of(account, after, limit).await?;
        let next = ids
            .last()
            .filter(|_| ids.len() == limit)
            .map(Digest::to_string);
        let mut content = Vec::with_capacity(ids.len());
        for id in ids {
            match self.content_view(account, &id.to_string()).await {
                Ok(view) => content.push(view),
                // It went meanwhile.
                Err(Refusal::Content(ContentFault::Unknown(_))) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(ContentList { content, next })
    }
}

pub(super) fn view(id: Digest, account: &str, owned: Owned, about: &About) -> ContentView {
    ContentView {
        id: id.to_string(),
        name: owned.name,
        my_account: account.to_owned(),
        files: about.files,
        bytes: about.bytes,
        chunks: about.chunks,
        put_ms: owned.put_ms,
        job_id: owned.job_id,
        keep_until_ms: Some(owned.keep_until_ms).filter(|ms| *ms > 0),
    }
}
