//! Actions on many jobs, hosts or queues. A preview says what an action will touch; it touches nothing else.
//!
//! The preview is stored with all ids. Whoever runs it notes by compare-and-set how far it is, and until when it will
//! be heard of again. If it is not, another replica goes on where it was. Each act may be repeated.

mod acts;
mod preview;
pub(crate) mod run;
mod targets;
