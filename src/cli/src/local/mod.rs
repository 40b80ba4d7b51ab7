//! A lab of one machine in one process, for `fairlead run`: what the machine has, which jobs fit it, and
//! the scheduler and agent together.

mod fit;
mod lab;
mod machine;

pub(crate) use fit::Fit;
pub(crate) use lab::Lab;
pub(crate) use machine::Machine;
