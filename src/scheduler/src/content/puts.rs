//! Puts: chunks are pinned, sent where they are missing, and named by a manifest at the end.

use bytes::Bytes;
use fairlead_api::{ContentKeep, ContentMissing, ContentPin, ContentView, MissingChunk};
use fairlead_content::{Digest, Owned, Pin};
use fairlead_job::When;
use serde_json::json;

use crate::content::{
    ContentFlow,
    holder::Holder,
    wire::{URL_LASTS, check_name, check_put, digests, view},
};
use fairlead_base::{
    budget::Identity,
    clock::utc_text,
    errors::{ContentFault, Refusal, excerpt},
};

/// What a digest takes in a pin, bytes.
const DIGEST_BYTES: u64 = 67;
/// How long a put keeps its chunks: it must end within this time.
const PIN_MS: u64 = 24 * 3_600_000;
/// How far ahead content may be kept whatever jobs do, days.
const KEEP_DAYS_MAX: u64 = 366;
/// The same, ms.
const KEEP_MAX_MS: u64 = KEEP_DAYS_MAX * 24 * 3_600_000;

impl ContentFlow {
    /// Keeps chunks for a put, and says which must be sent, and where.
    pub(crate) async fn pin_chunks(
        &self,
        holder: &Holder,
        pin: &ContentPin,
    ) -> Result<ContentMissing, Refusal> {
        check_put(&pin.put)?;
        let chunks = digests(&pin.chunks)?;
        self.check_content_quota(&holder.account, &pin.put, 0)
            .await?;
        let account = Identity::Account(holder.account.clone());
        let bytes = DIGEST_BYTES.saturating_mul(u64::try_from(chunks.len()).unwrap_or(u64::MAX));
        let pins = &self.ctx.budget.pins;
        pins.add(&account, &pin.put, bytes, self.ctx.clock.now().0)?;
        let until_ms = self.ctx.clock.wall_ms().saturating_add(PIN_MS);
        let kept = Pin {
            put: word_of(&holder.account, &pin.put),
            until_ms,
            digests: chunks.iter().copied().collect(),
        };
        self.ctx.content.pin(&kept).await?;
        let headers = self.ctx.content.headers_to_put().iter();
        let headers: Vec<(String, String)> = headers
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut missing = Vec::new();
        for chunk in self.ctx.content.missing(&chunks).await? {
            let url = self.ctx.content.url_to_put(chunk, URL_LASTS).await?;
            missing.push(MissingChunk {
                digest: chunk.to_string(),
                headers: if url.is_some() {
                    headers.clone()
                } else {
                    Vec::new()
                },
                url,
            });
        }
        Ok(ContentMissing { missing, until_ms })
    }

    /// Stores a chunk of a put that came through this replica. It counts as the account's until a manifest names it, or for
    /// a day.
    pub(crate) async fn put_chunk(
        &self,
        holder: &Holder,
        put: &str,
        digest: &str,
        bytes: Bytes,
    ) -> Result<(), Refusal> {
        let digest: Digest = digest.parse().map_err(ContentFault::from)?;
        let size = u64::try_from(bytes.len()).unwrap_or(0);
        let is_new = !self.ctx.content.missing(&[digest]).await?.is_empty();
        let (account, now) = (
            Identity::Account(holder.account.clone()),
            self.ctx.clock.now(),
        );
        let chunks = &self.ctx.budget.chunks;
        if is_new {
            let (sent, _) = chunks.of(&account, put);
            let then = sent.saturating_add(size);
            self.check_content_quota(&holder.account, put, then).await?;
            chunks.add(&account, put, size, now.0)?;
        }
        if let Err(refused) = self.ctx.content.put_chunk(digest, bytes).await {
            if is_new {
                chunks.shrink(&account, put, size);
            }
            return Err(refused.into());
        }
        self.ctx.metrics.content_put.inc_by(size);
        Ok(())
    }

    /// Ends a put: the account has this manifest from now on. Putting it again keeps what was said of it before.
    pub(crate) async fn put_manifest(
        &self,
        holder: &Holder,
        (put, name): (&str, &str),
        bytes: Bytes,
    ) -> Result<ContentView, Refusal> {
        check_name(name)?;
        let (id, about) = self.ctx.content.read_manifest(&bytes).await?;
        let (account, of) = (&holder.account, Identity::Account(holder.account.clone()));
        let before = self.ctx.content.owned(account, id).await?;
        if before.is_none() {
            self.check_content_quota(account, put, about.bytes).await?;
        }
        self.ctx.content.put_manifest(bytes).await?;
        if before.is_none() {
            self.note_content(account, about.bytes);
        }
        self.ctx.budget.chunks.shrink(&of, put, about.bytes);
        let before = before.unwrap_or_default();
        let said = |new: &str, before: String| {
            if new.is_empty() {
                before
            } else {
                new.to_owned()
            }
        };
        let owned = Owned {
            name: said(name, before.name),
            put_ms: self.ctx.clock.wall_ms(),
            job_id: said(&holder.job_id, before.job_id),
            keep_until_ms: before.keep_until_ms,
            bytes: about.bytes,
        };
        self.ctx.content.own(&holder.account, id, &owned).await?;
        if !put.is_empty() {
            // The manifest and its own pin protect the chunks from here on.
            self.ctx
                .content
                .unpin(&word_of(&holder.account, put))
                .await?;
            self.ctx.budget.pins.end(&of, put);
        }
        Ok(view(id, &holder.account, owned, &about))
    }

    /// Keeps what an account has under an id until a time, or no longer than jobs name it.
    pub(crate) async fn keep_content(
        &self,
        account: &str,
        id: &str,
        keep: &ContentKeep,
    ) -> Result<ContentView, Refusal> {
        let id: Digest = id.parse().map_err(ContentFault::from)?;
        let keep_until_ms = kept_until(&keep.until, self.ctx.clock.wall_ms())?;
        let owned = self.ctx.content.owned(account, id).await?;
        let owned = Owned {
            keep_until_ms,
            ..owned.ok_or(ContentFault::Unknown(id))?
        };
        let about = self.ctx.content.about(id).await?;
        let about = about.ok_or(ContentFault::Unknown(id))?;
        self.ctx.content.own(account, id, &owned).await?;
        Ok(view(id, account, owned, &about))
    }

    /// An account gives up what it has under an id.
    pub(crate) async fn forget_content(&self, account: &str, id: &str) -> Result<(), Refusal> {
        let id: Digest = id.parse().map_err(ContentFault::from)?;
        if self.ctx.content.owned(account, id).await?.is_none() {
            return Err(ContentFault::Unknown(id).into());
        }
        self.ctx.content.disown(account, id).await?;
        self.forget_content_used(account);
        Ok(())
    }
}

/// The word of a put in the content store: each account has its own words.
fn word_of(account: &str, put: &str) -> String {
    let text = json!([account, put]).to_string();
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// UTC epoch ms; 0: no such time.
fn kept_until(until: &str, now_ms: u64) -> Result<u64, ContentFault> {
    if until.is_empty() {
        return Ok(0);
    }
    let when = When::parse(until).ok_or_else(|| ContentFault::BadTime(excerpt(until)))?;
    let until_ms = when.moment_ms(now_ms);
    if until_ms <= now_ms || until_ms > now_ms.saturating_add(KEEP_MAX_MS) {
        let (until, days_max) = (utc_text(until_ms), KEEP_DAYS_MAX);
        return Err(ContentFault::BadUntil { until, days_max });
    }
    Ok(until_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_kept_for_a_year_at_most() {
        let now_ms = 1_700_000_000_000;
        assert_eq!(kept_until("", now_ms), Ok(0));
        assert_eq!(kept_until("+1h", now_ms), Ok(now_ms + 3_600_000));
        for (bad, is_time) in [("soon", false), ("+367d", true), ("2020-01-01", true)] {
            let refused = kept_until(bad, now_ms).unwrap_err();
            let said = matches!(refused, ContentFault::BadUntil { .. });
            assert_eq!(said, is_time, "{bad}: {refused}");
        }
    }
}
