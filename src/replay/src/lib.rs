//! Replays traces of days that were: the engine that dispatches decides in virtual time, and what it decided is measured.
#![forbid(unsafe_code)]

pub mod arrivals;
mod bins;
mod chance;
pub mod history;
mod machine;
mod measures;
pub mod plots;
mod ran;
mod scaling;
mod summary;
pub mod swf;
mod world;

pub use fairlead_chart::Chart;
pub use history::{Past, PastJob};
pub use machine::{Accounts, Estimates, Rules, replay};
pub use measures::{Measures, Outcome, Waits, measure};
pub use ran::Ran;
pub use scaling::{Course, Law, Sample, Scaled, Scaling, scale, scale_with_course};
pub use summary::{Figures, Summary, summarize};
pub use world::Host;
