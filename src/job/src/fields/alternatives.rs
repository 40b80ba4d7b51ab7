//! The tags that a host must not have, and alternatives of tags of which the host must meet one.

use serde_json::Value;

use crate::{
    FieldError, Spec,
    fields::read::{Charset, LIST_ITEMS_MAX, NAME_BYTES_MAX, known_keys, names, present, refuse},
    units::shown,
};

/// Most alternatives of `any_of`.
pub const ALTERNATIVES_MAX: usize = 4;

const EXAMPLE: &str = "any_of: [{tags: [nvme]}, {tags: [ssd], not_tags: [old]}]";

/// One alternative of `any_of`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Alternative {
    /// Tags that the host must have, sorted, without repeats.
    pub tags: Vec<String>,
    /// Tags that the host must not have, sorted, without repeats.
    pub not_tags: Vec<String>,
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
    if items.len() > ALTERNATIVES_MAX {
        let problem = format!(
            "{} alternatives; at most {ALTERNATIVES_MAX} are allowed",
            items.len()
        );
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
    let read = Alternative {
        tags: tags("any_of.tags", present(map, "tags"))?,
        not_tags: tags("any_of.not_tags", present(map, "not_tags"))?,
    };
    if read == Alternative::default() {
        let problem = "an alternative without tags is met by every host".to_owned();
        return refuse("any_of", problem, EXAMPLE);
    }
    check_not_both("any_of", &read.tags, &read.not_tags)?;
    Ok(read)
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
    fn what_no_host_or_every_host_meets_is_refused() {
        let one = json!({"tags": "a"});
        let cases = [
            (json!("a"), "a list of alternatives"),
            (json!(["a"]), "where an alternative"),
            (json!([one, one, one, one, one]), "5 alternatives"),
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
