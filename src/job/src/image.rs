//! How a host names an image that it has, with what the image holds.

/// Digits of a digest of an image, as hosts tell it.
pub const IMAGE_DIGEST_DIGITS: usize = 32;
/// Longest name that is told as it is, bytes: a fact of a host has at most 95, and some begin with a kind.
const NAME_BYTES_MAX: usize = 56;
/// Digits that stand for a longer name.
const NAME_DIGITS: usize = 32;

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
