//! Receivers of webhooks that the operator allows.

use std::{
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use reqwest::Url;

/// Ports of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// No port was given: that of the scheme, 80 or 443.
    Usual,
    Any,
    One(u16),
}

impl Ports {
    fn allow(self, url: &Url) -> bool {
        match self {
            // The parser leaves out the port of the scheme.
            Self::Usual => url.port().is_none(),
            Self::Any => true,
            Self::One(port) => url.port_or_known_default() == Some(port),
        }
    }
}

/// One receiver or several.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// A host of this name.
    Name(String),
    /// Hosts whose names end with this suffix, including the dot.
    Below(String),
    /// Addresses that begin with these bits.
    Network(IpAddr, u8),
}

/// Allowed receivers of webhooks. Empty: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets(Vec<(Target, Ports)>);

impl FromStr for Targets {
    type Err = String;

    /// Reads names, `*.` before a name, addresses and networks, separated by commas. `:PORT`, or `:*` for all ports,
    /// may follow each; an IPv6 address then stands in brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let words = text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty());
        words.map(with_ports).collect::<Result<_, _>>().map(Self)
    }
}

fn with_ports(word: &str) -> Result<(Target, Ports), String> {
    // Without brackets, an address of IPv6 has no port.
    let is_v6 = word.matches(':').count() > 1 && !word.contains("]:");
    let bare = |host: &str| {
        host.trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned()
    };
    let Some((host, port)) = word.rsplit_once(':').filter(|_| !is_v6) else {
        return Ok((target(&bare(word))?, Ports::Usual));
    };
    let ports = match port {
        "*" => Ports::Any,
        said => {
            let port = said.parse().ok().filter(|port| *port > 0);
            Ports::One(port.ok_or_else(|| format!("'{said}' of '{word}' is no port"))?)
        }
    };
    Ok((target(&bare(host))?, ports))
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

/// Returns true if an address belongs to the internet, and not to this machine or its own network.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            let is_benchmark = a == 198 && (18..20).contains(&b);
            // Addresses of the protocols themselves, and the relays of 6to4.
            let is_protocol = matches!([a, b, c], [192, 0, 0] | [192, 88, 99]);
            let is_reserved = a == 0 || a >= 240;
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_documentation()
                || is_shared
                || is_benchmark
                || is_protocol
                || is_reserved)
        }
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// Same for IPv6. Only `2000::/3` was ever assigned. Other addresses are loopback, belong to a link or a site, or
/// lead to an IPv4 address (`::/96`, NAT64 in `64:ff9b::/32`).
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_given_out = first & 0xe000 == 0x2000;
    // 2001::/23 has Teredo, benchmarks and ORCHID; 3fff::/20 and 2001:db8::/32 are for documents; 2002::/16 is 6to4.
    let is_protocol = first == 0x2001 && second < 0x200;
    let is_document = (first, second) == (0x2001, 0xdb8) || (first == 0x3fff && second < 0x1000);
    is_given_out && !(is_protocol || is_document || first == 0x2002)
}

impl Targets {
    fn allows_name(&self, url: &Url, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().any(|(target, ports)| match target {
            Target::Name(name) => *name == host && ports.allow(url),
            Target::Below(end) => host.ends_with(end) && ports.allow(url),
            Target::Network(..) => false,
        })
    }

    fn allows_address(&self, url: &Url, address: IpAddr) -> bool {
        self.0.iter().any(|(target, ports)| match target {
            Target::Network(network, bits) => is_in(address, *network, *bits) && ports.allow(url),
            Target::Name(_) | Target::Below(_) => false,
        })
    }

    /// Returns true if messages to this URL may be sent to this address of its host. An address of a private network
    /// must be named itself.
    pub fn allows(&self, url: &Url, address: IpAddr) -> bool {
        let host = url.host_str().unwrap_or_default();
        self.allows_address(url, address) || (self.allows_name(url, host) && is_public(address))
    }

    /// Returns true if no address of the host can ever be allowed. A name is looked up when a message is sent to it.
    pub fn refuse(&self, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else {
            return true;
        };
        let Some(host) = url.host_str() else {
            return true;
        };
        let is_network = |(target, ports): &(Target, Ports)| {
            matches!(target, Target::Network(..)) && ports.allow(&url)
        };
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => !self.allows(&url, address),
            Err(_) => !self.allows_name(&url, host) && !self.0.iter().any(is_network),
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
        let allows = |host: &str, address: &str| {
            let url = Url::parse(&format!("https://{host}/x")).unwrap();
            targets.allows(&url, address.parse().unwrap())
        };
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
        for bad in [
            "10.0.0.0/33",
            "a b",
            "x/8",
            "*.",
            "http://ci",
            "ci:",
            "ci:0",
            "ci:65536",
        ] {
            assert!(bad.parse::<Targets>().is_err(), "{bad}");
        }
    }

    #[test]
    fn only_the_port_that_was_named_or_that_of_the_scheme_is_sent_to() {
        let targets: Targets = "ci.example.com,hook.example.com:8443,*.lab.example.com:*,10.0.0.0/8:9000,[fd00::1]:81,fd00::2"
            .parse()
            .unwrap();
        for (url, address, is_allowed) in [
            ("http://ci.example.com/", "8.8.8.8", true),
            ("https://ci.example.com:443/", "8.8.8.8", true),
            ("https://ci.example.com:80/", "8.8.8.8", false),
            ("http://ci.example.com:6379/", "8.8.8.8", false),
            ("https://hook.example.com:8443/", "8.8.8.8", true),
            ("https://hook.example.com/", "8.8.8.8", false),
            ("http://a.lab.example.com:7/", "8.8.8.8", true),
            ("http://10.1.2.3:9000/", "10.1.2.3", true),
            ("http://10.1.2.3/", "10.1.2.3", false),
            ("http://[fd00::1]:81/", "fd00::1", true),
            ("http://[fd00::1]/", "fd00::1", false),
            ("http://[fd00::2]/", "fd00::2", true),
            ("http://[fd00::2]:81/", "fd00::2", false),
        ] {
            let parsed = Url::parse(url).unwrap();
            let allows = targets.allows(&parsed, address.parse().unwrap());
            assert_eq!(allows, is_allowed, "{url}");
            assert!(
                is_allowed || targets.refuse(url) || url.contains("example"),
                "{url}"
            );
        }
        assert!(targets.refuse("http://ci.example.com:6379/"));
    }

    #[test]
    fn addresses_that_lead_elsewhere_or_to_nobody_are_not_public() {
        for own in [
            "64:ff9b::7f00:1",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::1",
            "2001:0:7f00:1::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "fec0::1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "5f00::1",
            "0.0.0.0",
            "100.64.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.19.255.1",
            "198.51.100.1",
            "203.0.113.1",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!is_public(own.parse().unwrap()), "{own}");
        }
        for public in [
            "8.8.8.8",
            "198.20.0.1",
            "192.0.1.1",
            "2606:4700::1",
            "2001:4860::1",
            "2a00::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
