//! Parses query strings.

use percent_encoding::percent_decode_str;

use crate::errors::{RequestError, excerpt};

/// Longest query, bytes.
const QUERY_MAX: usize = 64 << 10;

/// A query's parameters, decoded, in order.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`. Parameters must be UTF-8 without NUL.
    pub fn parse(raw: &str) -> Result<Self, RequestError> {
        if raw.len() > QUERY_MAX {
            return Err(RequestError::QueryTooLong {
                bytes: raw.len(),
                max: QUERY_MAX,
            });
        }
        let mut pairs = Vec::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Self(pairs))
    }

    /// Returns the first value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Adds a parameter that the path gave.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(0, (name.to_owned(), value.to_owned()));
    }

    /// Returns all parameters.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns a comma list, in one parameter or several; empty if absent.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.all(name)
            .flat_map(|text| text.split(','))
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns all values of this name.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.pairs()
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Returns a number within limits, or `default` if absent.
    pub fn number(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
        default: u64,
    ) -> Result<u64, RequestError> {
        let Some(text) = self.get(name) else {
            return Ok(default);
        };
        text.parse()
            .ok()
            .filter(|number| range.contains(number))
            .ok_or_else(|| RequestError::NotInRange {
                name: name.to_owned(),
                shown: excerpt(text),
                least: *range.start(),
                most: *range.end(),
                default,
            })
    }

    /// Returns true if a switch is on.
    pub fn switch(&self, name: &str) -> Result<bool, RequestError> {
        match self.get(name) {
            None | Some("false" | "0" | "no") => Ok(false),
            Some("" | "true" | "1" | "yes") => Ok(true),
            Some(other) => Err(RequestError::NoSwitch {
                name: name.to_owned(),
                shown: excerpt(other),
            }),
        }
    }
}

/// Decodes one part of a query or path.
pub fn decode(text: &str) -> Result<String, RequestError> {
    let spaced = text.replace('+', " ");
    decode_segment(&spaced)
}

/// Decodes one segment of a path (where `+` is itself).
pub fn decode_segment(text: &str) -> Result<String, RequestError> {
    let decoded = percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| RequestError::NotUtf8)?;
    if decoded.contains('\0') {
        return Err(RequestError::Nul);
    }
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_checked() {
        let query = Query::parse("a=1&b=x%20y+z&c&d=1,,2").unwrap();
        assert_eq!(query.get("b"), Some("x y z"));
        assert_eq!(query.list("d"), ["1", "2"]);
        assert!(query.switch("c").unwrap() && !query.switch("nope").unwrap());
        assert_eq!(query.number("a", 0..=9, 5).unwrap(), 1);
        assert!(
            Query::parse("wait=-1")
                .unwrap()
                .number("wait", 0..=600, 30)
                .is_err()
        );
        assert!(Query::parse("a=%ff").is_err() && Query::parse("a=%00").is_err());
    }
}
