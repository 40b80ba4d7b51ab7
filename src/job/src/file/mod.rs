//! Job files: the YAML of lkp-tests and compass-ci, expanded to one spec per job.
//!
//! Each step has its module: `source` reads bytes, and `mask` hides unquoted `{{ }}` from the YAML parser. `yaml`
//! builds a tree that remembers places. `load` joins documents, includes and settings. `matrix` counts and then unfolds
//! every combination. `template` and `eval` compute `{{ }}`.
//!
//! Nothing here recurses deeper than [`limits::NESTING_MAX`]. The size of the expansion is counted before it uses
//! memory. So any bytes may be given.

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
mod placed;
mod plain;
mod quotes;
mod scalar;
mod setting;
mod shapes;
mod source;
mod template;
mod tree;
mod yaml;

pub(crate) use at::At;
pub use error::JobFileError;
pub(crate) use error::printable;
pub use expand::{
    ExpandOptions, Expanded, expand_file, expand_text, expand_text_within, read_file, read_text,
};
pub(crate) use lexer::{Token, Unknown, tokens_of};
pub(crate) use pattern::problem as pattern_problem;
pub use placed::{Placed, Tree, read_placed};
pub use plain::read_plain;
pub use setting::Setting;
pub use source::{FsSource, NoFiles, Source};
