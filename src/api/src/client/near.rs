//! Rules that all HTTP clients share: pauses that differ by chance, and no proxy for this machine itself.

use std::{
    hash::{BuildHasher, Hasher},
    time::Duration,
};

/// Whether an address is of this machine's own loopback, which no proxy that the environment names can reach.
pub fn is_loopback(url: &reqwest::Url) -> bool {
    url.host_str().is_some_and(|host| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host.ends_with(".localhost")
            || bare
                .parse::<std::net::IpAddr>()
                .is_ok_and(|ip| ip.is_loopback())
    })
}

/// Half to all of `pause`, at random, so that many clients do not come back at the same moment.
pub fn jittered(pause: Duration) -> Duration {
    // The standard library seeds every hasher at random: enough for this, and no further dependency.
    let random = std::hash::RandomState::new().build_hasher().finish();
    let half = pause / 2;
    let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
    half + Duration::from_nanos(random % nanos.saturating_add(1))
}
