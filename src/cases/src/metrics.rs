//! Plain metrics: a JSON object of numbers, or of such objects.

use serde_json::{Map, Value};

use crate::{METRICS_MAX, NAME_BYTES_MAX, cut};

/// How deep objects may lie in each other.
const DEPTH_MAX: usize = 8;

/// Reads numbers by name; names of objects in objects are divided by dots. Other values are passed over.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<(String, f64)>, String> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => {
            let mut found = Vec::new();
            collect(&map, "", 0, &mut found);
            Ok(found)
        }
        Ok(_) => Err("is no JSON object".to_owned()),
        Err(error) => Err(format!("is no JSON: {error}")),
    }
}

fn collect(map: &Map<String, Value>, prefix: &str, depth: usize, found: &mut Vec<(String, f64)>) {
    for (name, value) in map {
        if found.len() >= METRICS_MAX {
            return;
        }
        let name = format!("{prefix}{name}");
        match value {
            Value::Number(number) => {
                if let Some(number) = number.as_f64() {
                    found.push((cut(&name, NAME_BYTES_MAX), number));
                }
            }
            Value::Object(inner) if depth < DEPTH_MAX => {
                collect(inner, &format!("{name}."), depth + 1, found);
            }
            _ => {}
        }
    }
}
