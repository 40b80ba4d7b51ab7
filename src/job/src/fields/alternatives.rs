//! The tags that a host must not have, and alternatives of tags of which the host must meet one.

use serde_json::Value;

use crate::{
    FieldError, Guest, Spec, TboxType,
    fields::{
        content, counted,
        limits::limit_s,
        read::{Charset, LIST_ITEMS_MAX, NAME_BYTES_MAX, known_keys, names, present, refuse},
    },
    units::shown,
};

/// Most alternatives of `any_of`.
pub const ALTERNATIVES_MAX: usize = 4;

const EXAMPLE: &str = "any_of: [{tags: [nvme]}, {tags: [ssd], not_tags: [old]}]";

const ELSE_EXAMPLE: &str = "else: {after: 10m, tags: [ssd]}";

/// One alternative of `any_of`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Alternative {
    /// Tags that the host must have, sorted, without repeats.
    pub tags: Vec<String>,
    /// Tags that the host must not have, sorted, without repeats.
    pub not_tags: Vec<String>,
}

/// One more alternative for a job that has waited for so long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Otherwise {
    /// How long it must be ready and wait, in seconds, at least 1.
    pub after_s: u64,
    /// The alternative.
    pub alternative: Alternative,
}

/// Reads a list of tags or devices: sorted, without repeats.
pub(crate) fn tags(field: &str, value: Option<&Value>) -> Result<Vec<String>, FieldError> {
    let mut tags = names(field, value, Charset::Text, NAME_BYTES_MAX, LIST_ITEMS_MAX)?;
    tags.sort();
    Ok(tags)
}

/// Refuses a tag that a host must have and must not have.
pub(crate) fn check_not_both(
    field: &str,
    tags: &[String],
    not_tags: &[String],
) -> Result<(), FieldError> {
    let Some(both) = not_tags.iter().find(|tag| tags.contains(tag)) else {
        return Ok(());
    };
    let problem = format!("a host must have the tag '{both}' and must not have it");
    refuse(
        field,
        problem,
        "no host meets both: remove the tag from one list",
    )
}

/// Reads `any_of`: up to [`ALTERNATIVES_MAX`] maps, of which a host must meet one. Nothing said is an empty list.
pub(crate) fn any_of(spec: &Spec) -> Result<Vec<Alternative>, FieldError> {
    let items = match present(spec, "any_of") {
        None => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => {
            let problem = format!("{} where a list of alternatives was expected", shown(other));
            return refuse("any_of", problem, EXAMPLE);
        }
    };
    let count = items.len() + usize::from(present(spec, "else").is_some());
    if count > ALTERNATIVES_MAX {
        let problem =
            format!("{count} alternatives with 'else'; at most {ALTERNATIVES_MAX} are allowed");
        return refuse(
            "any_of",
            problem,
            "name fewer, or give hosts a tag in common",
        );
    }
    items.iter().map(alternative).collect()
}

fn alternative(item: &Value) -> Result<Alternative, FieldError> {
    let Some(map) = item.as_object() else {
        let problem = format!("{} where an alternative was expected", shown(item));
        return refuse("any_of", problem, EXAMPLE);
    };
    known_keys("any_of", map, &["tags", "not_tags"], EXAMPLE)?;
    let read = both_lists("any_of", map)?;
    if read == Alternative::default() {
        let problem = "an alternative without tags is met by every host".to_owned();
        return refuse("any_of", problem, EXAMPLE);
    }
    Ok(read)
}

/// The lists of one alternative.
fn both_lists(field: &str, map: &Spec) -> Result<Alternative, FieldError> {
    let read = Alternative {
        tags: tags(&format!("{field}.tags"), present(map, "tags"))?,
        not_tags: tags(&format!("{field}.not_tags"), present(map, "not_tags"))?,
    };
    check_not_both(field, &read.tags, &read.not_tags)?;
    Ok(read)
}

/// Reads `else: {after: 10m, tags: [..], not_tags: [..]}`. Without tags, every host will do then.
pub(crate) fn otherwise(spec: &Spec) -> Result<Option<Otherwise>, FieldError> {
    let map = match present(spec, "else") {
        None => return Ok(None),
        Some(Value::Object(map)) => map,
        Some(other) => {
            let problem = format!("{} where a map was expected", shown(other));
            return refuse("else", problem, ELSE_EXAMPLE);
        }
    };
    known_keys("else", map, &["after", "tags", "not_tags"], ELSE_EXAMPLE)?;
    let Some(after_s) = limit_s(map, "after")?.filter(|seconds| *seconds > 0) else {
        let problem = "'after' is missing".to_owned();
        return refuse("else", problem, ELSE_EXAMPLE);
    };
    Ok(Some(Otherwise {
        after_s,
        alternative: both_lists("else", map)?,
    }))
}

/// Tags that the host of a job must have, or must not have.
pub(crate) struct WantedTags {
    pub(crate) tags: Vec<String>,
    pub(crate) not_tags: Vec<String>,
    pub(crate) any_of: Vec<Alternative>,
    pub(crate) otherwise: Option<Otherwise>,
}

impl WantedTags {
    /// Reads `tags`, `not_tags`, `any_of`, `else` and the numbers; an image, inputs and outputs also are tags. With `else` and without
    /// `any_of`, the tags of the job themselves are the first alternative.
    pub(crate) fn of(spec: &Spec, guest: &Guest, kind: TboxType) -> Result<Self, FieldError> {
        let mut own = Alternative {
            tags: tags("tags", present(spec, "tags"))?,
            not_tags: tags("not_tags", present(spec, "not_tags"))?,
        };
        check_not_both("not_tags", &own.tags, &own.not_tags)?;
        let mut any_of = any_of(spec)?;
        let otherwise = otherwise(spec)?;
        if otherwise.is_some() && any_of.is_empty() {
            if own == Alternative::default() {
                let problem = "the job takes every host at once".to_owned();
                return refuse("else", problem, "name tags, not_tags or any_of, too");
            }
            any_of.push(std::mem::take(&mut own));
        }
        let mut tags = own.tags;
        tags.extend(guest.tag(kind));
        tags.extend(content::tag(spec).map(str::to_owned));
        tags.extend(counted::needed(spec)?);
        tags.sort();
        tags.dedup();
        Ok(Self {
            tags,
            not_tags: own.not_tags,
            any_of,
            otherwise,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Vec<Alternative>, FieldError> {
        let mut spec = Spec::new();
        spec.insert("any_of".to_owned(), value);
        any_of(&spec)
    }

    #[test]
    fn alternatives_are_lists_of_tags() {
        let plain = |tags: &[&str], not_tags: &[&str]| {
            let owned = |list: &[&str]| list.iter().map(|tag| (*tag).to_owned()).collect();
            Alternative {
                tags: owned(tags),
                not_tags: owned(not_tags),
            }
        };
        let two =
            json!([{"tags": ["ssd", "nvme", "ssd"]}, {"not_tags": "old, slow", "tags": "hdd"}]);
        let expected = [
            plain(&["nvme", "ssd"], &[]),
            plain(&["hdd"], &["old", "slow"]),
        ];
        assert_eq!(read(two).unwrap(), expected);
        assert_eq!(read(Value::Null).unwrap(), []);
    }

    #[test]
    fn the_tags_of_a_job_are_the_first_of_its_alternatives() {
        let wanted = |spec: Value| {
            let spec = spec.as_object().cloned().unwrap();
            let guest = Guest::of(&spec, TboxType::Dc)?;
            WantedTags::of(&spec, &guest, TboxType::Dc)
        };
        let read = wanted(json!({
            "tags": "nvme", "not_tags": "old", "need_nodes": 2,
            "else": {"after": "10m", "tags": "ssd"},
        }));
        let read = read.unwrap();
        assert_eq!(
            (read.tags, read.not_tags),
            (vec!["nodes:2+".to_owned()], vec![])
        );
        assert_eq!(read.any_of.len(), 1);
        assert_eq!(read.any_of[0].tags, ["nvme"]);
        let otherwise = read.otherwise.unwrap();
        assert_eq!(
            (otherwise.after_s, otherwise.alternative.tags),
            (600, vec!["ssd".to_owned()])
        );
        // Every host, after a while.
        let read = wanted(json!({"tags": "nvme", "else": {"after": 60}})).unwrap();
        assert_eq!(read.otherwise.unwrap().alternative, Alternative::default());
        let one = json!({"tags": "a"});
        for (spec, words) in [
            (json!({"else": {"after": "10m"}}), "every host at once"),
            (
                json!({"tags": "a", "else": {"tags": "b"}}),
                "'after' is missing",
            ),
            (json!({"tags": "a", "else": "10m"}), "where a map"),
            (
                json!({"tags": "a", "else": {"after": "10m", "tag": "b"}}),
                "'tag' is not a key",
            ),
            (
                json!({"any_of": [one, one, one, one], "else": {"after": 1}}),
                "5 alternatives",
            ),
        ] {
            let error = wanted(spec).err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn what_no_host_or_every_host_meets_is_refused() {
        let one = json!({"tags": "a"});
        let cases = [
            (json!("a"), "a list of alternatives"),
            (json!(["a"]), "where an alternative"),
            (
                json!([one, one, one, one, one]),
                "5 alternatives with 'else'",
            ),
            (json!([{}]), "every host"),
            (json!([{"tags": "a", "not_tags": "a"}]), "must not have it"),
            (json!([{"tag": "a"}]), "'tag' is not a key"),
        ];
        for (value, words) in cases {
            let error = read(value).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
