//! Encodes states as Elasticsearch documents: the stored JSON of the codec with two differences.
//!
//! `waits` is a string of JSON, because an update merges objects and does not replace them. `cell` joins queue and
//! account, so that one collapsed search gives the best job of each pair. It is derived, and written when either
//! changes.

use fairlead_job::Waits;
use serde_json::{Map, Value};

use crate::{JobState, StoreError, codec};

/// Name of the derived field.
pub(super) const CELL: &str = "cell";

/// Returns queue and account as one term.
pub(super) fn cell(queue: &str, account: &str) -> Value {
    Value::String(Value::from(vec![queue, account]).to_string())
}

/// Returns the queue and the account of such a term.
pub(super) fn of_cell(cell: &str) -> Result<(String, String), StoreError> {
    serde_json::from_str(cell).map_err(|error| StoreError::Refused {
        reason: format!("a stored {CELL} cannot be read: {cell}: {error}"),
    })
}

/// Returns the stored form of fields of a state or patch.
pub(super) fn to_stored(mut fields: Map<String, Value>) -> Map<String, Value> {
    if let Some(waits) = fields.get_mut("waits")
        && !waits.is_null()
    {
        *waits = Value::String(waits.to_string());
    }
    fields
}

/// Returns the document of a state, whose JSON is `text`.
pub(super) fn state_document(state: &JobState, text: &str) -> Result<String, String> {
    // Few jobs wait for others. For all other jobs only a field is added.
    if state.waits.is_some() {
        return document_of(text).ok_or_else(|| "a state is an object".to_owned());
    }
    let fields = text.strip_suffix('}').ok_or("a state is an object")?;
    let cell = cell(&state.queue, &state.account);
    Ok(format!("{fields},\"{CELL}\":{cell}}}"))
}

fn document(fields: Map<String, Value>, queue: &str, account: &str) -> String {
    let mut fields = to_stored(fields);
    fields.insert(CELL.to_owned(), cell(queue, account));
    Value::Object(fields).to_string()
}

/// Returns the document of a whole state in JSON. Fields of a later version stay.
pub(super) fn document_of(state: &str) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_str(state).ok()?;
    let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
    let (queue, account) = (text("queue")?, text("account")?);
    Some(document(fields, &queue, &account))
}

/// Reads a state from the text of a document.
pub(super) fn state_of(document: &str) -> Result<JobState, String> {
    let mut state = codec::decode_text(document)?;
    if let Some(Waits::Unknown(Value::String(text))) = &state.waits {
        let waits = serde_json::from_str(text).map_err(|error| format!("waits: {error}"))?;
        state.waits = Some(waits);
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_from_its_document() {
        let state = codec::decode_text(include_str!("../../tests/golden/state-1.json")).unwrap();
        let json = serde_json::to_string(&state).unwrap();
        let text = state_document(&state, &json).unwrap();
        let document: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert!(document["waits"].is_string());
        assert_eq!(document[CELL], r#"["ann","ann"]"#);
        let odd = cell("a\"],[", "\u{1f600}");
        let read = of_cell(odd.as_str().unwrap()).unwrap();
        assert_eq!(read, ("a\"],[".to_owned(), "\u{1f600}".to_owned()));
        assert_eq!(state_of(&text).unwrap(), state);
        assert_eq!(document_of(&json).unwrap(), text);
        let state = JobState {
            waits: None,
            ..state
        };
        let json = serde_json::to_string(&state).unwrap();
        let text = state_document(&state, &json).unwrap();
        assert_eq!(document_of(&json).unwrap(), text);
    }
}
