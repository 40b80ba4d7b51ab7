//! Errors of any request: a parameter, an address, its size.

/// An error that any request can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the query has {bytes} bytes; the limit is {max}")]
    QueryTooLong { bytes: usize, max: usize },
    #[error("{name}: '{shown}' is not {least} to {most}")]
    NotInRange {
        name: String,
        shown: String,
        least: u64,
        most: u64,
        /// What holds when nothing is said.
        default: u64,
    },
    #[error("{name}: '{shown}' is neither true nor false")]
    NoSwitch { name: String, shown: String },
    #[error("the address is not UTF-8 when decoded")]
    NotUtf8,
    #[error("the address holds a NUL")]
    Nul,
}
