//! The error of a spec that cannot become a job: field, problem and hint.

/// Why a spec cannot become a job. Never retryable: the job itself must change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    /// The field at fault, as the author wrote it.
    pub field: String,
    /// Problem, with the value and what was expected.
    pub problem: String,
    /// Advice.
    pub hint: String,
    /// Kind of the mistake.
    pub fault: Fault,
}

impl FieldError {
    /// The same error of a field inside the map `field`.
    #[must_use]
    pub(crate) fn below(self, field: &str) -> Self {
        Self {
            field: format!("{field}.{}", self.field),
            ..self
        }
    }
}

/// A kind of mistake in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The value cannot be used.
    Value,
    /// The value is not a name.
    Name,
    /// The job cannot be read, whatever its fields say.
    Body,
    /// The job, or all jobs of its submit, are too large.
    Size,
}

impl Fault {
    /// The error code that a submit returns for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Value => "bad_field",
            Self::Name => "bad_name",
            Self::Body => "bad_body",
            Self::Size => "too_large",
        }
    }
}
