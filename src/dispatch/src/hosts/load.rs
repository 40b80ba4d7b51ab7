//! A load: the share of its host that one job takes.

use crate::event::Kind;

/// What a job takes of its host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub kind: Kind,
    pub memory_mb: u32,
}

impl Load {
    pub(crate) fn shared_mb(self) -> u64 {
        if self.kind == Kind::Hw {
            0
        } else {
            u64::from(self.memory_mb)
        }
    }
}
