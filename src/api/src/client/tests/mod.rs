//! The client against a stub of a replica.

mod failover;
mod requests;
mod stub;
