//! Errors of pools of machines.

refusals! {
    /// An error of a pool.
    pub enum PoolError {
        #[error("no pool '{0}'")]
        Unknown(String) => NotFound, "list them: fairlead pools";
        #[error("the lab has {0} pools, which is the limit")]
        TooMany(usize) => TooMany, "delete some: fairlead pools delete NAME";
        #[error("{0}: a new pool needs it")]
        Missing(&'static str) => BadField,
            "fairlead pools set NAME --provider PROGRAM --kind dc --arch x86_64 --memory 4g";
        #[error("provider: this replica has no '{0}'")]
        NoProvider(String) => BadField,
            "put an executable program of that name into the folder --providers of each replica";
        #[error("machine.kinds: {0} is not hw alone, or vm and/or dc")]
        BadKinds(String) => BadField, "hw alone, or vm and/or dc";
        #[error("machine.{field}: {given} is not {expected}")]
        BadMachine {
            field: &'static str,
            given: String,
            expected: &'static str,
        } => BadField, "see docs/operator-reference.md, pools";
        #[error("{field}: {given} is over {max}")]
        TooHigh {
            field: &'static str,
            given: u64,
            max: u64,
        } => BadField, "use a smaller number";
        #[error("min: {min} is over max, {max}")]
        MinOverMax { min: u32, max: u32 } => BadField, "raise max, or lower min";
        #[error("{0}: 0 is too small")]
        Zero(&'static str) => BadField, "use 1 or more";
        #[error("max_step: 0 would add no machine")]
        NoStep => BadField, "to stop a pool set paused: true";
        #[error("law: '{0}' is none")]
        UnknownLaw(String) => BadField, "one of: queue_time, seed";
        #[error("pool '{name}' has {machines} machines")]
        HasMachines { name: String, machines: usize } => Conflict,
            "set min and max to 0, and wait until its machines are gone";
    }
}
