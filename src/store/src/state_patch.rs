//! Changes of a job's state: named fields, all or nothing.

use fairlead_job::Stage;
use serde_json::{Map, Value};

use crate::JobState;

/// Claimer of a job, and the request that the claim is for.
#[derive(Debug, Clone, Copy)]
pub struct ClaimFields<'a> {
    /// The host.
    pub host: &'a str,
    /// Its group.
    pub host_group: &'a str,
    /// Memory of the whole host, MB.
    pub host_memory_mb: u32,
    /// CPUs of the whole host; 0: it did not say.
    pub host_cpus: u32,
    /// Class of the machine, see [`JobState::host_class`].
    pub host_class: &'a str,
    /// The session of its agent.
    pub session: &'a str,
    /// The number of the agent's request.
    pub request: u64,
    /// New for each claim.
    pub claim_token: &'a str,
    /// The replica that claims.
    pub replica: &'a str,
    /// Now, UTC epoch ms.
    pub dispatch_ms: u64,
}

/// Named fields of a [`JobState`] to set, all or nothing. Fields not named stay as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatePatch(Map<String, Value>);

impl StatePatch {
    /// Creates an empty patch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the difference that turns `before` into `after`: only changed fields, cleared fields as null.
    pub fn between(before: &JobState, after: &JobState) -> Self {
        let (old, new) = (to_map(before), to_map(after));
        let mut patch = Map::new();
        for (key, value) in &new {
            if old.get(key) != Some(value) {
                patch.insert(key.clone(), value.clone());
            }
        }
        for key in old.keys() {
            if !new.contains_key(key) {
                patch.insert(key.clone(), Value::Null);
            }
        }
        Self(patch)
    }

    /// Returns the fields that a claim sets. They are the same for each job, so that a job can be claimed without
    /// reading it.
    pub fn claim(fields: &ClaimFields<'_>) -> Self {
        let set = serde_json::json!({
            "stage": Stage::Dispatch,
            "host": fields.host,
            "host_group": fields.host_group,
            "host_memory_mb": fields.host_memory_mb,
            "host_cpus": fields.host_cpus,
            "host_class": fields.host_class,
            "session": fields.session,
            "request": fields.request,
            "claim_token": fields.claim_token,
            "replica": fields.replica,
            "dispatch_ms": fields.dispatch_ms,
        });
        match set {
            Value::Object(set) => Self(set),
            // The literal above is an object.
            _ => Self::default(),
        }
    }

    /// Returns `state` with these fields set; `None` if they do not make a state.
    pub fn apply(&self, state: &JobState) -> Option<JobState> {
        let mut fields = to_map(state);
        for (name, value) in &self.0 {
            if value.is_null() {
                fields.shift_remove(name);
            } else {
                fields.insert(name.clone(), value.clone());
            }
        }
        serde_json::from_value(Value::Object(fields)).ok()
    }

    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fields, as JSON. A null clears the field.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }
}

fn to_map(state: &JobState) -> Map<String, Value> {
    match serde_json::to_value(state) {
        Ok(Value::Object(map)) => map,
        // A struct of strings, numbers and lists always serializes to an object.
        Ok(_) | Err(_) => Map::new(),
    }
}
