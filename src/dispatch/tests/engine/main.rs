//! What the engine promises, seen from outside.
mod cache;
mod claims;
mod lab;
mod model;
mod order;
mod placing;
mod shares;
mod work;
