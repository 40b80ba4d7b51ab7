//! Plain metrics: a JSON object of numbers, or of such objects. Nothing else of the file is ever in memory: a list of
//! numbers takes many times the room of its text.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::{METRICS_MAX, NAME_BYTES_MAX, cut};

/// Maximum nesting depth of objects.
const DEPTH_MAX: usize = 8;

/// Reads numbers by name. Names of nested objects are joined by dots. Other values are ignored.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<(String, f64)>, String> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err("is no JSON object".to_owned());
    }
    let mut found = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let top = Named {
        name: String::new(),
        depth: 0,
        found: &mut found,
    };
    let read = top.deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| format!("is no JSON: {error}"))?;
    Ok(found)
}

/// A value, and the destination of its numbers.
struct Named<'f> {
    name: String,
    depth: usize,
    found: &'f mut Vec<(String, f64)>,
}

impl Named<'_> {
    fn number(self, number: f64) {
        if self.found.len() < METRICS_MAX {
            self.found.push((self.name, number));
        }
    }
}

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Named<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if self.depth > DEPTH_MAX || self.found.len() >= METRICS_MAX {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let name = match self.name.as_str() {
                "" => name,
                outer => format!("{outer}.{name}"),
            };
            map.next_value_seed(Named {
                name: cut(&name, NAME_BYTES_MAX),
                depth: self.depth + 1,
                found: &mut *self.found,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a measured number has few digits"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.number(number as f64);
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a measured number has few digits"
    )]
    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.number(number as f64);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.number(number);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_and_all_else_is_passed_over() {
        let text = br#" {"a": 1, "b": {"c": 2.5, "d": {"e": -3}}, "f": [1, {"g": 4}], "h": "5", "i": null, "j": true}"#;
        let found = read(text).unwrap();
        let expected = [("a", 1.0), ("b.c", 2.5), ("b.d.e", -3.0)];
        assert_eq!(found, expected.map(|(name, n)| (name.to_owned(), n)));
        for (text, problem) in [
            ("[]", "no JSON object"),
            ("", "no JSON object"),
            ("{", "is no JSON:"),
            ("{} x", "is no JSON:"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let deep = format!("{}1{}", r#"{"a":"#.repeat(9), "}".repeat(9));
        assert_eq!(read(deep.as_bytes()).unwrap().len(), 1);
        let deeper = format!("{}1{}", r#"{"a":"#.repeat(10), "}".repeat(10));
        assert_eq!(read(deeper.as_bytes()).unwrap(), []);
    }
}
