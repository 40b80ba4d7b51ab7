//! The error of a spec that cannot become a job: field, problem and hint.

/// Why a spec cannot become a job. Never retryable: the job itself must change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    /// The field at fault, as the author wrote it.
    pub field: String,
    /// What is wrong, with the value and what was expected.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}
