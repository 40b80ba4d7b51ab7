//! `group`: jobs that are submitted one by one and have one result.

use serde_json::{Map, Value, json};

use crate::{
    FieldError, Spec,
    fields::{
        limits::limit_s,
        read::{Charset, known_keys, name, present, refuse, yes},
        table::{Use, fields, is_field},
    },
};

/// The field.
const FIELD: &str = "group";
const EXAMPLE: &str = "group: NAME, or group: {id: NAME, shard: NAME, within: 2h, fail_fast: true}";
/// How long a group may stay open, seconds: a day. Also the default.
pub const GROUP_WITHIN_MAX_S: u64 = 86_400;

/// The open group that a job joins as one of its shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name among the groups of the account, 1 to 128 bytes.
    pub id: String,
    /// The name of this shard in it, 1 to 128 bytes: a second job of this name is the same shard.
    pub shard: Option<String>,
    /// How long the group may take from its first shard on, seconds, 1 to a day.
    pub within_s: u64,
    /// True if the first shard that fails for good stops the others.
    pub fail_fast: bool,
}

impl Group {
    /// Reads `group`; `None`: the job is in no group.
    ///
    /// # Errors
    /// It is no name and no such map, or stands beside a field that says something of several jobs.
    pub fn of(spec: &Spec) -> Result<Option<Self>, FieldError> {
        let group = match present(spec, FIELD) {
            None => return Ok(None),
            Some(Value::Object(map)) => Self::of_map(map)?,
            Some(_) => Self::named(name(spec, FIELD, Charset::Path)?),
        };
        if group.id.is_empty() {
            return refuse(FIELD, "id is missing".to_owned(), EXAMPLE);
        }
        if let Some(other) = fields(Use::NoGroup).find(|field| present(spec, field).is_some()) {
            let problem = format!("group and {other} exclude each other");
            return refuse(
                FIELD,
                problem,
                "a job of a group is one job, named by group.shard",
            );
        }
        Ok(Some(group))
    }

    fn named(id: String) -> Self {
        Self {
            id,
            shard: None,
            within_s: GROUP_WITHIN_MAX_S,
            fail_fast: false,
        }
    }

    fn of_map(map: &Map<String, Value>) -> Result<Self, FieldError> {
        const KEYS: [&str; 4] = ["id", "shard", "within", "fail_fast"];
        known_keys(FIELD, map, &KEYS, EXAMPLE)?;
        let below = |error: FieldError| error.below(FIELD);
        let within_s = limit_s(map, "within").map_err(below)?;
        let within_s = within_s.unwrap_or(GROUP_WITHIN_MAX_S);
        if within_s > GROUP_WITHIN_MAX_S {
            let problem = format!("{within_s} s; at most {GROUP_WITHIN_MAX_S} are possible");
            return refuse("group.within", problem, "use a group for each day");
        }
        let shard = name(map, "shard", Charset::Path).map_err(below)?;
        Ok(Self {
            shard: Some(shard).filter(|shard| !shard.is_empty()),
            within_s,
            fail_fast: yes(map, "fail_fast").map_err(below)?,
            ..Self::named(name(map, "id", Charset::Path).map_err(below)?)
        })
    }

    /// Returns the spec of the group's parent, opened by the job `first`.
    pub fn parent_spec(&self, first: &Spec) -> Spec {
        let mut spec = first.clone();
        for field in fields(Use::OwnInGroup) {
            spec.shift_remove(field);
        }
        if present(&spec, "suite").is_none() {
            spec.insert("suite".to_owned(), json!("script"));
        }
        if let Some(Value::Object(mut secrets)) = spec.shift_remove("secrets") {
            secrets.retain(|name, _| is_field(name, Use::Told));
            if !secrets.is_empty() {
                spec.insert("secrets".to_owned(), Value::Object(secrets));
            }
        }
        let group = json!({
            "id": self.id,
            "within": self.within_s,
            "fail_fast": self.fail_fast,
        });
        spec.insert(FIELD.to_owned(), group);
        spec
    }

    /// Returns the spec of the shard. Receivers are told of the whole group.
    pub fn shard_spec(mut spec: Spec) -> Spec {
        for field in fields(Use::Told) {
            spec.shift_remove(field);
            if let Some(secrets) = spec.get_mut("secrets").and_then(Value::as_object_mut) {
                secrets.shift_remove(field);
            }
        }
        spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &Value) -> Result<Option<Group>, FieldError> {
        Group::of(&fields.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn a_group_is_a_name_or_a_map() {
        let named = read(&json!({"group": "run-7"})).unwrap().unwrap();
        assert_eq!((named.id.as_str(), named.within_s), ("run-7", 86_400));
        assert_eq!(named.shard, None);
        let all = json!({"group": {"id": 7, "shard": "a", "within": "2h", "fail_fast": true}});
        let all = read(&all).unwrap().unwrap();
        let group = Group {
            id: "7".to_owned(),
            shard: Some("a".to_owned()),
            within_s: 7_200,
            fail_fast: true,
        };
        assert_eq!(all, group);
        assert_eq!(read(&json!({"suite": "x"})).unwrap(), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (wrong, field) in [
            (json!({"group": {}}), "group"),
            (json!({"group": ["a"]}), "group"),
            (json!({"group": {"id": "a", "with": 1}}), "group"),
            (
                json!({"group": {"id": "a", "within": "2d"}}),
                "group.within",
            ),
            (json!({"group": {"id": "a/b"}}), "group.id"),
            (json!({"group": "a", "shards": 2}), "group"),
            (json!({"group": "a", "idempotency_key": "k"}), "group"),
        ] {
            let error = read(&wrong).unwrap_err();
            assert_eq!(error.field, field, "{wrong}: {error:?}");
        }
    }

    #[test]
    fn the_parent_keeps_who_is_told_and_the_shard_does_not() {
        let spec = json!({
            "script": "true", "group": {"id": "g", "shard": "1"},
            "callback": "https://ci/x", "notify": "https://chat/x",
            "secrets": {"callback": "k", "notify": "n", "PASS": "p"},
        });
        let spec = spec.as_object().cloned().unwrap();
        let group = Group::of(&spec).unwrap().unwrap();
        let parent = Value::Object(group.parent_spec(&spec));
        assert_eq!(parent["suite"], json!("script"));
        assert_eq!(parent["secrets"], json!({"callback": "k", "notify": "n"}));
        assert_eq!(parent["group"]["id"], json!("g"));
        assert_eq!(parent["group"].get("shard"), None);
        assert_eq!(parent.get("script"), None);
        let shard = Value::Object(Group::shard_spec(spec));
        assert_eq!(shard["secrets"], json!({"PASS": "p"}));
        assert_eq!((shard.get("callback"), shard.get("notify")), (None, None));
    }
}
