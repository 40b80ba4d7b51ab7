//! Builds the document.

use std::collections::BTreeSet;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    content::Content,
    parameters::{PARAMETERS, Parameter, ParameterKind},
};
use crate::{
    COMMON, Caller, ENDPOINTS, Endpoint, ErrorBody, JOB_TOKEN_HEADER, Parameters, SubmitItem,
    endpoints::described::{CONTENTS, NAMES},
};

/// Where schemas are, in references.
const SCHEMAS: &str = "#/components/schemas/";
/// Where those of bodies are until all are known.
const TAKEN: &str = "#/components/taken/";
/// Ends the name of a body's schema that differs from the one of the same type in answers.
const INPUT: &str = "Input";

/// The OpenAPI 3.1 document of all endpoints.
pub(super) fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for ((endpoint, contents), name) in ENDPOINTS.iter().zip(CONTENTS).zip(NAMES) {
        for method in endpoint.methods {
            let operation = operation(endpoint, *contents, name, method, &mut schemas);
            let path = paths
                .entry(path_of(endpoint.path))
                .or_insert_with(|| json!({}));
            path[method.to_lowercase()] = operation;
        }
    }
    let mut paths = Value::Object(paths);
    let all = schemas.finish(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "fairlead",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "The interface of the dispatcher of test labs. Times are UTC epoch milliseconds where a name \
                ends in _ms. A field that is absent or null is not known or does not apply.",
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": all,
            "securitySchemes": {
                "account": { "type": "http", "scheme": "bearer", "description": "The token of an account. A lab with --open needs none." },
                "job_token": { "type": "apiKey", "in": "header", "name": JOB_TOKEN_HEADER, "description": "The token of a job, from its grant." },
            },
        },
    })
}

/// `/a/:b/*c` as OpenAPI writes it: `/a/{b}/{c}`.
pub(super) fn path_of(path: &str) -> String {
    let parts = path
        .split('/')
        .map(|part| match part.split_once([':', '*']) {
            None => part.to_owned(),
            Some((before, name)) => format!("{before}{{{name}}}"),
        });
    parts.collect::<Vec<_>>().join("/")
}

fn operation(
    endpoint: &Endpoint,
    (takes, answers): (Content, Content),
    name: &str,
    method: &str,
    schemas: &mut Schemas,
) -> Value {
    let mut id = snake(name);
    if endpoint.methods[0] != method {
        id = format!("{id}_by_{}", method.to_lowercase());
    }
    let mut good = json!({ "description": "Done." });
    if !answers.types.is_empty() && method != "HEAD" {
        good["content"] = schemas.content(answers, Way::Answered);
    }
    let is_submit = matches!(name, "Submit" | "OldSubmit");
    let refusal = if is_submit {
        // A request that cannot be read at all is refused as everywhere.
        json!({ "anyOf": [schemas.json::<Vec<SubmitItem>>(), schemas.json::<ErrorBody>()] })
    } else {
        schemas.json::<ErrorBody>()
    };
    let mut responses = json!({ "200": good });
    responses["default"] = json!({ "description": "Refused." });
    if method != "HEAD" {
        responses["default"]["content"] = json!({ "application/json": { "schema": refusal } });
    }
    let mut operation = json!({
        "operationId": id,
        "tags": [tag_of(endpoint.path)],
        "summary": endpoint.does,
        "parameters": parameters_of(endpoint),
        "responses": responses,
    });
    if !takes.types.is_empty() {
        let content = schemas.content(takes, Way::Taken);
        operation["requestBody"] = json!({ "content": content });
    }
    if let Some(security) = security_of(endpoint.caller) {
        operation["security"] = security;
    }
    operation
}

/// Who may call, as ways to say so; a lab with `--open` needs none.
fn security_of(caller: Caller) -> Option<Value> {
    match caller {
        Caller::Anybody => None,
        Caller::JobToken | Caller::JobTokenOrAdmin | Caller::AccountOrJob => {
            Some(json!([{ "job_token": [] }, { "account": [] }, {}]))
        }
        _ => Some(json!([{ "account": [] }, {}])),
    }
}

/// The word behind the version, for a client's folders: `jobs`, `hosts`.
fn tag_of(path: &str) -> &str {
    let mut parts = path.split('/').skip(1);
    match (parts.next(), parts.next(), parts.next()) {
        (Some("scheduler"), Some("v1"), Some(word)) => word,
        (Some("result" | "r"), ..) => "results",
        (Some("srv"), ..) => "boot",
        _ => "service",
    }
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

fn parameters_of(endpoint: &Endpoint) -> Vec<Value> {
    let of_path = endpoint
        .path
        .split('/')
        .filter_map(|part| part.split_once([':', '*']));
    let of_path = of_path.map(|(_, name)| {
        json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 },
            "description": name_means(name),
        })
    });
    let known = match endpoint.parameters {
        Parameters::Known(names) => names,
        Parameters::Any => &[],
    };
    let of_query = known.iter().chain(COMMON).filter_map(|name| {
        let parameter = PARAMETERS
            .iter()
            .find(|parameter| parameter.name == *name)?;
        Some(query_parameter(parameter))
    });
    of_path.chain(of_query).collect()
}

/// What a name in a path stands for.
fn name_means(name: &str) -> &'static str {
    match name {
        "id" => "The id of a job.",
        "hostname" => "The name of a host.",
        "timer" => "The name of a timer.",
        "group" => "The name of a group.",
        "submit" => "The id of a submit.",
        "webhook" => "The id of a webhook.",
        "name" => "The name of a queue.",
        "my_account" => "The name of an account.",
        "path" => "A path of one or more segments.",
        _ => "A word of compass-ci's.",
    }
}

fn query_parameter(parameter: &Parameter) -> Value {
    let text = json!({ "type": "string" });
    let schema = match parameter.kind {
        ParameterKind::Words | ParameterKind::Repeated => json!({ "type": "array", "items": text }),
        ParameterKind::Text => text,
        ParameterKind::Whole { least, most } => {
            let mut schema = json!({ "type": "integer", "minimum": least });
            if let Some(most) = most {
                schema["maximum"] = json!(most);
            }
            schema
        }
        ParameterKind::Switch => json!({ "type": "boolean" }),
        ParameterKind::OneOf(words) => json!({ "type": "string", "enum": words }),
    };
    let mut shown = json!({
        "name": parameter.name, "in": "query", "required": false, "schema": schema,
        "description": parameter.does,
    });
    if matches!(parameter.kind, ParameterKind::Words) {
        // One parameter, words with commas.
        shown["style"] = json!("form");
        shown["explode"] = json!(false);
    }
    shown
}

/// Whether something is sent to the scheduler or by it: what may be left out differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Taken,
    Answered,
}

/// Collects the schemas of all types.
struct Schemas {
    taken: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = |path: &'static str| {
            SchemaSettings::draft2020_12().with(|settings| {
                let path = path.trim_start_matches('#').trim_end_matches('/');
                settings.definitions_path = path.into();
            })
        };
        Self {
            taken: settings(TAKEN).for_deserialize().into_generator(),
            answered: settings(SCHEMAS).for_serialize().into_generator(),
        }
    }

    fn json<T: JsonSchema>(&mut self) -> Value {
        self.answered.subschema_for::<T>().to_value()
    }

    fn content(&mut self, content: Content, way: Way) -> Value {
        let generator = match way {
            Way::Taken => &mut self.taken,
            Way::Answered => &mut self.answered,
        };
        let types = content.types.iter().map(|(media_type, make)| {
            let schema = make.map_or_else(|| json!({}), |make| make(generator).to_value());
            ((*media_type).to_owned(), json!({ "schema": schema }))
        });
        Value::Object(types.collect())
    }

    /// All of them by name. What may be left out of a body is always there in an answer, so one type may have two.
    fn finish(mut self, paths: &mut Value) -> Value {
        let mut all = self.answered.take_definitions(true);
        let mut taken = self.taken.take_definitions(true);
        let both: BTreeSet<String> = taken
            .keys()
            .filter(|name| all.contains_key(*name))
            .cloned()
            .collect();
        let mut apart = BTreeSet::new();
        loop {
            let as_answered = |name: &String| {
                let mut schema = taken[name].clone();
                refer(&mut schema, &apart);
                schema
            };
            let found: BTreeSet<String> = both
                .iter()
                .filter(|name| as_answered(name) != all[*name])
                .cloned()
                .collect();
            if found == apart {
                break;
            }
            apart = found;
        }
        refer(paths, &apart);
        for (name, mut schema) in std::mem::take(&mut taken) {
            refer(&mut schema, &apart);
            all.insert(name_of(&name, &apart), schema);
        }
        all.sort_keys();
        Value::Object(all)
    }
}

fn name_of(name: &str, apart: &BTreeSet<String>) -> String {
    let suffix = if apart.contains(name) { INPUT } else { "" };
    format!("{name}{suffix}")
}

/// Gives references to types of bodies the names that these have among all.
fn refer(schema: &mut Value, apart: &BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                let name = value.as_str().filter(|_| key == "$ref");
                match name.and_then(|text| text.strip_prefix(TAKEN)) {
                    Some(name) => *value = json!(format!("{SCHEMAS}{}", name_of(name, apart))),
                    None => refer(value, apart),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, apart)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    found.extend(value.as_str().filter(|_| key == "$ref"));
                    references(value, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema_and_every_parameter_is_described() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 20, "{found:?}");
        for reference in found {
            let name = reference.strip_prefix(SCHEMAS).unwrap_or(reference);
            assert!(
                document["components"]["schemas"][name].is_object(),
                "{reference}"
            );
        }
        let mut names: BTreeSet<&str> = COMMON.iter().copied().collect();
        for endpoint in ENDPOINTS {
            if let Parameters::Known(known) = endpoint.parameters {
                names.extend(known);
            }
        }
        for name in names {
            assert!(
                PARAMETERS.iter().any(|parameter| parameter.name == name),
                "{name}"
            );
        }
    }

    #[test]
    fn a_type_that_differs_as_a_body_has_a_name_of_its_own() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        let of_body = |path: &str| {
            document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
                ["$ref"]
                .clone()
        };
        let consume = of_body("/scheduler/v1/testboxes/{hostname}/consume");
        assert_eq!(consume, "#/components/schemas/ConsumeRequest");
        assert_eq!(schemas["ConsumeRequest"]["required"][0], "session");
        let all: Vec<&String> = schemas
            .as_object()
            .unwrap()
            .keys()
            .filter(|name| name.ends_with(INPUT))
            .collect();
        for name in all {
            assert!(schemas[name.trim_end_matches(INPUT)].is_object(), "{name}");
        }
    }
}
