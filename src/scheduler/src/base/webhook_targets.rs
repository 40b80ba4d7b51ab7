//! Receivers of webhooks that the operator allows.

use std::{net::IpAddr, str::FromStr};

use reqwest::Url;

/// One receiver, or many.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// A host of this name.
    Name(String),
    /// Hosts whose names end so, with the dot.
    Below(String),
    /// Addresses that begin with these bits.
    Network(IpAddr, u8),
}

/// To whom webhooks may be sent. Empty: to nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets(Vec<Target>);

impl FromStr for Targets {
    type Err = String;

    /// Reads names, `*.` before a name, addresses and networks, with commas between.
    fn from_str(text: &str) -> Result<Self, String> {
        let words = text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty());
        words.map(target).collect::<Result<_, _>>().map(Self)
    }
}

fn target(word: &str) -> Result<Target, String> {
    let bad = || format!("'{word}' is no name, '*.' and a name, address or network");
    let (address, bits) = match word.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| bad())?)),
        None => (word, None),
    };
    if let Ok(address) = address.parse::<IpAddr>() {
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        return (bits <= most)
            .then_some(Target::Network(address, bits))
            .ok_or_else(bad);
    }
    let name = word.strip_prefix("*.").unwrap_or(word);
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
    if bits.is_some() || name.is_empty() || !name.bytes().all(is_name) {
        return Err(bad());
    }
    let lower = name.to_ascii_lowercase();
    Ok(if word.starts_with("*.") {
        Target::Below(format!(".{lower}"))
    } else {
        Target::Name(lower)
    })
}

fn number(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let ((a, width), (b, other)) = (number(address.to_canonical()), number(network));
    let left = u32::from(width.saturating_sub(bits));
    width == other && (bits == 0 || a.checked_shr(left) == b.checked_shr(left))
}

/// Whether an address is one of the internet, and not of this machine or its own network.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || is_shared
                || a == 0)
        }
        IpAddr::V6(v6) => {
            let [first, ..] = v6.segments();
            let is_own = first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80;
            !(v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || is_own)
        }
    }
}

impl Targets {
    fn allows_name(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().any(|target| match target {
            Target::Name(name) => *name == host,
            Target::Below(end) => host.ends_with(end),
            Target::Network(..) => false,
        })
    }

    fn allows_address(&self, address: IpAddr) -> bool {
        self.0.iter().any(|target| match target {
            Target::Network(network, bits) => is_in(address, *network, *bits),
            Target::Name(_) | Target::Below(_) => false,
        })
    }

    /// Whether messages may be sent to this address of this host. An address of a private network must be named itself.
    pub(crate) fn allows(&self, host: &str, address: IpAddr) -> bool {
        self.allows_address(address) || (self.allows_name(host) && is_public(address))
    }

    /// Whether nothing that the name of a host will be found to mean can be allowed; a name is looked up when it is sent
    /// to.
    pub(crate) fn refuse(&self, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else {
            return true;
        };
        let Some(host) = url.host_str() else {
            return true;
        };
        let has_networks = self.0.iter().any(|it| matches!(it, Target::Network(..)));
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => !self.allows(host, address),
            Err(_) => !self.allows_name(host) && !has_networks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_operator_names_is_sent_to() {
        let targets: Targets = "ci.example.com, *.lab.example.com,10.1.0.0/16,127.0.0.1,fd00::/8"
            .parse()
            .unwrap();
        let allows = |host: &str, address: &str| targets.allows(host, address.parse().unwrap());
        assert!(allows("ci.example.com", "93.184.216.34"));
        assert!(allows("CI.example.com.", "93.184.216.34"));
        assert!(allows("a.lab.example.com", "2606:2800::1"));
        assert!(allows("any.thing", "10.1.255.1"));
        assert!(allows("any.thing", "::ffff:10.1.2.3"));
        assert!(allows("localhost", "127.0.0.1"));
        assert!(allows("any", "fd12::1"));
        for (host, address) in [
            ("other.example.com", "93.184.216.34"),
            ("lab.example.com", "93.184.216.34"),
            // A name that is allowed, and leads into the lab.
            ("ci.example.com", "10.2.0.1"),
            ("ci.example.com", "127.0.0.2"),
            ("ci.example.com", "169.254.169.254"),
            ("ci.example.com", "::1"),
            ("ci.example.com", "fe80::1"),
            ("ci.example.com", "::ffff:192.168.0.1"),
        ] {
            assert!(!allows(host, address), "{host} {address}");
        }
        assert!(!targets.refuse("https://ci.example.com/x"));
        assert!(targets.refuse("http://[::1]/x") && targets.refuse("http://8.8.8.8/"));
        let names: Targets = "ci.example.com".parse().unwrap();
        assert!(names.refuse("https://evil/x") && Targets::default().refuse("https://ci"));
        for bad in ["10.0.0.0/33", "a b", "x/8", "*.", "http://ci"] {
            assert!(bad.parse::<Targets>().is_err(), "{bad}");
        }
    }
}
