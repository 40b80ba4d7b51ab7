//! Submit rules: conditions on a job, and the fields that a job gets which meets one.
//!
//! Pure: who may do what with the outcome is checked by who submits it. Any text is read or refused with its place.

mod expression;
mod parser;
mod rule;

pub use expression::{DEPTH_MAX, EXPRESSION_BYTES_MAX, Expression, compare_values};
pub use parser::ExpressionError;
pub use rule::{Edited, RULES_MAX, Rule, RuleError, Ruled, check_rules, set_fields};
