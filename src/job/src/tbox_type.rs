//! Kind of a testbox: hardware, virtual machine or container.

/// Kind of testbox that runs a job.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum TboxType {
    /// The host itself, one job at a time.
    Hw,
    /// A virtual machine on a host.
    Vm,
    /// A container on a host: what a site assumes that says nothing.
    #[default]
    Dc,
}

impl TboxType {
    /// The word on the wire and in host keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hw => "hw",
            Self::Vm => "vm",
            Self::Dc => "dc",
        }
    }

    /// The kind that the name of a testbox implies, such as `vm-2p8g`, `dc` or `a66`.
    pub fn of_testbox(testbox: &str) -> Self {
        let word = testbox.split(['-', '.']).next().unwrap_or_default();
        match word {
            "vm" => Self::Vm,
            "dc" => Self::Dc,
            _ => Self::Hw,
        }
    }
}
