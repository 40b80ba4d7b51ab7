//! Errors of hosts, of requests for work, and of messages of other replicas.

/// An error of a host or of its request for work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    #[error("no host '{0}'")]
    Unknown(String),
    #[error("the lab has {0} hosts, which is the limit")]
    TooMany(usize),

    #[error("account '{account}' has {max} hosts, which is the limit")]
    TooManyOfAccount { account: String, max: usize },
    #[error("tags, devices, facts and executors: {given} bytes are over {max}")]
    SaysTooMuch { given: u64, max: u64 },

    // Registration.
    #[error("mac_addr: {0} is another host's")]
    MacTaken(String),
    #[error("{field}: not {expected}")]
    BadRegistration {
        field: String,
        expected: &'static str,
    },
    #[error("kinds: '{0}' is none")]
    UnknownKind(String),
    #[error("kinds: empty")]
    NoKinds,

    #[error("host '{name}' is not gone: it was heard of within two minutes, or has jobs ({jobs})")]
    NotGone { name: String, jobs: usize },

    // Cordons and reservations.
    #[error("host '{0}' is not closed")]
    NotClosed(String),
    #[error("host '{0}' is not reserved")]
    NotReserved(String),
    #[error("accounts: {given} were given")]
    ReservedFor { given: usize, max: usize },
    #[error("until: '{0}' is not a time")]
    BadTime(String),
    #[error("until: {until} is in the past, or too far ahead")]
    BadUntil { until: String, days_max: u64 },

    // Requests for work.
    #[error("{field}: {shown} is not {expected}")]
    BadRequest {
        field: &'static str,
        shown: String,
        expected: &'static str,
    },
    #[error("{field}: not a word of at most {bytes_max} printable characters")]
    BadWord {
        field: &'static str,
        bytes_max: usize,
    },
    #[error("running: {given} jobs are over {max}")]
    TooManyHeld { given: usize, max: usize },
    #[error("the dispatcher did not answer in time")]
    NoAnswer,
    #[error("the dispatcher is stopping")]
    DispatcherStopping,

    // Whose turn it is.
    #[error("host {0} has begun another session")]
    SessionOver(String),
    #[error("request {request} came after request {present} of the same session")]
    Late { request: u64, present: u64 },
    #[error("a later request of this host came meanwhile")]
    TurnLost,
    #[error("host {0} has retired: its pool ends it")]
    Retired(String),
    #[error("another agent has the name {0}, in another folder or on another machine")]
    OtherAgent(String),

    // Machines that boot over the network.
    #[error("boot_type: '{0}' is none")]
    BadBootType(String),
    #[error("no host is registered with this MAC address, and no hostname was sent")]
    NoName,
    #[error("memory: {0}")]
    BadMemory(String),
    #[error("the initrd of the job could not be built")]
    NotPacked,
}

/// Why a message of another replica is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerError {
    #[error("hints are taken from replicas of this lab only")]
    Stranger,
    #[error("{0}")]
    BadMessage(String),
}
