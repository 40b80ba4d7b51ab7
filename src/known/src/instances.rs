//! Instances of agents: the last one heard under each host's name, and those that were refused.

use dashmap::DashMap;
use fairlead_dispatch::Millis;

/// Number of missed heartbeats after which another instance may take the host.
pub const MISSED_BEATS: u64 = 2;

/// Maximum number of remembered sessions of one host.
pub const SESSIONS_MAX: usize = 4;

/// Time for which a host shows that another instance was refused, ms. It exceeds the pauses of that instance.
pub const SHOWN_MS: u64 = 60_000;

/// Last sign of life of a host's session.
#[derive(Debug, Clone)]
pub struct Heard {
    pub session: String,
    /// Number of its open requests.
    open: u32,
    /// Time at which a request last began or ended.
    pub at: Millis,
}

/// Instance that was refused.
#[derive(Debug, Clone)]
pub struct Refused {
    pub instance: String,
    pub at: Millis,
    pub at_ms: u64,
}

/// Sessions and refused instances of agents, by host.
#[derive(Debug, Default)]
pub struct Instances {
    pub heard: DashMap<String, Vec<Heard>>,
    pub refused: DashMap<String, Refused>,
}

/// Holder of a host, according to its session document.
#[derive(Debug)]
pub struct Holder<'a> {
    pub instance: &'a str,
    pub session: &'a str,
    /// True if this replica serves it.
    pub is_here: bool,
    /// Latest end of its request, UTC epoch ms.
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

    /// Returns true if this session is connected now, or was heard of within `patience_ms`.
    pub fn is_heard(&self, host: &str, session: &str, now: Millis, patience_ms: u64) -> bool {
        self.heard.get(host).is_some_and(|sessions| {
            let mut its = sessions.iter().filter(|heard| heard.session == session);
            its.any(|heard| heard.open > 0 || now.0.saturating_sub(heard.at.0) < patience_ms)
        })
    }
}
