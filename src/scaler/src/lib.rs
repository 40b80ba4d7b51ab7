//! How many machines a pool should have: pure rules over what waits, what runs and what boots.
//!
//! It has no clock, no randomness and no IO. All times are in milliseconds, and `now` comes with the state.
#![forbid(unsafe_code)]

mod bias;
mod queue_length;
mod queue_time;
mod recycle;
mod retire;
mod seed;
mod shrink;
mod state;

pub use bias::Bias;
pub use queue_length::queue_length;
pub use queue_time::queue_time;
pub use recycle::{DAMPING_MS, Reason, Recycling, Wear, make_room};
pub use retire::retire;
pub use seed::{SEED_SHRINKING, SEED_TIME_MS, SeedRules, seed};
pub use shrink::{Lull, Shrinking};
pub use state::{
    Activity, BOOT_UNKNOWN_MS, Boots, Machine, Need, Pool, RUN_UNKNOWN_MS, Work, left_ms,
};
