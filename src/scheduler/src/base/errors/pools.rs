//! Errors of pools of machines.

/// An error of a pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PoolError {
    #[error("no pool '{0}'")]
    Unknown(String),
    #[error("the lab has {0} pools, which is the limit")]
    TooMany(usize),
    #[error("{0}: a new pool needs it")]
    Missing(&'static str),
    #[error("provider: this replica has no '{0}'")]
    NoProvider(String),
    #[error("machine.kinds: {0} is not hw alone, or vm and/or dc")]
    BadKinds(String),
    #[error("machine.{field}: {given} is not {expected}")]
    BadMachine {
        field: &'static str,
        given: String,
        expected: &'static str,
    },
    #[error("{field}: {given} is over {max}")]
    TooHigh {
        field: &'static str,
        given: u64,
        max: u64,
    },
    #[error("min: {min} is over max, {max}")]
    MinOverMax { min: u32, max: u32 },
    #[error("{0}: 0 is too small")]
    Zero(&'static str),
    #[error("max_step: 0 would add no machine")]
    NoStep,
    #[error("law: '{0}' is none")]
    UnknownLaw(String),
    #[error("pool '{name}' has {machines} machines")]
    HasMachines { name: String, machines: usize },
}
