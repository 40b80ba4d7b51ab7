//! The words for crashes: the family tells what to do with the machine, the class what went wrong.

use std::fmt;

/// Severity of a crash for its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// The kernel stopped.
    Panic,
    /// The kernel killed the running task. The machine may go on, but nothing on it can be trusted.
    Oops,
    /// KASAN, KMSAN, KCSAN, KFENCE, UBSAN or the allocator found an invalid access.
    Sanitizer,
    /// A CPU or a task makes no progress.
    Lockup,
    /// A rule of locking was broken.
    Lockdep,
    /// The kernel complained and goes on.
    Warning,
    /// Memory was lost.
    Leak,
    /// Memory ran out.
    Oom,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 8] = [
        Self::Panic,
        Self::Oops,
        Self::Sanitizer,
        Self::Lockup,
        Self::Lockdep,
        Self::Warning,
        Self::Leak,
        Self::Oom,
    ];

    /// Returns the stable word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::Oops => "oops",
            Self::Sanitizer => "sanitizer",
            Self::Lockup => "lockup",
            Self::Lockdep => "lockdep",
            Self::Warning => "warning",
            Self::Leak => "leak",
            Self::Oom => "oom",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Kind of the problem, in the words of collections of kernel crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Class(&'static str);

impl Class {
    pub(crate) const ATOMIC_SLEEP: Self = Self("ATOMIC_SLEEP");
    pub(crate) const BOOT_LOOP: Self = Self("boot_loop");
    pub(crate) const BUG: Self = Self("BUG");
    pub(crate) const DENIAL: Self = Self("DoS");
    pub(crate) const HANG: Self = Self("HANG");
    pub(crate) const KASAN_FREE: Self = Self("KASAN-INVALID-FREE");
    pub(crate) const KASAN_NULL_READ: Self = Self("KASAN-NULL-POINTER-DEREFERENCE-READ");
    pub(crate) const KASAN_NULL_WRITE: Self = Self("KASAN-NULL-POINTER-DEREFERENCE-WRITE");
    pub(crate) const KASAN_READ: Self = Self("KASAN-READ");
    pub(crate) const KASAN_USED_READ: Self = Self("KASAN-USE-AFTER-FREE-READ");
    pub(crate) const KASAN_USED_WRITE: Self = Self("KASAN-USE-AFTER-FREE-WRITE");
    pub(crate) const KASAN_WRITE: Self = Self("KASAN-WRITE");
    pub(crate) const KCSAN_ASSERT: Self = Self("KCSAN-ASSERT");
    pub(crate) const KCSAN_RACE: Self = Self("KCSAN-DATARACE");
    pub(crate) const KFENCE_CORRUPTION: Self = Self("KFENCE-MEMORY-CORRUPTION");
    pub(crate) const KFENCE_FREE: Self = Self("KFENCE-INVALID-FREE");
    pub(crate) const KFENCE_READ: Self = Self("KFENCE-READ");
    pub(crate) const KFENCE_USED_READ: Self = Self("KFENCE-USE-AFTER-FREE-READ");
    pub(crate) const KFENCE_USED_WRITE: Self = Self("KFENCE-USE-AFTER-FREE-WRITE");
    pub(crate) const KFENCE_WRITE: Self = Self("KFENCE-WRITE");
    pub(crate) const KMSAN_LEAK: Self = Self("KMSAN-INFO-LEAK");
    pub(crate) const KMSAN_UNINIT: Self = Self("KMSAN-UNINIT-VALUE");
    pub(crate) const KMSAN_USED: Self = Self("KMSAN-USE-AFTER-FREE-READ");
    pub(crate) const LEAK: Self = Self("LEAK");
    pub(crate) const LOCKDEP: Self = Self("LOCKDEP");
    pub(crate) const MEMORY: Self = Self("MEMORY_SAFETY_BUG");
    pub(crate) const NULL: Self = Self("NULL-POINTER-DEREFERENCE");
    pub(crate) const REBOOT: Self = Self("REBOOT");
    pub(crate) const REFCOUNT: Self = Self("REFCOUNT_WARNING");
    pub(crate) const FUZZER: Self = Self("SYZ_FAILURE");
    pub(crate) const UBSAN: Self = Self("UBSAN");
    pub(crate) const WARNING: Self = Self("WARNING");

    /// Returns the stable word.
    pub const fn word(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
