//! Tokens of accounts: the newest one, the one before it for a while, and when each was used last.
//!
//! Their use is noted in memory, and written now and then. So a look at it may be ten minutes behind.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use blake3::Hash;
use fairlead_api::TokenView;
use serde::{Deserialize, Serialize};

use fairlead_base::storage::doc_fields::is_zero;

/// Maximum number of valid tokens of an account.
const TOKENS_MAX: usize = 2;
/// Default time for which the previous token stays valid, s: a day.
pub const OVERLAP_S: u64 = 86_400;
/// Minimum interval between writes of a token's use, ms.
const USED_EVERY_MS: u64 = 600_000;
/// Number of hash digits that identify a token for people.
const ID_DIGITS: usize = 8;

/// A token, as an account's document has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenDoc {
    /// Hash, hexadecimal digits.
    hash: String,
    /// Time of its creation, UTC epoch ms. 0: older than this field.
    #[serde(skip_serializing_if = "is_zero")]
    made_ms: u64,
    /// Time of its last use, UTC epoch ms. 0: never, or older than this field.
    #[serde(skip_serializing_if = "is_zero")]
    used_ms: u64,
    /// Time of its expiry, UTC epoch ms. 0: it does not expire.
    #[serde(skip_serializing_if = "is_zero")]
    ends_ms: u64,
}

impl TokenDoc {
    fn hash(&self) -> Option<Hash> {
        Hash::from_hex(&self.hash).ok()
    }
}

/// Returns true if a token with this expiry has expired.
fn is_over(ends_ms: u64, now_ms: u64) -> bool {
    ends_ms > 0 && ends_ms <= now_ms
}

/// Requested change of the tokens of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenChange {
    pub now_ms: u64,
    /// Remaining validity of the previous token, ms. `None`: unchanged.
    pub overlap_ms: Option<u64>,
    /// Validity of a new token, ms. `None`: it does not expire.
    pub lives_ms: Option<u64>,
}

/// Tokens of an account, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokens(pub Vec<TokenDoc>);

impl Tokens {
    /// Returns the tokens of a document, from the hash of the newest and the list of all.
    pub fn of(newest: Option<&String>, all: &[TokenDoc]) -> Self {
        let Some(newest) = newest else {
            return Self::default();
        };
        // A version that knows only one token replaced it, which ended the others.
        if all.first().is_some_and(|first| first.hash == *newest) {
            return Self(all.to_vec());
        }
        Self(vec![TokenDoc {
            hash: newest.clone(),
            ..TokenDoc::default()
        }])
    }

    /// Returns the hash of the newest token.
    pub fn newest(&self) -> Option<&String> {
        self.0.first().map(|token| &token.hash)
    }

    /// Returns the tokens with this one as the newest.
    #[must_use]
    pub fn with(mut self, hash: &str, change: TokenChange) -> Self {
        if self.newest().is_none_or(|newest| newest != hash) {
            let ends = change.lives_ms.map(|ms| change.now_ms.saturating_add(ms));
            let new = TokenDoc {
                hash: hash.to_owned(),
                made_ms: change.now_ms,
                used_ms: 0,
                ends_ms: ends.unwrap_or(0),
            };
            self.0.insert(0, new);
            self.0.truncate(TOKENS_MAX);
        }
        self.ended(change)
    }

    /// Returns the tokens without expired ones. The older ones get the requested expiry.
    #[must_use]
    pub fn ended(mut self, change: TokenChange) -> Self {
        let (newest, older) = match self.0.split_first_mut() {
            Some((newest, older)) => (newest.clone(), older),
            None => return self,
        };
        if let Some(overlap_ms) = change.overlap_ms {
            let ends_ms = change.now_ms.saturating_add(overlap_ms);
            for older in older.iter_mut() {
                let already = Some(older.ends_ms).filter(|ms| *ms > 0);
                older.ends_ms = already.map_or(ends_ms, |already| already.min(ends_ms));
            }
        }
        let good = older
            .iter()
            .filter(|token| !is_over(token.ends_ms, change.now_ms));
        Self(std::iter::once(newest).chain(good.cloned()).collect())
    }

    /// Returns the tokens with their latest uses. `used_ms` returns the last use known to this replica.
    #[must_use]
    pub fn used(mut self, used_ms: impl Fn(&Hash) -> u64) -> Self {
        for token in &mut self.0 {
            token.used_ms = token
                .used_ms
                .max(token.hash().map_or(0, |hash| used_ms(&hash)));
        }
        self
    }

    /// Returns true if their use must be written, compared with the stored tokens.
    pub fn is_use_due(&self, stored: &Self) -> bool {
        let mut both = self.0.iter().zip(&stored.0);
        both.any(|(now, stored)| now.used_ms > stored.used_ms.saturating_add(USED_EVERY_MS))
    }

    /// Returns the views for people.
    pub fn views(&self) -> Vec<TokenView> {
        let view = |token: &TokenDoc| TokenView {
            id: token.hash.get(..ID_DIGITS).unwrap_or_default().to_owned(),
            made_ms: token.made_ms,
            last_used_ms: token.used_ms,
            ends_ms: token.ends_ms,
        };
        self.0.iter().map(view).collect()
    }

    /// Returns the entries of all tokens, by hash. `before` returns a token's previous entry, whose last use is kept.
    pub fn good(
        &self,
        before: impl Fn(&Hash) -> Option<GoodToken>,
    ) -> impl Iterator<Item = (Hash, GoodToken)> {
        self.0.iter().filter_map(move |token| {
            let hash = token.hash()?;
            let used_ms = before(&hash).map(|known| known.used_ms);
            let good = GoodToken {
                ends_ms: token.ends_ms,
                used_ms: used_ms.unwrap_or_default(),
            };
            Some((hash, good))
        })
    }
}

/// A valid token.
#[derive(Debug, Clone, Default)]
pub struct GoodToken {
    ends_ms: u64,
    /// Time of its last use on this replica, UTC epoch ms.
    used_ms: Arc<AtomicU64>,
}

impl GoodToken {
    /// Notes a use. Returns false if the token has expired.
    pub fn note_use(&self, now_ms: u64) -> bool {
        let is_good = !is_over(self.ends_ms, now_ms);
        if is_good {
            self.used_ms.store(now_ms, Ordering::Relaxed);
        }
        is_good
    }

    /// Returns the time of its last use on this replica, UTC epoch ms. 0: unused since the replica started.
    pub fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(now_ms: u64, overlap_ms: Option<u64>, lives_ms: Option<u64>) -> TokenChange {
        TokenChange {
            now_ms,
            overlap_ms,
            lives_ms,
        }
    }

    fn hash(n: u8) -> String {
        Hash::from([n; 32]).to_hex().to_string()
    }

    /// Returns the first hash bytes of the valid tokens, newest first.
    fn good(tokens: &Tokens, now_ms: u64) -> Vec<u8> {
        let good = tokens.good(|_| None);
        let good = good.filter(|(_, token)| token.note_use(now_ms));
        good.map(|(hash, _)| hash.as_bytes()[0]).collect()
    }

    #[test]
    fn the_token_before_the_newest_is_good_for_a_while() {
        let old = Tokens::of(Some(&hash(1)), &[]);
        assert_eq!(good(&old, 5), [1]);
        let two = old.with(&hash(2), change(10, Some(100), None));
        assert_eq!((good(&two, 109), good(&two, 110)), (vec![2, 1], vec![2]));
        let again = two.clone().with(&hash(2), change(10, Some(100), None));
        assert_eq!(again, two, "the same write again changes nothing");
        // A third token ends the first at once.
        let three = two.with(&hash(3), change(20, Some(100), Some(50)));
        assert_eq!(good(&three, 20), [3, 2]);
        assert_eq!((good(&three, 69), good(&three, 70)), (vec![3, 2], vec![2]));
        assert_eq!(
            good(&three.clone().ended(change(60, Some(900), None)), 119),
            [2],
            "none lives longer"
        );
        assert_eq!(good(&three.ended(change(60, Some(0), None)), 60), [3]);
    }

    #[test]
    fn a_version_that_knows_one_token_ends_all_others() {
        let one = Tokens::default().with(&hash(1), change(1, None, None));
        let two = one.with(&hash(2), change(2, None, None));
        assert_eq!(good(&two, 3), [2, 1]);
        assert_eq!(good(&Tokens::of(Some(&hash(2)), &two.0), 3), [2, 1]);
        assert_eq!(good(&Tokens::of(Some(&hash(7)), &two.0), 3), [7]);
        assert!(Tokens::of(None, &two.0).0.is_empty());
    }

    #[test]
    fn its_use_is_written_now_and_then() {
        let stored = Tokens::default().with(&hash(1), change(1, None, None));
        let used = |ms| stored.clone().used(|_| ms);
        assert!(!used(USED_EVERY_MS).is_use_due(&stored));
        let written = used(USED_EVERY_MS + 1);
        assert!(written.is_use_due(&stored));
        assert!(
            !written
                .clone()
                .used(|_| 2 * USED_EVERY_MS)
                .is_use_due(&written)
        );
        assert_eq!(
            written.used(|_| 0).views()[0].last_used_ms,
            USED_EVERY_MS + 1
        );
    }

    #[test]
    fn what_is_noted_of_a_token_outlives_a_new_look_at_the_store() {
        let tokens = Tokens::of(Some(&hash(1)), &[]);
        let (_, known) = tokens.good(|_| None).next().unwrap();
        assert!(known.note_use(77));
        let (_, again) = tokens.good(|_| Some(known.clone())).next().unwrap();
        assert_eq!(again.used_ms(), 77);
    }
}
