//! Encodes a job's state and small documents as stored JSON, and refuses invalid ones before any store is asked.
//!
//! Readers accept the layout before and after their own (rolling upgrade). A null means the same as an absent field,
//! because one of the stores cannot remove a field.

use fairlead_job::JobId;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{AT_MS, DocWrite, Expect, ItemError, JobState, NewJob};

/// Largest body of a job as JSON, bytes. Elasticsearch takes requests up to 100 MB.
pub const BODY_BYTES_MAX: usize = 32 << 20;
/// Largest state of a job as JSON, bytes.
pub const STATE_BYTES_MAX: usize = 1 << 20;
/// Largest small document as JSON, bytes.
pub const DOC_BYTES_MAX: usize = 8 << 20;
/// Longest id of Elasticsearch, bytes.
const STORED_ID_BYTES_MAX: usize = 512;
/// Longest name of a kind, bytes. Ids in a shared index begin with it and a slash.
const KIND_BYTES_MAX: usize = 12;
/// Longest id of a small document, bytes.
pub const DOC_ID_BYTES_MAX: usize = STORED_ID_BYTES_MAX - KIND_BYTES_MAX - 1;

/// A job as JSON text, checked.
#[derive(Debug)]
pub(crate) struct EncodedJob {
    pub(crate) state: String,
    pub(crate) body: String,
}

/// Returns true if a layout is the present one or a neighbour of it.
fn is_known_format(format: u64) -> bool {
    format.abs_diff(u64::from(JobState::FORMAT)) <= 1
}

/// Encodes a job. Refuses a job that cannot be stored, with the same message for every store.
pub(crate) fn encode_job(job: &NewJob) -> Result<EncodedJob, ItemError> {
    check_id(job.state.job_id)?;
    if !is_known_format(u64::from(job.state.format)) {
        return Err(refused(unknown_format(u64::from(job.state.format))));
    }
    let state = to_text(&job.state, "state", STATE_BYTES_MAX)?;
    let body = to_text(&*job.body, "body", BODY_BYTES_MAX)?;
    Ok(EncodedJob { state, body })
}

/// Returns an id as a store keeps it: a signed 64-bit number or 19 digits. 0 is no id.
pub(crate) fn check_id(id: JobId) -> Result<i64, ItemError> {
    match i64::try_from(id.get()) {
        Ok(raw) if raw > 0 => Ok(raw),
        _ => Err(refused(format!(
            "job id {id} is out of range (1 to {})",
            i64::MAX
        ))),
    }
}

/// Checks a write of a small document and returns its body as text (`None`: delete).
pub(crate) fn encode_doc(write: &DocWrite) -> Result<Option<String>, ItemError> {
    if !is_doc_id(&write.id) {
        return Err(refused(format!(
            "a document id has 1 to {DOC_ID_BYTES_MAX} bytes, not {}",
            write.id.len()
        )));
    }
    match &write.body {
        None if write.expect == Expect::Absent => Err(refused(
            "a delete that expects nothing to be there makes no sense".to_owned(),
        )),
        None => Ok(None),
        Some(body @ Value::Object(_)) => to_text(body, "document", DOC_BYTES_MAX).map(Some),
        Some(_) => Err(refused("a document's body is a JSON object".to_owned())),
    }
}

/// Returns the time at which a small document must be looked at, UTC epoch ms; 0: never.
pub(crate) fn doc_at_ms(write: &DocWrite) -> u64 {
    let at_ms = write.body.as_ref().and_then(|body| body.get(AT_MS));
    at_ms.and_then(Value::as_u64).unwrap_or(0)
}

/// Returns true if a small document can have this id.
pub(crate) fn is_doc_id(id: &str) -> bool {
    (1..=DOC_ID_BYTES_MAX).contains(&id.len())
}

fn to_text<T: serde::Serialize>(
    value: &T,
    what: &str,
    bytes_max: usize,
) -> Result<String, ItemError> {
    let text = serde_json::to_string(value).map_err(|error| refused(error.to_string()))?;
    if text.len() > bytes_max {
        return Err(refused(format!(
            "the {what} has {} bytes of JSON, more than {bytes_max}",
            text.len()
        )));
    }
    Ok(text)
}

/// Reads a stored state that may contain nulls. Slower than reading text directly.
pub(crate) fn decode_state(mut fields: Map<String, Value>) -> Result<JobState, String> {
    fields.retain(|_, value| !value.is_null());
    if let Some(format) = fields.get("format").and_then(Value::as_u64)
        && !is_known_format(format)
    {
        return Err(unknown_format(format));
    }
    JobState::deserialize(Value::Object(fields)).map_err(|error| error.to_string())
}

/// Reads a stored state from text that a replica of this version or a neighbouring one wrote. The error names an
/// unknown layout.
pub fn decode_text(text: &str) -> Result<JobState, String> {
    // The straight way is twice as fast; the other one knows nulls and says what is wrong.
    match serde_json::from_str::<JobState>(text) {
        Ok(state) if is_known_format(u64::from(state.format)) => Ok(state),
        _ => decode_state(serde_json::from_str(text).map_err(|error| error.to_string())?),
    }
}

fn unknown_format(format: u64) -> String {
    format!(
        "stored in format {format}; this version reads {} to {}",
        JobState::FORMAT.saturating_sub(1),
        JobState::FORMAT + 1
    )
}

/// Creates an error that is not retryable, with the reason.
pub(crate) fn refused(reason: String) -> ItemError {
    ItemError::Refused { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Document exactly as format 1 wrote it. Never edit: stored documents are not edited either.
    const GOLDEN_1: &str = include_str!("../tests/golden/state-1.json");

    #[test]
    fn the_id_of_a_document_fits_behind_its_kind() {
        for kind in crate::DocKind::ALL {
            assert!(kind.as_str().len() <= KIND_BYTES_MAX, "{kind:?}");
        }
    }

    #[test]
    fn a_document_of_format_1_is_read() {
        let state = decode_text(GOLDEN_1).unwrap();
        assert_eq!(state.job_id.to_string(), "2611210236110700000");
        assert_eq!(state.attempts.len(), 1);
        let again = serde_json::to_value(&state).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(GOLDEN_1).unwrap());
    }

    #[test]
    fn nulls_and_unknown_fields_are_read_over() {
        let mut fields: Map<String, Value> = serde_json::from_str(GOLDEN_1).unwrap();
        fields.insert("host".into(), Value::Null);
        fields.insert("a_field_of_tomorrow".into(), 7.into());
        fields.insert("format".into(), 2.into());
        assert_eq!(decode_state(fields).unwrap().host, "");
    }

    #[test]
    fn a_format_too_far_away_is_refused_by_name() {
        let mut fields: Map<String, Value> = serde_json::from_str(GOLDEN_1).unwrap();
        fields.insert("format".into(), 3.into());
        assert!(decode_state(fields).unwrap_err().contains("format 3"));
    }
}
