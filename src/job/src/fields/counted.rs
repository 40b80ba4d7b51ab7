//! Numbers that a host must have at least, such as of NUMA nodes: each is a tag.

use crate::{
    FieldError, Spec,
    fields::read::number,
    machine::{COUNT_MAX, COUNTED, at_least},
};

/// The fields that ask for them, in the same order.
const ASKED: [&str; COUNTED.len()] = ["need_disks", "need_nics", "need_nodes"];

/// The tags that a host must have for `need_disks`, `need_nics` and `need_nodes`.
pub(crate) fn needed(spec: &Spec) -> Result<Vec<String>, FieldError> {
    let mut tags = Vec::new();
    for (field, what) in ASKED.into_iter().zip(COUNTED) {
        if let Some(number) = number(spec, field)? {
            tags.push(at_least(what, u32::try_from(number).unwrap_or(COUNT_MAX)));
        }
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_tags() {
        let spec = |text: serde_json::Value| text.as_object().cloned().unwrap_or_default();
        let tags = needed(&spec(json!({"need_nodes": 2, "need_disks": "3"}))).unwrap();
        assert_eq!(tags, ["disks:3+", "nodes:2+"]);
        assert!(
            needed(&spec(json!({"need_nics": null})))
                .unwrap()
                .is_empty()
        );
        for bad in [json!(0), json!(65), json!("many")] {
            let error = needed(&spec(json!({"need_nics": bad}))).unwrap_err();
            assert_eq!(error.field, "need_nics");
        }
    }
}
