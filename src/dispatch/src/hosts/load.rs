//! A load: the share of its host that one job takes.

use crate::event::Kind;

/// Resources that a job takes of its host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub kind: Kind,
    pub memory_mb: u32,
    pub cpus: u32,
}

/// Memory and CPUs that several jobs take together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub memory_mb: u64,
    pub cpus: u64,
}

impl Load {
    /// Returns the part that it takes of the resources shared by vm and dc jobs; nothing for hw.
    pub(crate) fn shared(self) -> Taken {
        if self.kind == Kind::Hw {
            return Taken::default();
        }
        Taken {
            memory_mb: self.memory_mb.into(),
            cpus: self.cpus.into(),
        }
    }
}

impl Taken {
    pub(crate) fn plus(self, more: Self) -> Self {
        Self {
            memory_mb: self.memory_mb.saturating_add(more.memory_mb),
            cpus: self.cpus.saturating_add(more.cpus),
        }
    }

    pub(crate) fn minus(self, less: Self) -> Self {
        Self {
            memory_mb: self.memory_mb.saturating_sub(less.memory_mb),
            cpus: self.cpus.saturating_sub(less.cpus),
        }
    }
}
