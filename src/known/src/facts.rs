//! Facts of a machine, as its agent or its registration says, and the tags of them.

use std::collections::BTreeMap;

use fairlead_base::errors::{HostError, excerpt};

/// Values of facts, by family.
pub type Facts = BTreeMap<String, Vec<String>>;

/// Maximum number of families of one host.
const FAMILIES_MAX: usize = 16;
/// Maximum number of values of one host, over all families.
const VALUES_MAX: usize = 1_000;
/// Maximum length of a family's name, bytes.
const FAMILY_BYTES_MAX: usize = 32;
/// Maximum length of a value, bytes. With its family it fits into a tag of a job.
const VALUE_BYTES_MAX: usize = 128 - FAMILY_BYTES_MAX - 1;

/// Fails if there are too many facts, or if names would give misleading tags.
pub fn check(facts: &Facts) -> Result<(), HostError> {
    let bad = |shown: String, expected| {
        let field = "facts";
        Err(HostError::BadRequest {
            field,
            shown,
            expected,
        })
    };
    let is_name = |family: &str| {
        (1..=FAMILY_BYTES_MAX).contains(&family.len())
            && family
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    if facts.len() > FAMILIES_MAX {
        return bad(facts.len().to_string(), "at most 16 families");
    }
    if let Some(family) = facts.keys().find(|family| !is_name(family)) {
        let expected = "families of 1 to 32 lower-case letters, digits and '-'";
        return bad(excerpt(family), expected);
    }
    let values = facts.values().flatten();
    if values.clone().count() > VALUES_MAX {
        return bad(values.count().to_string(), "at most 1,000 values");
    }
    let fits = |value: &&String| (1..=VALUE_BYTES_MAX).contains(&value.len());
    if let Some(value) = facts.values().flatten().find(|value| !fits(value)) {
        return bad(excerpt(value), "values of 1 to 95 bytes");
    }
    Ok(())
}

/// Returns the tags of facts: `family:value`, and for a number also `family:n+` for each n up to it.
pub fn tags<'f>(
    facts: impl Iterator<Item = (&'f String, &'f Vec<String>)>,
) -> impl Iterator<Item = String> {
    facts.flat_map(|(family, values)| {
        let is_counted = fairlead_job::COUNTED.contains(&family.as_str());
        let counts = values.iter().filter(move |_| is_counted);
        let counts = counts.filter_map(|value| value.parse::<u32>().ok());
        let counts = counts.flat_map(|most| 1..=most.min(fairlead_job::COUNT_MAX));
        let counted = counts.map(|n| fairlead_job::at_least(family, n));
        let plain = values.iter().filter(move |_| !is_counted);
        let plain = plain.map(move |value| format!("{family}:{value}"));
        counted.chain(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(all: &[(&str, &[&str])]) -> Facts {
        let one = |(family, values): &(&str, &[&str])| {
            let values = values.iter().map(|&value| value.to_owned()).collect();
            ((*family).to_owned(), values)
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn facts_are_tags() {
        let facts = facts(&[
            ("cpu", &["avx2", "sse4_2"]),
            ("nodes", &["2"]),
            ("nics", &["many"]),
            ("disks", &["4000000000"]),
        ]);
        assert!(check(&facts).is_ok());
        let tags: Vec<_> = tags(facts.iter()).collect();
        assert_eq!(tags[..3], ["cpu:avx2", "cpu:sse4_2", "disks:1+"]);
        assert_eq!(tags[2 + 63..], ["disks:64+", "nodes:1+", "nodes:2+"]);
    }

    #[test]
    fn too_many_and_misnamed_facts_are_refused() {
        let many: Vec<String> = (0..1_001).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let long = "x".repeat(96);
        let families: Vec<String> = (0..17).map(|n| format!("f{n}")).collect();
        let families: Vec<(&str, &[&str])> = families
            .iter()
            .map(|name| (name.as_str(), &[][..]))
            .collect();
        let cases = [
            (facts(&[("pci", &many)]), "1,000 values"),
            (facts(&[("pci", &[&long])]), "95 bytes"),
            (facts(&[("pci", &[""])]), "95 bytes"),
            (facts(&[("a:b", &["c"])]), "lower-case"),
            (facts(&families), "16 families"),
        ];
        for (facts, words) in cases {
            let error = check(&facts).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
