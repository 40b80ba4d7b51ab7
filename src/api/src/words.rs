//! Stages and healths on the wire: those that this version knows, and words of a newer one as they came.

use std::{fmt, str::FromStr};

use fairlead_job::{Health, Stage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A word of an axis such as the stage. A newer scheduler may say one that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word<T> {
    /// A word that this version knows.
    Known(T),
    /// A word that this version does not know. Empty: the answer had none.
    Other(String),
}

/// How far a job is.
pub type StageWord = Word<Stage>;
/// How a job ended.
pub type HealthWord = Word<Health>;

impl<T: FromStr> Word<T> {
    /// Reads a word; it may be one that this version does not know.
    pub fn read(word: String) -> Self {
        word.parse().map_or(Self::Other(word), Self::Known)
    }
}

impl<T: Copy> Word<T> {
    /// The word, if this version knows it. No other one takes its place.
    pub const fn known(&self) -> Option<T> {
        match self {
            Self::Known(word) => Some(*word),
            Self::Other(_) => None,
        }
    }
}

impl<T: AsRef<str>> Word<T> {
    /// The word as it came.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(word) => word.as_ref(),
            Self::Other(word) => word,
        }
    }
}

impl<T> Default for Word<T> {
    /// No word.
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl<T> From<T> for Word<T> {
    fn from(word: T) -> Self {
        Self::Known(word)
    }
}

impl<T: PartialEq> PartialEq<T> for Word<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(word) if word == other)
    }
}

impl<T: AsRef<str>> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<T: AsRef<str>> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::read)
    }
}

#[cfg(test)]
impl<T> schemars::JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_newer_version_stays_as_it_came_and_is_no_known_one() {
        let read = |text: &str| serde_json::from_str::<StageWord>(text).unwrap();
        for &stage in Stage::ALL {
            let text = serde_json::to_string(&StageWord::from(stage)).unwrap();
            assert_eq!(
                (text.as_str(), read(&text)),
                (format!("\"{stage}\"").as_str(), stage.into())
            );
        }
        let newer = read("\"frozen\"");
        assert_eq!((newer.known(), newer.as_str()), (None, "frozen"));
        assert_eq!(serde_json::to_string(&newer).unwrap(), "\"frozen\"");
        for &stage in Stage::ALL {
            assert!(newer != stage && StageWord::default() != stage, "{stage}");
        }
    }
}
