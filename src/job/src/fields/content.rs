//! `inputs` and `outputs`: files by content that a job gets, and files that it leaves.

use serde_json::Value;

use crate::{
    FieldError, Spec,
    fields::read::{Charset, checked, known_keys, present, refuse},
    units::shown,
};

const INPUTS: &str = "inputs";
const OUTPUTS: &str = "outputs";
/// The tag of hosts whose agent fetches inputs and puts outputs: a job with either goes to no other.
pub const CONTENT_TAG: &str = "agent-content";
/// Most inputs of a job.
pub const INPUTS_MAX: usize = 16;
/// Most paths of outputs of a job.
pub const OUTPUTS_MAX: usize = 64;
/// Longest path of a folder of an input or of an output, bytes.
const PATH_BYTES_MAX: usize = 512;
/// Digits of the id of an input.
const ID_DIGITS: usize = 64;
const EXAMPLE: &str =
    "an id, {id: ID, folder: kernel}, {from: build} with a job of 'needs', or a list of these";

/// Files that a job finds in its `inputs` folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Which.
    pub of: InputOf,
    /// The folder below `inputs` that they go to; empty: `inputs` itself.
    pub folder: String,
}

/// Where the files of an input come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputOf {
    /// Content of this id: 64 hexadecimal digits in lower case.
    Id(String),
    /// The outputs of the job of this name, which it needs.
    From(String),
}

impl Input {
    /// The folders of the inputs of a job that was taken, in its order.
    ///
    /// # Errors
    /// Fails for an invalid input.
    pub fn folders(spec: &Spec) -> Result<Vec<String>, FieldError> {
        let inputs = Self::listed(spec)?.into_iter();
        Ok(inputs.map(|input| input.folder).collect())
    }

    /// The inputs of a job that was taken, in its order.
    ///
    /// # Errors
    /// Fails for an invalid input.
    pub fn listed(spec: &Spec) -> Result<Vec<Self>, FieldError> {
        items(spec, INPUTS).iter().map(Self::of).collect()
    }

    /// The ids that are among the inputs of a spec, whatever else is.
    pub fn ids(spec: &Spec) -> Vec<String> {
        let inputs = items(spec, INPUTS).iter();
        let inputs = inputs.filter_map(|item| Self::of(item).ok());
        inputs
            .filter_map(|input| match input.of {
                InputOf::Id(id) => Some(id),
                InputOf::From(_) => None,
            })
            .collect()
    }

    /// The inputs of a job, in its order, at most [`INPUTS_MAX`].
    ///
    /// # Errors
    /// Fails for an invalid input, two inputs of one folder, and outputs of a job that it does not need.
    pub(crate) fn all_of(spec: &Spec, needs: &[String]) -> Result<Vec<Self>, FieldError> {
        let items = items(spec, INPUTS);
        if items.len() > INPUTS_MAX {
            let problem = format!("{} inputs; at most {INPUTS_MAX} are allowed", items.len());
            return refuse(INPUTS, problem, "put several folders as one input");
        }
        let mut inputs: Vec<Self> = Vec::with_capacity(items.len());
        for item in items {
            let input = Self::of(item)?;
            // A part of a job needs what the whole needs.
            if let InputOf::From(name) = &input.of
                && !needs.contains(name)
                && !spec.contains_key("shard_of")
            {
                let problem = format!("it is from {}, which 'needs' does not name", quoted(name));
                return refuse(INPUTS, problem, &format!("write needs: [{name}]"));
            }
            if inputs.iter().any(|other| other.folder == input.folder) {
                let problem = format!("two inputs go to folder {}", quoted(&input.folder));
                return refuse(
                    INPUTS,
                    problem,
                    "give each a folder of its own: {id: ID, folder: NAME}",
                );
            }
            inputs.push(input);
        }
        Ok(inputs)
    }

    fn of(item: &Value) -> Result<Self, FieldError> {
        let map = match item {
            Value::String(text) => {
                let (of, folder) = (InputOf::Id(id(text)?), String::new());
                return Ok(Self { of, folder });
            }
            Value::Object(map) => map,
            other => {
                let problem = format!("{} is no input", shown(other));
                return refuse(INPUTS, problem, &format!("write {EXAMPLE}"));
            }
        };
        known_keys(INPUTS, map, &["id", "from", "folder"], EXAMPLE)?;
        let of = match (present(map, "id"), present(map, "from")) {
            (Some(Value::String(text)), None) => InputOf::Id(id(text)?),
            (None, Some(name)) => {
                InputOf::From(checked(INPUTS, name, Charset::Text, PATH_BYTES_MAX)?)
            }
            _ => {
                let problem = format!("{} has not one of 'id' and 'from'", shown(item));
                return refuse(INPUTS, problem, &format!("write {EXAMPLE}"));
            }
        };
        let folder = match present(map, "folder") {
            None => String::new(),
            Some(folder) => path(INPUTS, folder)?,
        };
        Ok(Self { of, folder })
    }
}

/// The paths of a job's outputs below its `outputs` folder, in its order, without repeats, at most [`OUTPUTS_MAX`].
/// `.` is all of it.
///
/// # Errors
/// Fails if it is no list of such paths.
pub fn outputs(spec: &Spec) -> Result<Vec<String>, FieldError> {
    let items = items(spec, OUTPUTS);
    if items.len() > OUTPUTS_MAX {
        let problem = format!("{} paths; at most {OUTPUTS_MAX} are allowed", items.len());
        return refuse(OUTPUTS, problem, "name a folder, or '.' for all");
    }
    let mut paths: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let path = if item == "." {
            ".".to_owned()
        } else {
            path(OUTPUTS, item)?
        };
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// The tag that a host must have for the inputs and outputs of a job; `None`: it has neither.
pub(crate) fn tag(spec: &Spec) -> Option<&'static str> {
    let has_any = [INPUTS, OUTPUTS].map(|field| !items(spec, field).is_empty());
    has_any.contains(&true).then_some(CONTENT_TAG)
}

/// Returns the items of a field. A single value is a list of one.
fn items<'s>(spec: &'s Spec, field: &str) -> &'s [Value] {
    match present(spec, field) {
        None => &[],
        Some(Value::Array(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
    }
}

fn quoted(name: &str) -> String {
    shown(&Value::from(name))
}

fn id(text: &str) -> Result<String, FieldError> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == ID_DIGITS && text.bytes().all(is_digit) {
        return Ok(text.to_owned());
    }
    let problem = format!(
        "{} is no id of an input: 64 hexadecimal digits",
        quoted(text)
    );
    refuse(INPUTS, problem, "'fairlead put DIR' prints the id")
}

/// A path that stays inside of its folder.
fn path(field: &str, value: &Value) -> Result<String, FieldError> {
    let text = checked(field, value, Charset::Text, PATH_BYTES_MAX)?;
    let text = text.strip_suffix('/').unwrap_or(&text).to_owned();
    if text.split('/').any(|name| matches!(name, "" | "." | "..")) {
        let problem = format!("{} leaves its folder", shown(value));
        return refuse(field, problem, "write a relative path without '.' and '..'");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: &Value) -> Spec {
        value.as_object().expect("a map").clone()
    }

    fn id_of(letter: &str) -> String {
        letter.repeat(64)
    }

    #[test]
    fn inputs_are_ids_and_outputs_of_needed_jobs() {
        let a = id_of("a");
        let job = spec(
            &json!({"inputs": [a, {"id": id_of("b"), "folder": "k/v/"}, {"from": "build", "folder": "b"}]}),
        );
        let inputs = Input::all_of(&job, &["build".to_owned()]).unwrap();
        let folders: Vec<&str> = inputs.iter().map(|input| input.folder.as_str()).collect();
        assert_eq!(folders, ["", "k/v", "b"]);
        assert_eq!(inputs[0].of, InputOf::Id(a.clone()));
        assert_eq!(inputs[2].of, InputOf::From("build".to_owned()));
        assert_eq!(
            Input::all_of(&spec(&json!({"inputs": a})), &[])
                .unwrap()
                .len(),
            1
        );
        assert_eq!(Input::all_of(&spec(&json!({})), &[]), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_input_says_why() {
        for (value, word) in [
            (json!("abc"), "64 hexadecimal"),
            (json!(id_of("A")), "64 hexadecimal"),
            (json!(7), "is no input"),
            (json!({"id": id_of("a"), "from": "b"}), "not one of"),
            (json!({"folder": "x"}), "not one of"),
            (json!({"id": id_of("a"), "path": "x"}), "not a key"),
            (json!({"from": "b"}), "'needs' does not name"),
            (
                json!({"id": id_of("a"), "folder": "../x"}),
                "leaves its folder",
            ),
            (
                json!({"id": id_of("a"), "folder": "/x"}),
                "leaves its folder",
            ),
            (json!([id_of("a"), id_of("b")]), "two inputs"),
            (json!(vec![id_of("a"); 17]), "at most 16"),
        ] {
            let error = Input::all_of(&spec(&json!({"inputs": value})), &[]).unwrap_err();
            assert!(error.to_string().contains(word), "{value}: {error}");
        }
    }

    #[test]
    fn outputs_are_paths_inside() {
        let read = |value: Value| outputs(&spec(&json!({"outputs": value})));
        assert_eq!(read(json!("vmlinux")), Ok(vec!["vmlinux".to_owned()]));
        assert_eq!(
            read(json!(["a/b/", ".", "a/b"])),
            Ok(vec!["a/b".to_owned(), ".".to_owned()])
        );
        for bad in [
            json!("../x"),
            json!("/x"),
            json!({"a": 1}),
            json!(["a//b"]),
            json!(vec!["x"; 65]),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
