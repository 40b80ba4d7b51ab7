//! What a host said of itself, in its own words: most say the same again and again.
//!
//! Only kept to be compared. All of it is in one place, each list after its length and each name after its own:
//! to compare is to read once from end to end, however many names there are.

use crate::event::Offer;

/// The names in an offer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said(Box<[u8]>);

/// A length; none of an offer's is near the end of this.
type Length = u32;

impl Said {
    pub(crate) fn of(offer: &Offer) -> Self {
        let mut said = Vec::new();
        for (length, text) in parts(offer) {
            said.extend_from_slice(&length.to_le_bytes());
            said.extend_from_slice(text.as_bytes());
        }
        Self(said.into_boxed_slice())
    }

    /// Whether this offer says the same.
    pub(crate) fn is(&self, offer: &Offer) -> bool {
        let mut rest = &*self.0;
        let same = parts(offer).all(|(length, text)| {
            let said = rest.strip_prefix(&length.to_le_bytes());
            let after = said.and_then(|said| said.strip_prefix(text.as_bytes()));
            rest = after.unwrap_or_default();
            after.is_some()
        });
        same && rest.is_empty()
    }
}

fn parts(offer: &Offer) -> impl Iterator<Item = (Length, &str)> {
    let single = [&offer.arch, &offer.group];
    let lists = [&offer.keys, &offer.tags, &offer.devices, &offer.cache_dirs];
    single
        .into_iter()
        .map(|name| sized(name))
        .chain(lists.into_iter().flat_map(|names| counted(names)))
}

/// A list's length, and each name after its own.
fn counted(names: &[String]) -> impl Iterator<Item = (Length, &str)> {
    std::iter::once((length(names.len()), "")).chain(names.iter().map(|name| sized(name)))
}

fn sized(name: &str) -> (Length, &str) {
    (length(name.len()), name)
}

fn length(length: usize) -> Length {
    Length::try_from(length).unwrap_or(Length::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Millis, OfferKey};

    fn offer(keys: &[&str], tags: &[&str]) -> Offer {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Offer {
            key: OfferKey(1),
            host: "h".to_owned(),
            group: "g".to_owned(),
            arch: "x".to_owned(),
            keys: names(keys),
            free_memory_mb: 1,
            total_memory_mb: 1,
            tags: names(tags),
            devices: vec![],
            cache_dirs: vec![],
            owed: vec![],
            jobs_max: 1,
            waits_until: Millis(0),
        }
    }

    #[test]
    fn equal_only_if_every_name_is_in_the_same_list() {
        let offers = [
            offer(&[], &[]),
            offer(&["a"], &[]),
            offer(&[], &["a"]),
            offer(&["a", ""], &[]),
            offer(&["a"], &[""]),
            offer(&["ab"], &[]),
            offer(&["a", "b"], &[]),
            offer(&["a"], &["b"]),
        ];
        for (n, said) in offers.iter().map(Said::of).enumerate() {
            for (m, other) in offers.iter().enumerate() {
                assert_eq!(said.is(other), n == m, "{n} and {m}");
            }
        }
        assert!(!Said::default().is(&offer(&[], &[])));
    }
}
