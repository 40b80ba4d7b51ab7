//! Collection: content that nobody names goes after a grace period.
//!
//! Equal chunks are stored once, and a put asks which of its chunks are missing before it sends them. Suppose that
//! chunk c is there, but no manifest names it any more. A put asks, hears that c is there, and does not send it. A
//! collection deletes c. Then the put writes a manifest that names c, and that file can never be read again (I15).
//!
//! So each of the two writes first and reads then. A put writes its pin. A collection writes the list of a batch before
//! it decides:
//!
//! ```text
//! put                                  collection
//! 1. writes "c is pinned"              1. writes "c may go"
//! 2. reads the lists of batches        2. reads again what puts wrote
//!    c is on one: waits until it ends     c is pinned or named: c stays
//! ```
//!
//! If the pin was written first, the collection reads it. If the list was written first, the put reads it and waits. So
//! at least one of the two sees the other, whatever their timing (see the module `pins`).
//!
//! The order of the collection's second look matters. For manifests it reads the pins first, and then who names each. A
//! put gives up its pin only after the manifest is named. So a manifest without a pin is already named in what is read
//! next. In the other order, a manifest could be named and lose its pin between the two reads, and would go. For chunks
//! it reads the pins again, beside a list of manifests that is at most 25 minutes old. Before a manifest is written,
//! its chunks are pinned for an hour. So the pins tell of each manifest that is younger than the list.
//!
//! Manifests go first that nobody marks, keeps or pins, each with what is known of it and its owners' notes. Then
//! chunks go that no manifest names and nobody pins. The lock of `terms` saves work. Two collectors at once would be as
//! safe as one, because each has batches of its own.
//!
//! **Clocks.** Only the ends of pins and the grace period depend on clocks of two machines. Both are long, and pins
//! count for five minutes more. A collector that stood still in the middle of a batch deletes nothing more once a
//! minute is over by its own clocks. A list counts as left behind after a lease of five minutes. That is longer than a
//! batch and the longest request together.
//!
//! **Memory.** A manifest takes 48 bytes. At most four million digests of chunks are in memory, and a table has 40 to
//! 80 bytes for each. A store with more chunks is collected in several passes over ranges of digests.

mod batch;
mod chunks;
mod manifests;
mod pinned;
mod rest;
mod run;
mod terms;

pub use self::run::{CollectOptions, Collected, Marks};
