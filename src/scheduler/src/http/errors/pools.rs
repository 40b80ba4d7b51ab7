//! Codes and hints of errors of pools.

use std::borrow::Cow;

use fairlead_api::ErrorCode::{self, BadField, Conflict, NotFound, TooMany};

use crate::base::errors::PoolError;

pub(super) fn of_pool(error: &PoolError) -> (ErrorCode, Cow<'static, str>) {
    use PoolError as E;
    let (code, hint) = match error {
        E::Unknown(_) => (NotFound, "list them: fairlead pools"),
        E::TooMany(_) => (TooMany, "delete some: fairlead pools delete NAME"),
        E::Missing(_) => (
            BadField,
            "fairlead pools set NAME --provider PROGRAM --kind dc --arch x86_64 --memory 4g",
        ),
        E::NoProvider(_) => (
            BadField,
            "put an executable program of that name into the folder --providers of each replica",
        ),
        E::BadKinds(_) => (BadField, "hw alone, or vm and/or dc"),
        E::BadMachine { .. } => (BadField, "see docs/operator-reference.md, pools"),
        E::TooHigh { .. } => (BadField, "use a smaller number"),
        E::MinOverMax { .. } => (BadField, "raise max, or lower min"),
        E::Zero(_) => (BadField, "use 1 or more"),
        E::NoStep => (BadField, "to stop a pool set paused: true"),
        E::UnknownLaw(_) => (BadField, "one of: queue_time, seed"),
        E::HasMachines { .. } => (
            Conflict,
            "set min and max to 0, and wait until its machines are gone",
        ),
    };
    (code, hint.into())
}

/// One of each.
#[cfg(test)]
pub(super) fn samples() -> Vec<crate::base::errors::Refusal> {
    use PoolError as E;
    let word = || "x".to_owned();
    let all = [
        E::Unknown(word()),
        E::TooMany(5),
        E::Missing("provider"),
        E::NoProvider(word()),
        E::BadKinds(word()),
        E::BadMachine {
            field: "tags",
            given: word(),
            expected: "a list",
        },
        E::TooHigh {
            field: "max",
            given: 9,
            max: 5,
        },
        E::MinOverMax { min: 9, max: 5 },
        E::Zero("low_rounds"),
        E::NoStep,
        E::UnknownLaw(word()),
        E::HasMachines {
            name: word(),
            machines: 2,
        },
    ];
    all.map(crate::base::errors::Refusal::from).into()
}
