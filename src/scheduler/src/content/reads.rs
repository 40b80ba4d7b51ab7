//! Reads of people and jobs: manifests, chunks, and what is known of them.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::{ContentList, ContentUrls, ContentUrlsRequest, ContentView};
use fairlead_content::{Digest, Manifest, ManifestError};

use crate::content::{
    ContentFlow,
    holder::Holder,
    wire::{URL_LASTS, digests, view},
};
use fairlead_base::errors::{ContentFault, Refusal};

/// What stands between the account and the id where a page of all accounts goes on.
const BETWEEN: char = '/';

impl ContentFlow {
    /// A manifest, for who may read it.
    pub(crate) async fn manifest_of(&self, holder: &Holder, id: &str) -> Result<Bytes, Refusal> {
        let id: Digest = id.parse().map_err(ContentFault::from)?;
        self.may_read_content(holder, id).await?;
        let found = self.ctx.content.manifest(id).await?;
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
        self.check_chunks(id, &[digest]).await?;
        let found = self.ctx.content.chunk(digest).await?;
        let bytes = found.ok_or(ContentFault::NoChunk(digest))?;
        let size = u64::try_from(bytes.len()).unwrap_or(0);
        self.ctx.metrics.content_read.inc_by(size);
        Ok(bytes)
    }

    /// From where to read chunks of a manifest.
    pub(crate) async fn chunk_urls(
        &self,
        holder: &Holder,
        request: &ContentUrlsRequest,
    ) -> Result<ContentUrls, Refusal> {
        let id: Digest = request.id.parse().map_err(ContentFault::from)?;
        let chunks = digests(&request.chunks)?;
        self.may_read_content(holder, id).await?;
        self.check_chunks(id, &chunks).await?;
        if !self.ctx.content.presigns() {
            return Ok(ContentUrls::default());
        }
        let mut urls = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            urls.extend(self.ctx.content.url_to_get(chunk, URL_LASTS).await?);
        }
        let lasts_ms = u64::try_from(URL_LASTS.as_millis()).unwrap_or(0);
        let until_ms = self.ctx.clock.wall_ms().saturating_add(lasts_ms);
        Ok(ContentUrls { urls, until_ms })
    }

    /// Refuses chunks that a manifest does not name.
    async fn check_chunks(&self, id: Digest, chunks: &[Digest]) -> Result<(), Refusal> {
        let set = self.chunk_set(id).await?;
        match chunks
            .iter()
            .find(|chunk| set.binary_search(chunk).is_err())
        {
            None => Ok(()),
            Some(chunk) => Err(ContentFault::NotOfIt { chunk: *chunk, id }.into()),
        }
    }

    /// The chunks of a manifest, sorted.
    async fn chunk_set(&self, id: Digest) -> Result<Arc<[Digest]>, Refusal> {
        if let Some(set) = self.known.sets.lock().get(id) {
            return Ok(set);
        }
        let bytes = self.ctx.content.manifest(id).await?;
        let bytes = bytes.ok_or(ContentFault::Unknown(id))?;
        // A large one takes a second.
        let read = tokio::task::spawn_blocking(move || {
            let manifest = Manifest::decode(&bytes)?;
            Ok::<Arc<[Digest]>, ManifestError>(manifest.digests().into_iter().collect())
        });
        let read = read.await.map_err(|error| {
            tracing::error!(%error, "a manifest could not be read");
            Refusal::Bug
        })?;
        let set = read.map_err(|error| ContentFault::Damaged(format!("manifest {id}: {error}")))?;
        let weight = size_of_val(&*set) + size_of::<Digest>();
        self.known.sets.lock().put(id, Arc::clone(&set), weight);
        Ok(set)
    }

    /// What an account has under an id.
    pub(crate) async fn content_view(
        &self,
        account: &str,
        id: &str,
    ) -> Result<ContentView, Refusal> {
        let id: Digest = id.parse().map_err(ContentFault::from)?;
        let found = self.view_of_content(account, id).await?;
        Ok(found.ok_or(ContentFault::Unknown(id))?)
    }

    async fn view_of_content(
        &self,
        account: &str,
        id: Digest,
    ) -> Result<Option<ContentView>, Refusal> {
        let Some(owned) = self.ctx.content.owned(account, id).await? else {
            return Ok(None);
        };
        let about = self.ctx.content.about(id).await?;
        Ok(about.map(|about| view(id, account, owned, &about)))
    }

    /// A page of what an account has.
    pub(crate) async fn contents_of(
        &self,
        account: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ContentList, Refusal> {
        let after = after.map(str::parse::<Digest>).transpose();
        let after = after.map_err(ContentFault::from)?;
        let ids = self.ctx.content.ids_of(account, after, limit).await?;
        let next = ids.last().filter(|_| ids.len() == limit);
        let next = next.map(Digest::to_string);
        let mut content = Vec::with_capacity(ids.len());
        for id in ids {
            // It may have gone meanwhile.
            content.extend(self.view_of_content(account, id).await?);
        }
        Ok(ContentList { content, next })
    }

    /// A page of what all accounts have.
    pub(crate) async fn contents_of_all(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ContentList, Refusal> {
        let (from, after) = match after {
            None => ("", None),
            Some(after) => after
                .split_once(BETWEEN)
                .map_or((after, None), |(account, id)| (account, Some(id))),
        };
        let mut list = ContentList::default();
        for account in self.ctx.content.accounts().await? {
            let room = limit.saturating_sub(list.content.len());
            if room == 0 {
                break;
            }
            let after = match account.as_str().cmp(from) {
                std::cmp::Ordering::Less => continue,
                std::cmp::Ordering::Equal => after,
                std::cmp::Ordering::Greater => None,
            };
            let page = self.contents_of(&account, after, room).await?;
            list.next = page.next.map(|id| format!("{account}{BETWEEN}{id}"));
            list.content.extend(page.content);
        }
        Ok(list)
    }
}
