//! Writes the interface as a page for people: routes, parameters and types, from the same table as the document.

use serde_json::{Map, Value};

use super::{
    document::{document, path_of},
    parameters::{PARAMETERS, Parameter, ParameterKind},
};
use crate::{COMMON, Caller, ENDPOINTS, Endpoint, Parameters};

/// What stands before the tables.
const HEAD: &str = "\
# Reference of the HTTP interface

For people who write clients of fairlead. [The HTTP interface](api.md) explains the rules, and begins with a walk. This page is made from the table of
endpoints: `FAIRLEAD_WRITE_DOCS=1 cargo test -p fairlead-api` writes it. A scheduler serves the same for programs at `/openapi.json`.

Every route takes the query parameters `token` and `my_account`, too. A refusal is an [ErrorBody](#errorbody).
";
/// Where schemas are, in references.
const SCHEMAS: &str = "#/components/schemas/";

/// The page.
pub(super) fn reference() -> String {
    let document = document();
    let mut page = HEAD.to_owned();
    page.push_str("\n## Endpoints\n\n| endpoint | who | what | query | body | answer |\n|---|---|---|---|---|---|\n");
    for endpoint in ENDPOINTS {
        page.push_str(&row_of(endpoint, &document));
    }
    page.push_str("\n## Query parameters\n\n| parameter | value | meaning |\n|---|---|---|\n");
    for parameter in PARAMETERS {
        page.push_str(&row_of_parameter(parameter));
    }
    page.push_str("\n## Types\n");
    let none = Map::new();
    let schemas = document["components"]["schemas"].as_object();
    for (name, schema) in schemas.unwrap_or(&none) {
        page.push_str(&type_of(name, schema));
    }
    page
}

/// Who may call.
fn who(caller: Caller) -> &'static str {
    match caller {
        Caller::Anybody => "anybody",
        Caller::Account | Caller::Signer | Caller::Submitter => "an account",
        Caller::Testbox | Caller::Worker | Caller::Booter => "a testbox",
        Caller::Admin => "an admin",
        Caller::JobToken => "the job's token",
        Caller::JobTokenOrAdmin => "the job's token, or an admin",
        Caller::AccountOrJob => "an account, or a job's token",
        Caller::Replica => "a replica",
    }
}

fn row_of(endpoint: &Endpoint, document: &Value) -> String {
    let ways = endpoint.methods.iter();
    let ways: Vec<String> = ways
        .map(|method| format!("`{method} {}`", endpoint.path))
        .collect();
    let query = match endpoint.parameters {
        Parameters::Any => "any".to_owned(),
        Parameters::Known(names) => {
            let names = names.iter().filter(|name| !COMMON.contains(name));
            names
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        }
    };
    let method = endpoint.methods[0].to_lowercase();
    let operation = &document["paths"][path_of(endpoint.path)][method];
    let body = content(&operation["requestBody"]["content"]);
    let answer = content(&operation["responses"]["200"]["content"]);
    let cells = [
        ways.join(", "),
        who(endpoint.caller).to_owned(),
        cell(endpoint.does),
        query,
        body,
        answer,
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// The media types of a body, or their types.
fn content(content: &Value) -> String {
    let Some(types) = content.as_object() else {
        return String::new();
    };
    let words = types.iter().map(|(media_type, said)| {
        let schema = &said["schema"];
        let is_open = schema.as_object().is_none_or(Map::is_empty);
        match media_type.as_str() {
            "application/json" if !is_open => kind(schema),
            _ if is_open => format!("`{media_type}`"),
            _ => format!("`{media_type}` of {}", kind(schema)),
        }
    });
    words.collect::<Vec<_>>().join(", or ")
}

fn row_of_parameter(parameter: &Parameter) -> String {
    let value = match parameter.kind {
        ParameterKind::Words => "words with commas".to_owned(),
        ParameterKind::Repeated => "a text; may be repeated".to_owned(),
        ParameterKind::Text => "a text".to_owned(),
        ParameterKind::Whole { least, most: None } => format!("a whole number from {least}"),
        ParameterKind::Whole {
            least,
            most: Some(most),
        } => format!("a whole number, {least} to {most}"),
        ParameterKind::Switch => "`true` or `false`".to_owned(),
        ParameterKind::OneOf(words) => {
            let words = words.iter().map(|word| format!("`{word}`"));
            words.collect::<Vec<_>>().join(", ")
        }
    };
    format!(
        "| `{}` | {value} | {} |\n",
        parameter.name,
        cell(parameter.does)
    )
}

/// A type: what it is, and its fields.
fn type_of(name: &str, schema: &Value) -> String {
    let about = schema["description"].as_str().unwrap_or_default();
    let mut text = format!("\n### {name}\n\n| field | value | meaning |\n|---|---|---|\n");
    let required = schema["required"].as_array();
    let is_required = |field: &str| required.is_some_and(|all| all.iter().any(|one| one == field));
    let about = format!("| | {} | {} |\n", kind_of_type(schema), cell(about));
    text.push_str(&about);
    let fields = schema["properties"].as_object();
    for (field, schema) in fields.into_iter().flatten() {
        let mark = if is_required(field) { "" } else { "?" };
        let meaning = cell(schema["description"].as_str().unwrap_or_default());
        let row = format!("| `{field}`{mark} | {} | {meaning} |\n", kind(schema));
        text.push_str(&row);
    }
    text
}

/// What a type is as a whole.
fn kind_of_type(schema: &Value) -> String {
    if schema["properties"].is_object() {
        return "an object; `?` marks fields that may be missing".to_owned();
    }
    kind(schema)
}

/// What values fit a schema, in words.
fn kind(schema: &Value) -> String {
    if let Some(place) = schema["$ref"].as_str() {
        let name = place.trim_start_matches(SCHEMAS);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    let ways = ["anyOf", "oneOf"];
    if let Some(ways) = ways.iter().find_map(|way| schema[*way].as_array()) {
        let ways = ways.iter().filter(|way| way["type"] != "null").map(kind);
        return ways.collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str);
        return words
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    let of_type = |name: &str| match name {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" => match &schema["additionalProperties"] {
            Value::Object(values) if !values.is_empty() => {
                format!("map of {}", kind(&schema["additionalProperties"]))
            }
            _ => "object".to_owned(),
        },
        name => name.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => of_type(name),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            let names = names.filter(|name| *name != "null").map(of_type);
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// A text that does not end its cell.
fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_route_and_type_has_its_place() {
        let page = reference();
        for endpoint in ENDPOINTS {
            let way = format!("`{} {}`", endpoint.methods[0], endpoint.path);
            assert!(page.contains(&way), "{way}");
        }
        let links = page.split("](#").skip(1);
        for link in links.filter_map(|rest| rest.split(')').next()) {
            let heading = |line: &str| {
                line.strip_prefix("### ")
                    .is_some_and(|name| name.to_lowercase() == link)
            };
            assert!(page.lines().any(heading), "#{link}");
        }
        let columns = |line: &&str| line.starts_with("| `");
        for line in page.lines().filter(columns) {
            let bars = line.replace("\\|", "").matches('|').count();
            assert!(bars == 4 || bars == 7, "{line}");
        }
    }

    #[test]
    fn kinds_are_said_in_words() {
        for (schema, said) in [
            (json!({"type": ["string", "null"]}), "string"),
            (
                json!({"type": "array", "items": {"type": "integer"}}),
                "list of integer",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "number"}}),
                "map of number",
            ),
            (json!({"enum": ["a", "b"]}), "`a`, `b`"),
            (
                json!({"anyOf": [{"$ref": "#/components/schemas/Peer"}, {"type": "null"}]}),
                "[Peer](#peer)",
            ),
            (json!({}), "any"),
        ] {
            assert_eq!(kind(&schema), said, "{schema}");
        }
    }
}
