//! Several replicas of one scheduler on one machine: [`launch`] starts, watches and upgrades them.

pub mod clock;
pub mod http;
pub mod launch;
pub mod signals;
