//! The interface as an OpenAPI 3.1 document and as a page, made from the table of endpoints and the types of the wire.

pub(crate) mod content;
mod document;
mod reference;

pub use document::document;
pub use reference::reference;
