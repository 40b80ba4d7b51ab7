//! Collection: content that nobody names goes after a grace period.
//!
//! Manifests go first that nobody marks, keeps or pins, each with what is known of it and its owners' notes. Then chunks
//! go that no manifest names and nobody pins. Both go in batches. A collector writes a batch down before it decides, so
//! that a put sees it (see the module `pins`). Then it reads again what the puts wrote.
//!
//! The order of the second look matters. Pins are read first, because a pin ends only when what it protected is named. So
//! what a pin no longer protects is already named in what is read after it.
//!
//! The lock of `terms` saves work. Two collectors at once would be as safe as one, because each has batches of its own.
//!
//! **Clocks.** Only the ends of pins and the grace period depend on clocks of two machines. Both are long, and pins count
//! for five minutes more. A collector that stood still in the middle of a batch deletes nothing more once a minute is over
//! by its own clocks. A list counts as left behind after a lease of five minutes. That is longer than a batch and the
//! longest request together.
//!
//! **Memory.** A manifest takes 48 bytes. At most four million digests of chunks are in memory, and a table has 40 to 80
//! bytes for each. A store with more chunks is collected in several passes over ranges of digests.

mod batch;
mod chunks;
mod manifests;
mod pinned;
mod rest;
mod run;
mod terms;

pub use self::run::{CollectOptions, Collected, Marks};
