//! Reads the body of a submit: JSON without expansion, YAML expanded. Pure, and fuzzed with arbitrary bytes.
//!
//! It reserves memory before it uses it: item by item for an array, and after counting the jobs for a job file.

use std::fmt;

use fairlead_api::{ErrorBody, ErrorCode};
use fairlead_job::{
    ExpandOptions, FieldError, NoFiles, Spec, check_bytes, check_depth, expand_text_within,
    too_long,
};
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Value, value::RawValue};

use crate::Limits;
use fairlead_base::{
    budget::{built_bytes, copies, yaml_bytes},
    errors::Refusal,
};

/// One job of a submit, or why that one is refused.
pub type Item = Result<Spec, ErrorBody>;

/// Of a job's text before it is read, how much may be spaces: so many times `job_bytes_max`.
const SPACED: usize = 4;

/// JSON that is written anew is at most so many times as long as it was: `1e9` becomes `1000000000.0`.
const LONGER: usize = 8;

/// Asked for so many bytes of memory before they are used.
pub(crate) type Spend<'s> = &'s mut dyn FnMut(u64) -> Result<(), ErrorBody>;

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
    read_within(content_type, body, limits, &mut |_| Ok(()))
}

/// The same, as long as `spend` agrees.
pub(crate) fn read_within(
    content_type: Option<&str>,
    body: &[u8],
    limits: &Limits,
    spend: Spend<'_>,
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
        Some(true) => read_json(body, limits, spend)?,
        Some(false) => read_yaml(body, limits, spend)?,
    };
    if items.is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::BadBody,
            "the body holds no job",
            "send at least one job",
        ));
    }
    Ok(items)
}

fn too_many(jobs: usize, limits: &Limits) -> ErrorBody {
    too_large(format!(
        "the body holds {jobs} jobs; the limit is {}",
        limits.submit_jobs_max
    ))
}

/// The jobs of a JSON body, made one after the other.
struct Items<'r> {
    limits: &'r Limits,
    spend: Spend<'r>,
    read: Vec<Item>,
    /// Why all of it is refused.
    refused: Option<ErrorBody>,
}

impl Items<'_> {
    fn add(&mut self, text: &str) -> Result<(), ErrorBody> {
        if text.len() > self.limits.job_bytes_max.saturating_mul(SPACED) {
            let limits = self.limits.of_submits();
            self.read.push(Err(refused(too_long(text.len(), &limits))));
            return Ok(());
        }
        (self.spend)(built_bytes(text.as_bytes()))?;
        let item = serde_json::from_str(text).map_err(|error| not_json(&error))?;
        let is_short = text.len() <= self.limits.job_bytes_max / LONGER;
        self.read.push(check_item(item, is_short, self.limits));
        Ok(())
    }
}

impl<'de> Visitor<'de> for &mut Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(text) = seq.next_element::<&RawValue>()? {
            if self.read.len() == self.limits.submit_jobs_max {
                let mut jobs = self.read.len() + 1;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    jobs += 1;
                }
                self.refused = Some(too_many(jobs, self.limits));
                return Ok(());
            }
            if let Err(refused) = self.add(text.get()) {
                self.refused = Some(refused);
                return Err(serde::de::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

fn read_json(body: &[u8], limits: &Limits, spend: Spend<'_>) -> Result<Vec<Item>, ErrorBody> {
    let mut items = Items {
        limits,
        spend,
        read: Vec::new(),
        refused: None,
    };
    if body.trim_ascii_start().first() == Some(&b'[') {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let outcome = reader.deserialize_seq(&mut items);
        let outcome = outcome.and_then(|()| reader.end());
        if let Some(refused) = items.refused {
            return Err(refused);
        }
        outcome.map_err(|error| not_json(&error))?;
    } else {
        let one: &RawValue = serde_json::from_slice(body).map_err(|error| not_json(&error))?;
        items.add(one.get())?;
    }
    Ok(items.read)
}

fn not_json(error: &serde_json::Error) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::BadBody,
        format!("the body is not JSON: {error}"),
        "send one job as an object, or an array of jobs; for YAML set Content-Type: application/yaml",
    )
}

fn read_yaml(body: &[u8], limits: &Limits, spend: Spend<'_>) -> Result<Vec<Item>, ErrorBody> {
    spend(yaml_bytes(body))?;
    // One more than the limit is enough to know that it is over.
    let options = ExpandOptions {
        jobs_max: limits.submit_jobs_max.saturating_add(1),
        ..ExpandOptions::default()
    };
    let mut refused = None;
    let mut may = |bytes| match spend(copies(bytes)) {
        Ok(()) => true,
        Err(error) => {
            refused = Some(error);
            false
        }
    };
    let specs = expand_text_within("body", body, &options, &NoFiles, &mut may);
    if let Some(refused) = refused {
        return Err(refused);
    }
    let specs = specs.map_err(|error| {
        let text = error.to_string();
        let usual = "expand includes on the client: fairlead submit FILE";
        let (message, hint) = text.split_once("\nhint: ").unwrap_or((&text, usual));
        ErrorBody::new(ErrorCode::BadJobFile, message, hint)
    })?;
    if specs.len() > limits.submit_jobs_max {
        return Err(too_many(specs.len(), limits));
    }
    let checked = specs
        .into_iter()
        .map(|spec| check_spec(spec, false, limits));
    Ok(checked.collect())
}

fn check_item(item: Value, is_short: bool, limits: &Limits) -> Item {
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
            format!("expected a job as an object, got {kind}"),
            "see the job reference, docs/user-reference.md",
        ));
    };
    check_spec(spec, is_short, limits)
}

/// `is_short`: it is known not to be too long.
fn check_spec(spec: Spec, is_short: bool, limits: &Limits) -> Item {
    let checked = check_depth(&spec).and_then(|()| {
        if is_short {
            Ok(())
        } else {
            check_bytes(&spec, &limits.of_submits())
        }
    });
    checked.map(|()| spec).map_err(refused)
}

fn refused(error: FieldError) -> ErrorBody {
    Refusal::from(error).body()
}

fn too_large(message: String) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::TooLarge,
        message,
        "send fewer jobs at once; upload large files",
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

    /// Sixteen megabytes of numbers, or of jobs, are refused before they are values.
    #[test]
    fn memory_is_asked_for_before_it_is_used() {
        let limits = Limits::default();
        let mut spent = 0;
        let mut read = |body: &str, most: u64| {
            spent = 0;
            let spend = &mut |bytes| {
                spent += bytes;
                let refused = || ErrorBody::new(ErrorCode::TooMany, "no room", "later");
                (spent <= most).then_some(()).ok_or_else(refused)
            };
            read_within(None, body.as_bytes(), &limits, spend)
        };
        let many = format!("[{}{{}}]", "{},".repeat(8 << 20 >> 2));
        let refused = read(&many, u64::MAX).unwrap_err();
        assert!(
            refused.message.contains("holds 2097153 jobs"),
            "{refused:?}"
        );
        let wide = format!("{{\"x\": [{}0]}}", "0,".repeat(1 << 20));
        assert!(
            read(&wide, 0).unwrap()[0].is_err(),
            "it is larger than a job may be"
        );
        let one = format!("{{\"x\": [{}0]}}", "0,".repeat(50_000));
        let many = format!("[{}{one}]", format!("{one},").repeat(9));
        assert_eq!(read(&many, 30 << 20).unwrap_err().code, ErrorCode::TooMany);
        assert_eq!(read(&one, 30 << 20).unwrap().len(), 1);
        let yaml = format!(
            "suite: x\nscript: {}\na: [{}0]\n",
            "y".repeat(50_000),
            "1,".repeat(9)
        );
        assert_eq!(read(&yaml, 900_000).unwrap_err().code, ErrorCode::TooMany);
        assert_eq!(read(&yaml, 2_000_000).unwrap().len(), 2);
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
