//! Errors of any request: a parameter, an address, its size.

refusals! {
    /// An error that any request can have.
    pub enum RequestError {
        #[error("the query has {bytes} bytes; the limit is {max}")]
        QueryTooLong { bytes: usize, max: usize } => TooLarge, "send long lists in the body";
        #[error("{name}: '{shown}' is not {least} to {most}")]
        NotInRange {
            name: String,
            shown: String,
            least: u64,
            most: u64,
            /// Default value.
            default: u64,
        } => BadQuery of (default), format!("a whole number; {default} when not said");
        #[error("{name}: '{shown}' is neither true nor false")]
        NoSwitch { name: String, shown: String } => BadQuery, "true or false; false when not said";
        #[error("the address is not UTF-8 when decoded")]
        NotUtf8 => BadName, "percent-encode UTF-8";
        #[error("the address holds a NUL")]
        Nul => BadName, "leave it out";
    }
}
