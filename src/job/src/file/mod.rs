//! Job files: the YAML that lkp-tests and compass-ci users have, expanded to one spec a job.
//!
//! The way of a file, one module a step: `source` reads bytes; `mask` hides unquoted `{{ }}` from the
//! YAML parser; `yaml` builds a tree that remembers places; `load` joins documents, includes and
//! settings; `matrix` counts, then unfolds every combination; `template` and `eval` compute `{{ }}`.
//!
//! Nothing here recurses deeper than [`limits::NESTING_MAX`], and what a file would unfold to is
//! counted before memory is spent on it: any bytes may be given.

mod at;
mod budget;
mod error;
mod eval;
mod expand;
mod lexer;
pub mod limits;
mod load;
mod mask;
mod matrix;
mod merge;
mod pattern;
mod quotes;
mod scalar;
mod setting;
mod shapes;
mod source;
mod template;
mod tree;
mod yaml;

pub use error::JobFileError;
pub(crate) use error::printable;
pub use expand::{
    ExpandOptions, Expanded, expand_file, expand_text, expand_text_within, read_file, read_text,
};
pub use setting::Setting;
pub use source::{FsSource, NoFiles, Source};
