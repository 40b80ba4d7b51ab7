//! Queues: as admins see and change them, and who may submit into them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;

use crate::{Limits, LimitsChange, limits::object};

/// Who may submit into a queue: `"own"`, `"all"`, or a list of accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueUsers {
    /// Only the account of its name, whose own queue it is. For all others its name is a label in their own queue.
    Own,
    /// All accounts.
    All,
    /// These accounts, and the one of its name.
    Named(Vec<String>),
}

impl Serialize for QueueUsers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Own => "own".serialize(serializer),
            Self::All => "all".serialize(serializer),
            Self::Named(accounts) => accounts.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for QueueUsers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let said = Value::deserialize(deserializer)?;
        match said.as_str() {
            Some("own") => return Ok(Self::Own),
            Some("all") => return Ok(Self::All),
            _ => {}
        }
        let list = serde_json::from_value(said);
        let wanted = |_| D::Error::custom("users: \"own\", \"all\" or a list of accounts");
        list.map(Self::Named).map_err(wanted)
    }
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueView {
    /// Its name.
    pub name: String,
    /// Class, 0 to 9, higher always first.
    pub priority: u8,
    /// Share inside the class.
    pub weight: u32,
    /// Whether nothing of it is dispatched.
    pub paused: bool,
    /// Dispatches that are kept for it whatever waits in higher classes, in thousandths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub background_permille: u16,
    /// Jobs that wait, as the store counts.
    pub waiting: u64,
    /// Jobs that testboxes have.
    pub running: u64,
    /// Its part of the testbox time while busy, in thousandths, among queues of its class with work.
    pub share_permille: u32,
    /// Its part of the testbox time of the last hour, in thousandths; absent: nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got_1h_permille: Option<u32>,
    /// The same of the last 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got_24h_permille: Option<u32>,
    /// The same of the last 7 days; only in snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got_7d_permille: Option<u32>,
    /// Since when the job that waits longest for a host could run, UTC epoch ms; absent: none waits, or nobody counted
    /// lately. Only in snapshots, counted every tenth second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready_ms: Option<u64>,
    /// Whether an admin set its policy.
    pub set: bool,
    /// Its limits.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// Who may submit into it, as an admin said. Absent: nobody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<QueueUsers>,
    /// What an admin should look at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warning: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// A change of a queue: only what is given changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueChange {
    /// Class, 0 to 9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Share inside the class, 1 to 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Whether nothing of it is dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Dispatches that are kept for it whatever waits in higher classes, in thousandths, 0 to 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_permille: Option<u16>,
    /// Its limits.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "LimitsChange::is_none"
    )]
    pub limits: LimitsChange,
    /// Who may submit into it. A new queue for which nobody says it is the own one of the account of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<QueueUsers>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_are_a_word_or_a_list() {
        for users in [
            QueueUsers::Own,
            QueueUsers::All,
            QueueUsers::Named(vec!["ann".to_owned(), "all".to_owned()]),
        ] {
            let change = QueueChange {
                users: Some(users),
                ..QueueChange::default()
            };
            assert_eq!(
                serde_json::from_value::<QueueChange>(json!(change)).unwrap(),
                change
            );
        }
        let nobody: QueueChange = serde_json::from_value(json!({"users": null})).unwrap();
        assert_eq!(nobody.users, None);
        for bad in [json!("ann"), json!(3), json!([3])] {
            let refused = serde_json::from_value::<QueueChange>(json!({ "users": bad }));
            assert!(
                refused
                    .unwrap_err()
                    .to_string()
                    .contains("a list of accounts")
            );
        }
    }
}
