//! Several replicas side by side: the place of their launcher, load, faults and simulation.
//!
//! [`sim`] runs replicas in virtual time, with faults, and judges what they do.

pub mod sim;
