//! Puts: chunks are pinned, sent where they are missing, and named by a manifest at the end.

use std::time::Duration;

use bytes::Bytes;
use fairlead_api::{ContentMissing, ContentPin, ContentView, MissingChunk};
use fairlead_content::{Digest, Owned, Pin};

use crate::{
    base::errors::{ContentFault, Refusal},
    content::reads::view,
    core::Core,
};

/// How long a put keeps its chunks: it must end within this time.
const PIN_MS: u64 = 24 * 3_600_000;
/// How long an address of a missing chunk can be used.
const URL_LASTS: Duration = Duration::from_hours(6);

/// Whose content it is, and for which job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) account: String,
    /// Empty: a person asks.
    pub(crate) job_id: String,
}

impl Core {
    /// Keeps chunks for a put, and says which must be sent, and where.
    pub(crate) async fn pin_chunks(&self, pin: &ContentPin) -> Result<ContentMissing, Refusal> {
        let chunks = digests(&pin.chunks)?;
        let until_ms = self.clock.wall_ms().saturating_add(PIN_MS);
        let kept = Pin {
            put: pin.put.clone(),
            until_ms,
            digests: chunks.iter().copied().collect(),
        };
        self.content.pin(&kept).await?;
        let mut missing = Vec::new();
        for chunk in self.content.missing(&chunks).await? {
            missing.push(MissingChunk {
                digest: chunk.to_string(),
                url: self.content.url_to_put(chunk, URL_LASTS).await?,
                headers: Vec::new(),
            });
        }
        Ok(ContentMissing { missing, until_ms })
    }

    /// Stores a chunk that came through this replica.
    pub(crate) async fn put_chunk(&self, digest: &str, bytes: Bytes) -> Result<(), Refusal> {
        let digest: Digest = digest.parse().map_err(ContentFault::from)?;
        Ok(self.content.put_chunk(digest, bytes).await?)
    }

    /// Ends a put: the account has this manifest from now on.
    pub(crate) async fn put_manifest(
        &self,
        holder: &Holder,
        name: &str,
        bytes: Bytes,
    ) -> Result<ContentView, Refusal> {
        let (id, about) = self.content.put_manifest(bytes).await?;
        let owned = Owned {
            name: name.to_owned(),
            put_ms: self.clock.wall_ms(),
            job_id: holder.job_id.clone(),
            keep_until_ms: 0,
            bytes: about.bytes,
        };
        self.content.own(&holder.account, id, &owned).await?;
        Ok(view(id, &holder.account, owned, &about))
    }
}

/// Digests of a request.
pub(super) fn digests(texts: &[String]) -> Result<Vec<Digest>, ContentFault> {
    let read: Result<Vec<Digest>, _> = texts.iter().map(|text| text.parse()).collect();
    Ok(read?)
}
