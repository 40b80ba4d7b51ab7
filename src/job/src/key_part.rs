//! The parts of the reuse key.

/// A part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyPart {
    /// The inputs by content, with their folders.
    Inputs,
    /// The script.
    Script,
    /// All that the program can see, and that no other part has.
    Parameters,
    /// The system that it runs in.
    Image,
    /// Which part of a whole it is.
    Shards,
    /// The requirements on a host.
    Requirements,
    /// The salt of the site.
    Salt,
}

impl KeyPart {
    /// All, in the order in which people are told.
    pub const ALL: [Self; 7] = [
        Self::Inputs,
        Self::Script,
        Self::Parameters,
        Self::Image,
        Self::Shards,
        Self::Requirements,
        Self::Salt,
    ];

    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Script => "script",
            Self::Parameters => "parameters",
            Self::Image => "image",
            Self::Shards => "shards",
            Self::Requirements => "requirements",
            Self::Salt => "salt",
        }
    }
}
