//! Reads the audit log.

use fairlead_api::{AuditEvent, AuditList, ErrorCode};
use fairlead_store::{EventFind, EventRecord};

use crate::dashboard::DashboardFlow;
use fairlead_base::errors::{Refusal, excerpt};
use fairlead_known::accounts::Who;

/// Acts that every account may see: they are about what all share.
const SHARED: [&str; 10] = [
    "clock.*",
    "data.*",
    "host.*",
    "invariant.*",
    "lab.*",
    "pool.*",
    "queue.*",
    "replica.*",
    "scaling.*",
    "store.*",
];
/// What happened to the lab: faults, losses, deploys, pauses and drains.
pub(crate) const INCIDENTS: [&str; 17] = [
    "clock.*",
    "data.*",
    "host.back",
    "host.cordon",
    "host.lost",
    "host.passed",
    "host.suspect",
    "host.uncordon",
    "invariant.*",
    "job.lost",
    "lab.*",
    "queue.pause",
    "queue.resume",
    "queue.set",
    "replica.*",
    "store.*",
    "webhook.dead",
];
/// Incidents are shown of so long unless something else is asked for, ms: a night.
pub(crate) const NIGHT_MS: u64 = 12 * 3_600_000;
/// Most entries of a page, and of one read.
const PAGE_MAX: u32 = 1_000;
/// Most reads for one page: of many entries of others a page may be short, and the next one goes on.
const READS_MAX: u32 = 10;

/// Which entries somebody asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditFind {
    pub(crate) find: EventFind,
    /// Where the page before ended; empty: from the newest on.
    pub(crate) after: String,
}

impl DashboardFlow {
    /// A page of the audit log: an admin sees all, others see their own acts and those on what all share.
    pub(crate) async fn audit_log(
        &self,
        who: &Who,
        asked: AuditFind,
    ) -> Result<AuditList, Refusal> {
        let mut find = asked.find;
        if !asked.after.is_empty() {
            (find.until_ms, find.skip) = place_of(&asked.after)?;
        }
        let wanted = usize::try_from(find.limit.clamp(1, PAGE_MAX)).unwrap_or(1);
        find.limit = PAGE_MAX;
        let mut shown = Vec::new();
        for _ in 0..READS_MAX {
            let read = self.ctx.store.read_events(&find).await?;
            let is_last = read.len() < usize::try_from(PAGE_MAX).unwrap_or(usize::MAX);
            for event in read {
                if shown.len() == wanted {
                    return Ok(page(shown, Some(&find)));
                }
                (find.until_ms, find.skip) = behind(&find, &event);
                if is_shown(who, &event) {
                    shown.push(view(event));
                }
            }
            if is_last {
                return Ok(page(shown, None));
            }
        }
        Ok(page(shown, Some(&find)))
    }
}

/// A page, and where the next one begins, if there is one.
fn page(events: Vec<AuditEvent>, next: Option<&EventFind>) -> AuditList {
    let next = next.map(|find| format!("{}-{}", find.until_ms.saturating_sub(1), find.skip));
    AuditList { events, next }
}

/// Where a search goes on behind an event: until its millisecond, without those of it that were read.
fn behind(find: &EventFind, event: &EventRecord) -> (u64, u32) {
    let until_ms = event.at_ms.saturating_add(1);
    let skip = if until_ms == find.until_ms {
        find.skip.saturating_add(1)
    } else {
        1
    };
    (until_ms, skip)
}

fn place_of(after: &str) -> Result<(u64, u32), Refusal> {
    let place = after.split_once('-').and_then(|(ms, skip)| {
        let ms: u64 = ms.parse().ok()?;
        Some((ms.checked_add(1)?, skip.parse().ok()?))
    });
    place.ok_or_else(|| {
        let message = format!("after: '{}' is no place in the audit log", excerpt(after));
        Refusal::new(ErrorCode::BadQuery, message, "send next of the page before")
    })
}

fn is_shown(who: &Who, event: &EventRecord) -> bool {
    let is_shared = |pattern: &str| event.what.starts_with(pattern.trim_end_matches('*'));
    who.acts_for_all() || event.who == who.name || SHARED.iter().any(|it| is_shared(it))
}

fn view(event: EventRecord) -> AuditEvent {
    AuditEvent {
        at_ms: event.at_ms,
        who: event.who,
        what: event.what,
        subject: event.subject,
        detail: event.detail,
    }
}
