//! A one-machine lab in one process, for `fairlead run`: the machine's resources, the jobs that fit, the scheduler and
//! the agent.

mod fit;
mod lab;
mod machine;

pub(crate) use fit::Fit;
pub(crate) use lab::LocalLab;
pub(crate) use machine::Machine;
