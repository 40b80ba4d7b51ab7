//! Black-box tests of the engine's promises.
#![expect(clippy::expect_used, reason = "a test says what must hold")]

mod background;
mod bound;
mod cache;
mod claims;
mod cpus;
mod explain;
mod flood;
mod known;
mod lab;
mod labels;
mod limits;
mod loaded;
mod model;
mod order;
mod overtakes;
mod packing;
mod peers;
mod placing;
mod random;
mod requirement;
mod reserving;
mod shares;
mod steps;
mod work;
