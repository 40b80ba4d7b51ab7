//! Errors of hosts, of requests for work, and of messages of other replicas.

refusals! {
    /// An error of a host or of its request for work.
    pub enum HostError {
        #[error("no host '{0}'")]
        Unknown(String) => NotFound,
            "list them with GET hosts; one that never asked for work is registered with POST hosts/:hostname";
        #[error("the lab has {0} hosts, which is the limit")]
        TooMany(usize) => TooMany, "forget gone hosts: fairlead hosts forget NAME";

        #[error("account '{account}' has {max} hosts, which is the limit")]
        TooManyOfAccount { account: String, max: usize } => Quota,
            "forget gone hosts, or add another account";
        #[error("tags, devices, facts and executors: {given} bytes are over {max}")]
        SaysTooMuch { given: u64, max: u64 } => TooLarge,
            "say fewer; each text counts 32 bytes more";

        // Registration.
        #[error("mac_addr: {0} is another host's")]
        MacTaken(String) => Forbidden,
            "an admin can register it, or take it away from the other host";
        #[error("{field}: not {expected}")]
        BadRegistration {
            field: String,
            expected: &'static str,
        } => BadField, "see the operator's guide, hosts";
        #[error("kinds: '{0}' is none")]
        UnknownKind(String) => BadField, "hw alone, or vm and/or dc";
        #[error("kinds: empty")]
        NoKinds => BadField, "hw alone, or vm and/or dc";

        #[error("host '{name}' is not gone: it was heard of within two minutes, or has jobs ({jobs})")]
        NotGone { name: String, jobs: usize } => WrongStage, "drain it, and stop its agent first";

        // Cordons and reservations.
        #[error("host '{0}' is not closed")]
        NotClosed(String) => NotFound, "list hosts with GET hosts";
        #[error("host '{0}' is not reserved")]
        NotReserved(String) => NotFound, "list hosts with GET hosts";
        #[error("accounts: {given} were given")]
        ReservedFor { given: usize, max: usize } => BadField of (max),
            format!("give 1 to {max} accounts whose jobs the host gets");
        #[error("until: '{0}' is not a time")]
        BadTime(String) => BadField,
            "write +2h for two hours from now, or a time: 2026-11-22T05:00:00+08:00; without a zone it is UTC";
        #[error("until: {until} is in the past, or too far ahead")]
        BadUntil { until: String, days_max: u64 } => BadField of (days_max),
            format!("use a time in the future, at most {days_max} days ahead");

        // Requests for work.
        #[error("{field}: {shown} is not {expected}")]
        BadRequest {
            field: &'static str,
            shown: String,
            expected: &'static str,
        } => BadField, "see docs/api.md, consume";
        #[error("{field}: not a word of at most {bytes_max} printable characters")]
        BadWord {
            field: &'static str,
            bytes_max: usize,
        } => BadField, "see docs/api.md, consume";
        #[error("running: {given} jobs are over {max}")]
        TooManyHeld { given: usize, max: usize } => BadField, "one host cannot have so many";
        #[error("the dispatcher did not answer in time")]
        NoAnswer => Unavailable, "ask again";
        #[error("the dispatcher is stopping")]
        DispatcherStopping => Unavailable, "ask again";

        // Session of the host.
        #[error("host {0} has begun another session")]
        SessionOver(String) => SessionOver,
            "begin a new session; if this goes on, two agents have the same name";
        #[error("request {request} came after request {present} of the same session")]
        Late { request: u64, present: u64 } => Conflict, "ask again with a greater number";
        #[error("a later request of this host came meanwhile")]
        TurnLost => Conflict, "its answer has the jobs; ask again with a greater number";
        #[error("host {0} has retired: its pool ends it")]
        Retired(String) => Closed,
            "stop its agent; a pool asks its provider for new machines, fairlead scale log shows why";
        #[error("another agent has the name {0}, in another folder or on another machine")]
        OtherAgent(String) => HostConflict,
            "start one of them with another --host; if the other agent is gone, this one takes over after two of its heartbeats";

        // Machines that boot over the network.
        #[error("boot_type: '{0}' is none")]
        BadBootType(String) => BadQuery, "one of: ipxe, grub, native";
        #[error("no host is registered with this MAC address, and no hostname was sent")]
        NoName => NotFound, "register it: POST /scheduler/v1/hosts/NAME {\"mac_addr\": [...]}";
        #[error("memory: {0}")]
        BadMemory(String) => BadQuery, "for example 256g";
        #[error("the initrd of the job could not be built")]
        NotPacked => Internal, "the replica's log has the reason";
    }
}

refusals! {
    /// Reason why a message of another replica is refused.
    pub enum PeerError {
        #[error("hints are taken from replicas of this lab only")]
        Stranger => Forbidden, "nothing else needs to call this";
        #[error("{0}")]
        BadMessage(String) => BadBody,
            "replicas of versions next to each other understand each other";
    }
}
