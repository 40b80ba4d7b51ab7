//! Effect on a job when the process with its scheduler and testbox stops.

use serde_json::Value;

use crate::{
    FieldError, Spec,
    fields::read::{present, refuse},
    units::shown,
};

/// The word of `on_shutdown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnShutdown {
    /// It does not begin any more; if it runs, it is told to stop. Default.
    #[default]
    Skip,
    /// It does not begin any more; if it runs, it is left to its own end.
    Continue,
    /// The process waits until it has run.
    Block,
}

impl OnShutdown {
    /// Reads it from a job.
    ///
    /// # Errors
    /// The value is none of the three words.
    pub fn of(spec: &Spec) -> Result<Self, FieldError> {
        const FIELD: &str = "on_shutdown";
        match present(spec, FIELD) {
            None => Ok(Self::default()),
            Some(Value::String(word)) if word == "skip" => Ok(Self::Skip),
            Some(Value::String(word)) if word == "continue" => Ok(Self::Continue),
            Some(Value::String(word)) if word == "block" => Ok(Self::Block),
            Some(other) => refuse(
                FIELD,
                format!("{} is none of skip, continue, block", shown(other)),
                "skip stops the job with its run, continue lets it end if it runs, block waits for it",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn three_words_are_known() {
        let read = |value: Value| {
            let spec = Spec::from_iter([("on_shutdown".to_owned(), value)]);
            OnShutdown::of(&spec).map_err(|error| error.field)
        };
        assert_eq!(OnShutdown::of(&Spec::new()), Ok(OnShutdown::Skip));
        assert_eq!(read(json!("continue")), Ok(OnShutdown::Continue));
        assert_eq!(read(json!("block")), Ok(OnShutdown::Block));
        for value in [json!("stop"), json!(7), json!(["skip"])] {
            assert_eq!(read(value), Err("on_shutdown".to_owned()));
        }
    }
}
