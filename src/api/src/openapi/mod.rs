//! The interface as an OpenAPI 3.1 document, made from the table of endpoints and the types of the wire.

pub(crate) mod content;
mod document;

pub use document::document;
