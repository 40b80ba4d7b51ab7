//! What the engine promises, seen from outside.
mod claims;
mod lab;
mod order;
mod placing;
mod shares;
