//! Compares answers with the description of the interface.

use std::collections::BTreeSet;

use serde_json::Value;

/// The API description, and the parts of it that were seen.
pub(crate) struct Described {
    pub(crate) document: Value,
    pub(crate) seen: BTreeSet<String>,
    pub(crate) problems: Vec<String>,
}

impl Described {
    /// Follows references.
    fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
        match schema["$ref"].as_str() {
            Some(place) => {
                let found = document.pointer(place.trim_start_matches('#'));
                Self::resolved(document, found.expect("a schema"))
            }
            None => schema,
        }
    }

    /// Returns the parts of a value that are not described.
    fn strange(document: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let schema = Self::resolved(document, schema);
        if let Some(ways) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            let mut tried = ways
                .iter()
                .map(|way| Self::strange(document, way, value, at));
            let best = tried.by_ref().min_by_key(Vec::len);
            return best.unwrap_or_default();
        }
        let types = match &schema["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let fits = types.contains(&kind) || (kind == "integer" && types.contains(&"number"));
        // An empty schema describes any value.
        let is_any = types.is_empty() && schema["properties"].is_null();
        if is_any && schema["additionalProperties"].is_null() {
            return Vec::new();
        }
        if !types.is_empty() && !fits {
            return vec![format!("{at}: {value} is no {types:?}")];
        }
        match value {
            Value::Array(items) => {
                let each = items.iter();
                each.flat_map(|item| {
                    Self::strange(document, &schema["items"], item, &format!("{at}[]"))
                })
                .collect()
            }
            Value::Object(fields) => {
                let missing = schema["required"].as_array().into_iter().flatten();
                let missing = missing.filter_map(Value::as_str);
                let missing = missing.filter(|name| !fields.contains_key(*name));
                let missing: Vec<String> = missing
                    .map(|name| format!("{at}.{name} is missing"))
                    .collect();
                let each = fields.iter().flat_map(|(name, value)| {
                    let at = format!("{at}.{name}");
                    match &schema["properties"][name] {
                        Value::Null => match &schema["additionalProperties"] {
                            Value::Null | Value::Bool(false) => vec![at],
                            more => Self::strange(document, more, value, &at),
                        },
                        known => Self::strange(document, known, value, &at),
                    }
                });
                missing.into_iter().chain(each).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Compares an answer with the description of its path.
    pub(crate) fn check(&mut self, method: &str, path: &str, answer: &Value) {
        let pointer = path.replace('~', "~0").replace('/', "~1");
        let operation = format!("/paths/{pointer}/{method}/responses/200/content");
        let content = self.document.pointer(&operation);
        let content = content.unwrap_or_else(|| panic!("{method} {path} is not described"));
        let schema = &content["application/json"]["schema"];
        let found = Self::strange(&self.document, schema, answer, path);
        self.problems.extend(found);
        self.seen.insert(format!("{method} {path}"));
    }

    /// Returns all operations that answer with JSON of a described shape.
    pub(crate) fn all(&self) -> BTreeSet<String> {
        let paths = self.document["paths"].as_object().expect("paths");
        let mut all = BTreeSet::new();
        for (path, methods) in paths {
            for (method, operation) in methods.as_object().expect("methods") {
                let content = &operation["responses"]["200"]["content"];
                let schema = &content["application/json"]["schema"];
                if schema.as_object().is_some_and(|schema| !schema.is_empty()) && method != "head" {
                    all.insert(format!("{method} {path}"));
                }
            }
        }
        all
    }
}
