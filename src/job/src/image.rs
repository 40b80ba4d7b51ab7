//! Names of images of containers in registries, and how a host names an image that it has with what the image holds.

use std::str::FromStr;

/// Digits of a digest of an image, as hosts tell it.
pub const IMAGE_DIGEST_DIGITS: usize = 32;
/// Longest name that is told as it is, bytes: a fact of a host has at most 95, and some begin with a kind.
const NAME_BYTES_MAX: usize = 56;
/// Digits that stand for a longer name.
const NAME_DIGITS: usize = 32;

/// The registry of names that say none, as docker and podman agree.
const REGISTRY_DEFAULT: &str = "docker.io";
/// The folder of that registry for names without one.
const FOLDER_DEFAULT: &str = "library";
/// Words before a colon that make an engine read a file, a folder or a store of images instead of a registry.
const TRANSPORTS: [&str; 9] = [
    "containers-storage",
    "dir",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
    "ostree",
    "sif",
    "tarball",
];
/// Longest tag of an image, bytes.
const TAG_BYTES_MAX: usize = 128;
/// Algorithms of digests, and how many digits these have.
const DIGESTS: [(&str, usize); 2] = [("sha256", 64), ("sha512", 128)];

/// The name of an image in a registry, such as `debian:12` or `registry.example:5000/team/image@sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    full: String,
    /// How many of its bytes are the registry.
    registry: usize,
}

/// A text is no name of an image in a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no name of an image in a registry (hint: {hint})", hint = Self::HINT)]
pub struct NoImageName;

impl NoImageName {
    /// Example of a name.
    pub const HINT: &str =
        "for example debian:12 or registry.example/team/image:tag, without docker://";
}

impl ImageName {
    /// The name with its registry and its folder, also where it was written without: `docker.io/library/debian:12`. A digest
    /// replaces a tag beside it. An engine takes no other image for it.
    pub fn full(&self) -> &str {
        &self.full
    }

    /// Returns true if it is of `place`: a registry (`docker.io`), or a registry and the beginning of a path
    /// (`docker.io/library`).
    pub fn is_of(&self, place: &str) -> bool {
        let Some(rest) = self.full.strip_prefix(place) else {
            return false;
        };
        match place.len().cmp(&self.registry) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => true,
            std::cmp::Ordering::Greater => rest.is_empty() || rest.starts_with(['/', ':', '@']),
        }
    }

    /// Returns true if a text is a place that [`ImageName::is_of`] can find.
    pub fn is_place(text: &str) -> bool {
        let below = format!("{text}/a/b");
        below.parse().is_ok_and(|name: Self| name.full == below)
    }
}

impl FromStr for ImageName {
    type Err = NoImageName;

    /// Reads `[REGISTRY[:PORT]/]PATH[:TAG][@DIGEST]`, and nothing that an engine finds elsewhere than in a registry.
    fn from_str(text: &str) -> Result<Self, NoImageName> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let is_registry = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let (registry, below) = match name.split_once('/') {
            Some((first, below)) if is_registry(first) => (first, below),
            _ => (REGISTRY_DEFAULT, name),
        };
        let (path, tag) = match below.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (below, None),
        };
        let names_transport = name
            .split_once(':')
            .is_some_and(|(word, _)| TRANSPORTS.contains(&word));
        let is_good = !names_transport
            && is_host(registry)
            && path.split('/').all(is_part)
            && tag.is_none_or(is_tag)
            && digest.is_none_or(is_digest);
        if !is_good {
            return Err(NoImageName);
        }
        let registry = registry.to_ascii_lowercase();
        let mut full = registry.clone();
        if registry == REGISTRY_DEFAULT && !path.contains('/') {
            full.extend(["/", FOLDER_DEFAULT]);
        }
        full.extend(["/", path]);
        match (digest, tag) {
            (Some(digest), _) => full.extend(["@", digest]),
            (None, Some(tag)) => full.extend([":", tag]),
            (None, None) => {}
        }
        Ok(Self {
            full,
            registry: registry.len(),
        })
    }
}

/// A name of a machine, and perhaps a port.
fn is_host(text: &str) -> bool {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        !label.starts_with('-')
            && !label.ends_with('-')
            && !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    name.split('.').all(is_label) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_part(part: &str) -> bool {
    let is_end =
        |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = part.as_bytes();
    is_end(bytes.first())
        && is_end(bytes.last())
        && !part.contains("..")
        && bytes.iter().all(|b| is_end(Some(b)) || b"._-".contains(b))
}

fn is_tag(tag: &str) -> bool {
    (1..=TAG_BYTES_MAX).contains(&tag.len())
        && !tag.starts_with(['.', '-'])
        && tag
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn is_digest(digest: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digest.split_once(':').is_some_and(|(algorithm, digits)| {
        DIGESTS.contains(&(algorithm, digits.len())) && digits.bytes().all(is_hex)
    })
}

/// The fact of a host that has an image of this name and with this digest: `debian:12=5ec1…`.
pub fn image_fact(name: &str, digest: &str) -> String {
    if name.len() <= NAME_BYTES_MAX {
        return format!("{name}={digest}");
    }
    let mut short = blake3::hash(name.as_bytes()).to_hex().to_string();
    short.truncate(NAME_DIGITS);
    format!("{short}={digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_registry_and_its_folder() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (text, full) in [
            ("debian", "docker.io/library/debian"),
            ("debian:12", "docker.io/library/debian:12"),
            ("docker:27-dind", "docker.io/library/docker:27-dind"),
            ("docker.io/debian", "docker.io/library/debian"),
            ("team/image:v1", "docker.io/team/image:v1"),
            ("localhost/mine:1", "localhost/mine:1"),
            ("box:5000/a/b-c__d.e", "box:5000/a/b-c__d.e"),
            ("Registry.Example/a:B", "registry.example/a:B"),
            (&format!("a.b/c:1@{digest}"), &format!("a.b/c@{digest}")),
        ] {
            let name: ImageName = text.parse().unwrap();
            assert_eq!(name.full(), full, "{text}");
            assert_eq!(full.parse(), Ok(name), "{full}");
        }
    }

    #[test]
    fn what_an_engine_finds_outside_of_registries_is_no_name() {
        let long = format!("a:{}", "t".repeat(TAG_BYTES_MAX + 1));
        for text in [
            "docker-archive:/etc/hostname",
            "docker-archive:x.tar:debian:12",
            "oci:layout",
            "oci:/srv/layout:tag",
            "oci-archive:x.tar",
            "dir:/srv/image",
            "dir:5000/image",
            "containers-storage:debian:12",
            "containers-storage:[overlay@/var/lib/x]debian",
            "docker-daemon:debian:12",
            "docker://debian:12",
            "https://registry.example/x",
            "sif:x",
            "/etc/x",
            "./x",
            "../x",
            "a/../b",
            "a//b",
            "a/",
            "",
            ":12",
            "a:",
            "a:b:c",
            "a@sha256:abc",
            "a@md5:0123",
            "A/b",
            "a b",
            "-a",
            "box:port/a",
            "box:99999/a",
            &long,
        ] {
            assert_eq!(text.parse::<ImageName>(), Err(NoImageName), "{text}");
        }
    }

    #[test]
    fn a_place_is_a_registry_or_the_beginning_of_a_path() {
        let is_of = |text: &str, place| text.parse::<ImageName>().unwrap().is_of(place);
        assert!(is_of("debian:12", "docker.io"));
        assert!(is_of("debian:12", "docker.io/library"));
        assert!(is_of("debian:12", "docker.io/library/debian"));
        assert!(!is_of("debian:12", "docker.io/library/deb"));
        assert!(!is_of("team/x", "docker.io/library"));
        assert!(!is_of("docker.io.example/x", "docker.io"));
        assert!(!is_of("docker.io:5000/x", "docker.io"));
        for place in ["docker.io", "docker.io/library", "box:5000", "localhost/a"] {
            assert!(ImageName::is_place(place), "{place}");
        }
        for other in ["", "debian", "a.b/", "docker://a.b", "a.b/c:1", "A.b"] {
            assert!(!ImageName::is_place(other), "{other}");
        }
    }

    #[test]
    fn a_fact_is_short_and_names_one_image() {
        let digest = "a".repeat(IMAGE_DIGEST_DIGITS);
        assert_eq!(image_fact("debian:12", "ab"), "debian:12=ab");
        let long = "x".repeat(200);
        let fact = image_fact(&long, &digest);
        assert!(fact.len() <= 90, "{fact}");
        assert_ne!(fact, image_fact(&"x".repeat(201), &digest));
        let longest = image_fact(&"y".repeat(NAME_BYTES_MAX), &digest);
        assert!(longest.len() <= 92, "{}", longest.len());
    }
}
