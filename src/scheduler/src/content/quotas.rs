//! Limits of accounts: what they keep, and what they put within a day. Chunks that no manifest names yet count, too.
//!
//! The sum of an account comes from its notes in the content store. It is remembered for a minute, with what came through
//! this replica since. So puts of the last minute at other replicas may exceed a limit.

use fairlead_content::Owned;

use crate::content::ContentFlow;
use fairlead_base::{
    budget::Identity,
    errors::{ContentFault, Refusal},
};
use fairlead_known::content::ContentUsed;

/// How long a sum is used, ms.
const SUM_MS: u64 = 60_000;
/// A day, ms.
const DAY_MS: u64 = 24 * 3_600_000;
/// Bytes of the unit of the limits.
const MB: u64 = 1 << 20;
/// Which sum a limit of a day is of, in words.
const OF_A_DAY: &str = " put within 24 hours";

impl ContentFlow {
    /// Refuses `more` bytes of a put that an account may not have.
    pub(super) async fn check_content_quota(
        &self,
        account: &str,
        put: &str,
        more: u64,
    ) -> Result<(), Refusal> {
        let limits = self.people.accounts.limits_of(account);
        let limits = (limits.content_mb.hard, limits.content_day_mb.hard);
        if limits == (None, None) {
            return Ok(());
        }
        let used = self.content_used(account).await?;
        let of = Identity::Account(account.to_owned());
        let (_, unnamed) = self.ctx.budget.chunks.of(&of, put);
        for (most_mb, present, when) in [(limits.0, used.kept, ""), (limits.1, used.day, OF_A_DAY)]
        {
            let Some(most_mb) = most_mb else { continue };
            let most = most_mb.saturating_mul(MB);
            let present = present.saturating_add(unnamed);
            // Whoever asks for nothing more asks whether there is any room.
            if present.saturating_add(more) > most || (more == 0 && present >= most) {
                return Err(ContentFault::OverQuota {
                    account: account.to_owned(),
                    present_mb: present.div_ceil(MB),
                    more_mb: more.div_ceil(MB),
                    most_mb,
                    when,
                }
                .into());
            }
        }
        Ok(())
    }

    /// An account puts so many bytes more here.
    pub(super) fn note_content(&self, account: &str, more: u64) {
        if let Some((_, used)) = self.known.used.lock().get_mut(account) {
            used.kept = used.kept.saturating_add(more);
            used.day = used.day.saturating_add(more);
        }
    }

    /// An account gave something up here: it is summed up anew.
    pub(super) fn forget_content_used(&self, account: &str) {
        self.known.used.lock().remove(account);
    }

    async fn content_used(&self, account: &str) -> Result<ContentUsed, Refusal> {
        let now = self.ctx.clock.now();
        let known = self.known.used.lock().get(account).copied();
        if let Some((_, used)) = known.filter(|(at, _)| now.0 < at.0.saturating_add(SUM_MS)) {
            return Ok(used);
        }
        let day_ms = self.ctx.clock.wall_ms().saturating_sub(DAY_MS);
        let all = self.ctx.content.all_of(account).await?;
        let sum = |owned: &mut dyn Iterator<Item = &Owned>| {
            owned.fold(0_u64, |sum, owned| sum.saturating_add(owned.bytes))
        };
        let owned = || all.iter().map(|(_, owned)| owned);
        let used = ContentUsed {
            kept: sum(&mut owned()),
            day: sum(&mut owned().filter(|owned| owned.put_ms >= day_ms)),
        };
        let mut known = self.known.used.lock();
        known.retain(|_, (at, _)| now.0 < at.0.saturating_add(SUM_MS));
        known.insert(account.to_owned(), (now, used));
        Ok(used)
    }
}
