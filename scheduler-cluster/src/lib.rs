//! Several replicas side by side: the place of their launcher, load, faults and simulation.
//!
//! Nothing yet: one replica serves a lab today.
