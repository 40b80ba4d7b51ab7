//! Contact with the schedulers: whether one can be reached, and since when none could.

use std::time::Duration;

use super::host::Time;

/// Lease until a scheduler has set one.
const LEASE_DEFAULT: Duration = Duration::from_mins(1);
const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(10);
/// Lower limit of the heartbeat interval that a scheduler may set.
const HEARTBEAT_MIN: Duration = Duration::from_millis(20);
const LEASE_MIN: Duration = Duration::from_millis(100);

/// State of the contact with schedulers.
#[derive(Debug)]
pub(super) struct Contact {
    /// True if any scheduler has answered yet.
    pub(super) ever: bool,
    lost: bool,
    /// Send time of the last successful request. Leases are renewed from then on.
    pub(super) last: Option<Time>,
    pub(super) lease: Duration,
    pub(super) heartbeat: Duration,
}

impl Contact {
    pub(super) fn new() -> Self {
        Self {
            ever: false,
            lost: false,
            last: None,
            lease: LEASE_DEFAULT,
            heartbeat: HEARTBEAT_DEFAULT,
        }
    }

    /// Notes that a request sent at `sent` was answered. Returns true if the contact is new.
    pub(super) fn answered(&mut self, sent: Time, lease_ms: u64, heartbeat_ms: u64) -> bool {
        let is_news = !self.ever || self.lost;
        self.ever = true;
        self.lost = false;
        self.last = self.last.max(Some(sent));
        self.lease = Duration::from_millis(lease_ms).max(LEASE_MIN);
        self.heartbeat = Duration::from_millis(heartbeat_ms).clamp(HEARTBEAT_MIN, self.lease);
        is_news
    }

    /// Notes that a request got no answer. Returns true if the contact was just lost.
    pub(super) fn failed(&mut self) -> bool {
        !std::mem::replace(&mut self.lost, true)
    }

    /// Returns the time without contact after which jobs are stopped that must not run unknown to their scheduler. The
    /// rest of the lease is for their graceful end.
    pub(super) fn cut_off_patience(&self) -> Duration {
        self.lease * 2 / 3
    }

    /// Returns the grace period of such a job.
    pub(super) fn cut_off_grace(&self, grace: Duration) -> Duration {
        grace.min(self.lease / 6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losing_contact_is_told_once_and_so_is_its_return() {
        let mut contact = Contact::new();
        assert!(contact.failed() && !contact.failed());
        assert!(contact.answered(Time::ZERO, 6000, 1000));
        assert!(!contact.answered(Time::ZERO, 6000, 0));
        assert_eq!(contact.heartbeat, HEARTBEAT_MIN);
        let whole = contact.cut_off_patience() + contact.cut_off_grace(Duration::from_mins(1));
        assert!(whole < contact.lease);
    }
}
