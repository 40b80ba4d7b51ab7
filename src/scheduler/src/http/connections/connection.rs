//! Limits of one connection: what it may do before it is identified, and how long it may be silent.
//!
//! Owns the time limits of heads, bodies, answers and idle connections, and the places of unidentified connections. A
//! request in progress has no limit here, because long polls and streams of logs are silent for long. But bytes of an
//! answer must be read in time: a connection that does not read them is closed.

use crate::Clock;
use fairlead_base::config::ConnectionLimits;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// All connections that are open and not identified.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(super) clock: Clock,
    limits: ConnectionLimits,
    strangers: Mutex<Strangers>,
    unread: Mutex<Unread>,
}

/// Bytes of answers that were not read yet, by the time until which they must be.
#[derive(Debug, Default)]
struct Unread {
    next: u64,
    by_deadline: BTreeMap<(u64, u64), CancellationToken>,
}

/// Bytes of an answer that are not read yet, until it is dropped.
#[derive(Debug)]
pub(super) struct ReadBy {
    all: Arc<Connections>,
    key: (u64, u64),
}

impl Drop for ReadBy {
    fn drop(&mut self) {
        self.all.unread.lock().by_deadline.remove(&self.key);
    }
}

/// Connections of nobody in particular, oldest first.
#[derive(Debug, Default)]
struct Strangers {
    next: u64,
    all: BTreeMap<u64, (IpAddr, CancellationToken)>,
    /// Without addresses that are exempt.
    of_address: BTreeMap<IpAddr, BTreeSet<u64>>,
}

impl Strangers {
    fn remove(&mut self, id: u64) -> Option<CancellationToken> {
        let (address, token) = self.all.remove(&id)?;
        if let Some(ids) = self.of_address.get_mut(&address) {
            ids.remove(&id);
            if ids.is_empty() {
                self.of_address.remove(&address);
            }
        }
        Some(token)
    }
}

impl Connections {
    pub(crate) fn new(clock: Clock, limits: ConnectionLimits) -> Self {
        Self {
            clock,
            limits,
            strangers: Mutex::default(),
            unread: Mutex::default(),
        }
    }

    /// A new connection. Where there are too many of strangers, their oldest one goes: whoever means well says at once
    /// who it is.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Arc<Connection> {
        let from = from.to_canonical();
        let exempt = from.is_loopback() || self.limits.trusted_proxies.contains(&from);
        let address = network(from);
        let close = CancellationToken::new();
        let mut strangers = self.lock();
        let id = strangers.next;
        strangers.next += 1;
        strangers.all.insert(id, (address, close.clone()));
        let mut over = (strangers.all.len() > self.limits.strangers_max)
            .then(|| strangers.all.first_key_value().map(|(oldest, _)| *oldest))
            .flatten();
        if !exempt {
            let of_address = strangers.of_address.entry(address).or_default();
            of_address.insert(id);
            if of_address.len() > self.limits.strangers_of_address_max {
                over = of_address.first().copied();
            }
        }
        if let Some(close) = over.and_then(|oldest| strangers.remove(oldest)) {
            tracing::debug!(%from, "too many connections that nobody identified: the oldest is closed");
            close.cancel();
        }
        drop(strangers);
        Arc::new(Connection {
            all: Arc::clone(self),
            id,
            from,
            close,
            state: Mutex::new(State {
                since_ms: self.clock.now().0,
                ..State::default()
            }),
        })
    }

    /// So many bytes wait for their reader. Whoever is late with others is closed by then: memory is wanted.
    fn reads_by(self: &Arc<Self>, bytes: usize, close: &CancellationToken) -> ReadBy {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let allowed_s = bytes / self.limits.answer_rate_min.max(1);
        let allowed = self.limits.answer_pause + Duration::from_secs(allowed_s);
        let allowed_ms = u64::try_from(allowed.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.clock.now().0;
        let mut unread = self.unread.lock();
        while let Some(first) = unread.by_deadline.first_entry()
            && first.key().0 <= now_ms
        {
            tracing::debug!("an answer was not read in time: its connection is closed");
            first.remove().cancel();
        }
        let key = (now_ms.saturating_add(allowed_ms), unread.next);
        unread.next += 1;
        unread.by_deadline.insert(key, close.clone());
        drop(unread);
        ReadBy {
            all: Arc::clone(self),
            key,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Strangers> {
        self.strangers.lock()
    }
}

/// The addresses that one customer of a network has: of IPv6, a /64.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

/// One open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) all: Arc<Connections>,
    id: u64,
    /// From where it came.
    from: IpAddr,
    /// Cancelled when others need its place.
    close: CancellationToken,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that are worked on, answers that are sent.
    requests: u32,
    /// Whether there was one.
    served: bool,
    /// Several requests at a time: its bytes do not tell where a head begins.
    is_h2: bool,
    /// It speaks another protocol now.
    upgraded: bool,
    /// When it was accepted, or its last request ended.
    since_ms: u64,
    /// When the first byte after that came.
    byte_ms: Option<u64>,
}

impl Connection {
    /// The address of the client: the last word of the last `X-Forwarded-For`, if a trusted proxy sent it. What stands
    /// before it came from the client.
    pub(crate) fn client<'h>(&self, forwarded_for: impl Iterator<Item = &'h str>) -> IpAddr {
        if !self.all.limits.trusted_proxies.contains(&self.from) {
            return self.from;
        }
        let last = forwarded_for.last();
        let last = last.and_then(|all| all.rsplit(',').next()?.trim().parse::<IpAddr>().ok());
        last.map_or(self.from, |address| address.to_canonical())
    }

    /// So many bytes of an answer wait for their reader.
    pub(super) fn reads_by(&self, bytes: usize) -> ReadBy {
        self.all.reads_by(bytes, &self.close)
    }

    /// Somebody who is known uses it: it needs no place among strangers any more.
    pub(crate) fn identified(&self) {
        self.all.lock().remove(self.id);
    }

    /// Ends when others need its place.
    pub(crate) async fn closed(&self) {
        self.close.cancelled().await;
    }

    /// A request's head is in.
    pub(crate) fn begin(&self, is_h2: bool) {
        let mut state = self.lock();
        state.requests += 1;
        state.served = true;
        state.is_h2 = is_h2;
        state.byte_ms = None;
    }

    /// A request's answer is out.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.requests = state.requests.saturating_sub(1);
        state.since_ms = self.all.clock.now().0;
        state.byte_ms = None;
    }

    /// From now on it speaks another protocol, which has limits of its own.
    pub(crate) fn upgrade(&self) {
        self.lock().upgraded = true;
    }

    /// Bytes came.
    pub(super) fn heard(&self) {
        let mut state = self.lock();
        if state.requests == 0 && state.byte_ms.is_none() {
            state.byte_ms = Some(self.all.clock.now().0);
        }
    }

    /// When it has been silent for too long, on the clock of [`Clock::now`]; `None`: never, as it is.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let state = self.lock();
        let limits = &self.all.limits;
        if state.requests > 0 || state.upgraded {
            return None;
        }
        let (from, limit) = match (state.served, state.byte_ms) {
            (false, None) => (state.since_ms, limits.first_byte),
            (false, Some(byte_ms)) => (byte_ms, limits.head),
            (true, Some(byte_ms)) if !state.is_h2 => (byte_ms, limits.head),
            (true, _) => (state.since_ms, limits.idle),
        };
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Some(from.saturating_add(limit_ms))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn connections(all: usize, of_address: usize) -> Arc<Connections> {
        let limits = ConnectionLimits {
            strangers_max: all,
            strangers_of_address_max: of_address,
            trusted_proxies: vec![address(9)],
            ..ConnectionLimits::default()
        };
        Arc::new(Connections::new(Clock::system(), limits))
    }

    fn is_closed(connection: &Connection) -> bool {
        connection.close.is_cancelled()
    }

    #[test]
    fn of_too_many_strangers_the_oldest_goes() {
        let all = connections(3, 2);
        let first = all.enter(address(1));
        let second = all.enter(address(1));
        let third = all.enter(address(1));
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
        let fourth = all.enter(address(2));
        let fifth = all.enter(address(3));
        assert!(is_closed(&second) && !is_closed(&third) && !is_closed(&fourth));
        // Who is known, or gone, takes no place.
        third.identified();
        drop(fourth);
        let more = [all.enter(address(1)), all.enter(address(1))];
        assert!(!is_closed(&third) && !is_closed(&fifth));
        assert!(more.iter().all(|connection| !is_closed(connection)));
    }

    #[test]
    fn loopback_and_trusted_proxies_have_no_limit_of_their_own() {
        let all = connections(10, 1);
        let from = [Ipv4Addr::LOCALHOST.into(), address(9)];
        let open: Vec<_> = from
            .into_iter()
            .cycle()
            .take(8)
            .map(|from| all.enter(from))
            .collect();
        assert!(!open.iter().any(|connection| is_closed(connection)));
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        let (one, _two) = (all.enter(mapped), all.enter(mapped));
        assert!(!is_closed(&one));
    }

    #[test]
    fn one_network_of_ipv6_is_one_stranger() {
        let all = connections(10, 1);
        let first = all.enter("2001:db8::1".parse().unwrap());
        let _second = all.enter("2001:db8::ffff:2".parse().unwrap());
        let third = all.enter("2001:db8:0:1::1".parse().unwrap());
        assert!(is_closed(&first) && !is_closed(&third));
    }

    #[test]
    fn only_the_last_word_of_a_trusted_proxy_names_a_client() {
        let all = connections(10, 10);
        let (proxy, other) = (all.enter(address(9)), all.enter(address(1)));
        let client = |of: &Connection, said: &[&str]| of.client(said.iter().copied()).to_string();
        assert_eq!(client(&proxy, &[]), "10.0.0.9");
        assert_eq!(client(&proxy, &["10.0.0.7"]), "10.0.0.7");
        // The client sent the first header, or the first words of it.
        assert_eq!(client(&proxy, &["203.0.113.9", "10.0.0.7"]), "10.0.0.7");
        assert_eq!(
            client(&proxy, &["203.0.113.9, ::ffff:10.0.0.7"]),
            "10.0.0.7"
        );
        assert_eq!(client(&proxy, &["203.0.113.9, x"]), "10.0.0.9");
        assert_eq!(client(&other, &["203.0.113.9"]), "10.0.0.1");
    }

    #[test]
    fn a_connection_that_does_not_read_its_answers_is_closed() {
        let limits = ConnectionLimits {
            answer_pause: Duration::ZERO,
            answer_rate_min: 1,
            ..ConnectionLimits::default()
        };
        let all = Arc::new(Connections::new(Clock::system(), limits));
        let (slow, quick, large) = (
            all.enter(address(1)),
            all.enter(address(2)),
            all.enter(address(3)),
        );
        let _late = slow.reads_by(0);
        drop(quick.reads_by(0));
        let _in_time = large.reads_by(1 << 20);
        let _next = quick.reads_by(0);
        assert!(is_closed(&slow) && !is_closed(&quick) && !is_closed(&large));
    }

    #[test]
    fn each_state_of_a_connection_has_its_limit() {
        let all = connections(10, 10);
        let limits = all.limits.clone();
        let connection = all.enter(address(1));
        let after = |limit: Duration| {
            let left = connection.deadline_ms().unwrap() - all.clock.now().0;
            let limit = u64::try_from(limit.as_millis()).unwrap();
            assert!((limit - 1_000..=limit).contains(&left), "{left} of {limit}");
        };
        after(limits.first_byte);
        connection.heard();
        after(limits.head);
        connection.begin(false);
        assert_eq!(connection.deadline_ms(), None, "a long poll may be silent");
        connection.end();
        after(limits.idle);
        connection.heard();
        after(limits.head);
        connection.begin(true);
        connection.end();
        connection.heard();
        after(limits.idle);
    }
}
