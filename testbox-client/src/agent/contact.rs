//! Whether a scheduler can be reached, and since when not.

use std::time::Duration;

use fairlead_api::ClientError;
use tokio::time::Instant;

use crate::{AgentEvent, event::Events, timer::Backoff};

/// Until a scheduler has said otherwise.
const LEASE_DEFAULT: Duration = Duration::from_mins(1);
const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(10);
/// What a scheduler may say without hurting us.
const HEARTBEAT_MIN: Duration = Duration::from_millis(20);
const LEASE_MIN: Duration = Duration::from_millis(100);

/// The state of the line.
#[derive(Debug)]
pub(crate) struct Contact {
    events: Events,
    /// Whether any scheduler has answered yet.
    pub(crate) ever: bool,
    lost: bool,
    /// When the last request that was answered well was sent: leases are renewed from then on.
    pub(crate) last: Option<Instant>,
    pub(crate) lease: Duration,
    pub(crate) heartbeat: Duration,
    /// Before the next request for work, after a bad answer.
    pub(crate) ask_backoff: Backoff,
    /// Before the next request for work, while another agent has the host.
    pub(crate) conflict_backoff: Backoff,
    /// Before the next heartbeat, after a bad answer.
    pub(crate) beat_backoff: Backoff,
}

impl Contact {
    pub(crate) fn new(events: Events) -> Self {
        Self {
            events,
            ever: false,
            lost: false,
            last: None,
            lease: LEASE_DEFAULT,
            heartbeat: HEARTBEAT_DEFAULT,
            ask_backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(5)),
            conflict_backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(10)),
            beat_backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(2)),
        }
    }

    /// A request that was sent at `sent` was answered well by `url`.
    pub(crate) fn answered(&mut self, url: &str, sent: Instant, lease_ms: u64, heartbeat_ms: u64) {
        if !self.ever || self.lost {
            tracing::info!(url, "a scheduler answers");
            self.events.send(AgentEvent::Connected {
                url: url.to_owned(),
            });
        }
        self.ever = true;
        self.lost = false;
        self.last = self.last.max(Some(sent));
        self.lease = Duration::from_millis(lease_ms).max(LEASE_MIN);
        self.heartbeat = Duration::from_millis(heartbeat_ms).clamp(HEARTBEAT_MIN, self.lease);
    }

    /// A request failed.
    pub(crate) fn failed(&mut self, error: &ClientError) {
        if error.status().is_some() {
            // Somebody is there.
            tracing::warn!(%error, "a scheduler refuses");
            return;
        }
        if !self.lost {
            tracing::warn!(%error, "no scheduler answers, carrying on");
            self.events.send(AgentEvent::Lost {
                cause: error.to_string(),
            });
        }
        self.lost = true;
    }

    /// How long without contact a job that must not run unknown to its scheduler goes on: the rest of
    /// the lease is for its polite end.
    pub(crate) fn cut_off_patience(&self) -> Duration {
        self.lease * 2 / 3
    }

    /// How long such a job may take to end.
    pub(crate) fn cut_off_grace(&self, grace: Duration) -> Duration {
        grace.min(self.lease / 6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losing_contact_is_told_once_and_so_is_its_return() {
        let (sender, mut events) = tokio::sync::mpsc::channel(8);
        let mut contact = Contact::new(Events(Some(sender)));
        let lost = ClientError::OutcomeUnknown {
            url: "u".to_owned(),
            cause: "c".to_owned(),
        };
        contact.failed(&lost);
        contact.failed(&lost);
        let now = Instant::now();
        contact.answered("u", now, 6000, 1000);
        contact.answered("u", now, 6000, 0);
        assert!(matches!(events.try_recv(), Ok(AgentEvent::Lost { .. })));
        assert!(matches!(
            events.try_recv(),
            Ok(AgentEvent::Connected { .. })
        ));
        assert!(events.try_recv().is_err());
        assert_eq!(contact.heartbeat, HEARTBEAT_MIN);
        let whole = contact.cut_off_patience() + contact.cut_off_grace(Duration::from_mins(1));
        assert!(whole < contact.lease);
    }
}
