//! HTTP: one warp filter takes every request; `routes` decides by method and path.
//!
//! One decision in one place, because in warp a rejection falls through to the next route: here a
//! handler's refusal is always a reply. A handler that panics is answered with 500, and the server lives.

pub(crate) mod connections;
mod cross_site;
mod reply;
mod request;
mod routes;
mod signed;
mod streams;
mod traced;

pub(crate) use request::Came;
pub(crate) use routes::filter;
