//! Actions on many jobs, hosts or queues. A preview says what an action will touch; it touches nothing else.
//!
//! The preview is stored with all ids. The replica that runs it notes by compare-and-set how far it is, and until when
//! the others wait for its next note. If none comes, another replica goes on there. Each act may be repeated.

mod acts;
mod preview;
pub(crate) mod run;
mod targets;
