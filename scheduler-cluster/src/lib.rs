//! Several replicas side by side: what starts them for real, and what proves that they work together.
//!
//! [`launch`] starts, watches and upgrades them on one machine. [`faults`] breaks them while jobs run, for
//! real, and judges what came of it. [`sim`] runs replicas in virtual time, with
//! faults, and judges what they do: the program is `fairlead-cluster`. [`bench`] measures how fast they are beside
//! Elasticsearch alone: the program is `fairlead-bench`.

pub mod bench;
mod clock;
pub mod faults;
mod http;
pub mod launch;
pub mod sim;
