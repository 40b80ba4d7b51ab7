//! HTTP: one warp filter takes every request; `routes` decides by method and path.
//!
//! There is one place for this decision, because a warp rejection falls through to the next route. Here a handler's
//! refusal is always a reply. A handler that panics is answered with 500, and the server continues.

pub(crate) mod connections;
mod content_type;
mod cross_site;
mod ranges;
mod reply;
mod request;
mod routes;
mod sessions;
mod signed;
mod streams;
mod traced;

pub(crate) use request::Came;
pub(crate) use routes::filter;
