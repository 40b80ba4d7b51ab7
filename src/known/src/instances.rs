//! Instances of agents: the last one heard under each host's name, and those that were refused.

use dashmap::DashMap;
use fairlead_dispatch::Millis;

/// After so many heartbeats that did not come another instance may have the host.
pub const MISSED_BEATS: u64 = 2;

/// Sessions of one host that are remembered.
pub const SESSIONS_MAX: usize = 4;

/// How long a host shows that another instance was refused, ms: longer than that one's pauses.
pub const SHOWN_MS: u64 = 60_000;

/// When a session of a host was heard of.
#[derive(Debug, Clone)]
pub struct Heard {
    pub session: String,
    /// Its requests that are open now.
    open: u32,
    /// When one began or ended last.
    pub at: Millis,
}

/// An instance that was refused.
#[derive(Debug, Clone)]
pub struct Refused {
    pub instance: String,
    pub at: Millis,
    pub at_ms: u64,
}

/// What this replica heard of agents, by host.
#[derive(Debug, Default)]
pub struct Instances {
    pub heard: DashMap<String, Vec<Heard>>,
    pub refused: DashMap<String, Refused>,
}

/// Who has a host, as its session document says.
#[derive(Debug)]
pub struct Holder<'a> {
    pub instance: &'a str,
    pub session: &'a str,
    /// Whether this replica serves it.
    pub is_here: bool,
    /// When its request ends at the latest, UTC epoch ms.
    pub asks_until_ms: u64,
}

impl Instances {
    pub fn begin(&self, host: &str, session: &str, now: Millis) {
        let mut sessions = self.heard.entry(host.to_owned()).or_default();
        if let Some(heard) = sessions.iter_mut().find(|heard| heard.session == session) {
            heard.open = heard.open.saturating_add(1);
            heard.at = now;
            return;
        }
        if sessions.len() >= SESSIONS_MAX {
            let oldest =
                (0..sessions.len()).min_by_key(|at| sessions.get(*at).map(|h| (h.open, h.at)));
            oldest.map(|at| sessions.remove(at));
        }
        sessions.push(Heard {
            session: session.to_owned(),
            open: 1,
            at: now,
        });
    }

    pub fn end(&self, host: &str, session: &str, now: Millis) {
        if let Some(mut sessions) = self.heard.get_mut(host)
            && let Some(heard) = sessions.iter_mut().find(|heard| heard.session == session)
        {
            heard.open = heard.open.saturating_sub(1);
            heard.at = now;
        }
    }

    /// Whether this session is connected now, or was heard of within `patience_ms`.
    pub fn is_heard(&self, host: &str, session: &str, now: Millis, patience_ms: u64) -> bool {
        self.heard.get(host).is_some_and(|sessions| {
            let mut its = sessions.iter().filter(|heard| heard.session == session);
            its.any(|heard| heard.open > 0 || now.0.saturating_sub(heard.at.0) < patience_ms)
        })
    }
}
