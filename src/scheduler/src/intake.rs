//! Reading the body of a submit: JSON as it is, YAML expanded. Pure, and fuzzed with arbitrary bytes.

use fairlead_api::{ErrorBody, ErrorCode};
use fairlead_job::{ExpandOptions, NoFiles, Spec, expand_text};
use serde_json::Value;

use crate::Limits;

/// How deep a job may nest. `serde_json` itself stops at 128.
const DEPTH_MAX: usize = 64;

/// One job of a submit, or why that one is refused.
pub type Item = Result<Spec, ErrorBody>;

/// Larger bodies take longer to read than to hand to another thread, bytes.
const QUICK_BYTES: usize = 32 << 10;

/// Whether a body is read in less time than it takes to ask another thread: a little JSON. YAML is not,
/// however short: it may stand for thousands of jobs.
pub(crate) fn is_quick(content_type: Option<&str>, body: &[u8]) -> bool {
    body.len() <= QUICK_BYTES && is_json(content_type, body) != Some(false)
}

/// Whether a body is to be read as JSON; `None`: it is empty.
fn is_json(content_type: Option<&str>, body: &[u8]) -> Option<bool> {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace())?;
    let yaml_said = content_type.is_some_and(|kind| kind.contains("yaml"));
    Some(matches!(first, b'{' | b'[') && !yaml_said)
}

/// Reads the jobs of a submit. Items that are no jobs are refused one by one; a body that cannot be read
/// at all is refused whole.
///
/// # Errors
/// `bad_body`, `bad_job_file` or `too_large`.
pub fn read_submit(
    content_type: Option<&str>,
    body: &[u8],
    limits: &Limits,
) -> Result<Vec<Item>, ErrorBody> {
    if body.len() > limits.body_bytes_max {
        return Err(too_large(format!(
            "the body has {} bytes; the limit is {}",
            body.len(),
            limits.body_bytes_max
        )));
    }
    let items = match is_json(content_type, body) {
        None => {
            return Err(ErrorBody::new(
                ErrorCode::BadBody,
                "the body is empty",
                "send a job as JSON or YAML",
            ));
        }
        Some(true) => read_json(body)?,
        Some(false) => read_yaml(body, limits)?,
    };
    if items.is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::BadBody,
            "the body holds no job",
            "send at least one",
        ));
    }
    if items.len() > limits.submit_jobs_max {
        let message = format!(
            "the body holds {} jobs; the limit is {}",
            items.len(),
            limits.submit_jobs_max
        );
        return Err(too_large(message));
    }
    Ok(items
        .into_iter()
        .map(|item| check_item(item, limits))
        .collect())
}

fn read_json(body: &[u8]) -> Result<Vec<Value>, ErrorBody> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        ErrorBody::new(
            ErrorCode::BadBody,
            format!("the body is not JSON: {error}"),
            "one job as an object, or an array of them; YAML is taken with Content-Type: application/yaml",
        )
    })?;
    Ok(match value {
        Value::Array(items) => items,
        one => vec![one],
    })
}

fn read_yaml(body: &[u8], limits: &Limits) -> Result<Vec<Value>, ErrorBody> {
    // One more than the limit is enough to know that it is over.
    let options = ExpandOptions {
        jobs_max: limits.submit_jobs_max.saturating_add(1),
        ..ExpandOptions::default()
    };
    let specs = expand_text("body", body, &options, &NoFiles).map_err(|error| {
        ErrorBody::new(
            ErrorCode::BadJobFile,
            error.to_string(),
            "expand includes on the client: fairlead submit FILE",
        )
    })?;
    Ok(specs.into_iter().map(Value::Object).collect())
}

fn check_item(item: Value, limits: &Limits) -> Item {
    let Value::Object(spec) = item else {
        let kind = match item {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            _ => "a list",
        };
        return Err(ErrorBody::new(
            ErrorCode::BadBody,
            format!("a job is an object, this is {kind}"),
            "see the user's guide",
        ));
    };
    if depth_over(&spec, DEPTH_MAX) {
        let message = format!("the job nests deeper than {DEPTH_MAX}");
        return Err(ErrorBody::new(ErrorCode::BadBody, message, "flatten it"));
    }
    let bytes = serde_json::to_vec(&spec).map_or(usize::MAX, |text| text.len());
    if bytes > limits.job_bytes_max {
        return Err(too_large(format!(
            "the job has {bytes} bytes; the limit is {}",
            limits.job_bytes_max
        )));
    }
    Ok(spec)
}

fn depth_over(spec: &Spec, max: usize) -> bool {
    fn over(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left == 0 || items.iter().any(|item| over(item, left - 1)),
            Value::Object(fields) => {
                left == 0 || fields.values().any(|field| over(field, left - 1))
            }
            _ => false,
        }
    }
    spec.values().any(|value| over(value, max))
}

fn too_large(message: String) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::TooLarge,
        message,
        "send less at once; large files belong into uploads",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Vec<Item>, ErrorBody> {
        read_submit(None, body.as_bytes(), &Limits::default())
    }

    #[test]
    fn json_is_taken_as_it_is_and_yaml_is_expanded() {
        let json = read(r#"{"suite": "x", "nr": [1, 2]}"#).unwrap();
        assert_eq!(json.len(), 1);
        let yaml = read("suite: x\nnr: [1, 2]\n").unwrap();
        assert_eq!(yaml.len(), 2);
        assert_eq!(
            read(r#"[{"suite": "x"}, {"suite": "y"}]"#).unwrap().len(),
            2
        );
    }

    #[test]
    fn only_a_little_json_is_read_at_once() {
        assert!(is_quick(None, br#"{"suite": "x"}"#) && is_quick(None, b""));
        assert!(!is_quick(None, b"suite: x\n"));
        assert!(!is_quick(Some("application/yaml"), br#"{"suite": "x"}"#));
        let long = format!("[{}]", " ".repeat(QUICK_BYTES));
        assert!(!is_quick(None, long.as_bytes()));
    }

    #[test]
    fn a_bad_item_does_not_spoil_the_others() {
        let items = read(r#"[{"suite": "x"}, 7, null]"#).unwrap();
        assert!(items[0].is_ok() && items[1].is_err() && items[2].is_err());
    }

    #[test]
    fn bad_bodies_say_what_is_wrong() {
        let cases = [
            ("", ErrorCode::BadBody),
            ("   \n", ErrorCode::BadBody),
            ("[]", ErrorCode::BadBody),
            (r#"{"suite": "#, ErrorCode::BadBody),
            ("suite: <%= 1 %>\n", ErrorCode::BadJobFile),
            ("<<: other.yaml\n", ErrorCode::BadJobFile),
        ];
        for (body, code) in cases {
            let error = read(body).unwrap_err();
            assert_eq!(error.code, code, "{body}");
            assert!(!error.hint.is_empty());
        }
        let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(read(&deep).unwrap_err().code, ErrorCode::BadBody);
        let nested = format!(r#"{{"a": {}1{}}}"#, "[".repeat(100), "]".repeat(100));
        assert!(read(&nested).unwrap()[0].is_err());
    }
}
