//! Errors of accounts and queues: missing rights, and values that cannot be set.

use fairlead_job::RuleError;

refusals! {
    /// An error of an account or a queue.
    pub enum PeopleError {
        // Identity of the caller.
        #[error("no token was sent")]
        NoToken => Unauthorized,
            "send 'Authorization: Bearer TOKEN' with a token from: fairlead account add NAME";
        #[error("unknown token")]
        UnknownToken => Unauthorized,
            "send 'Authorization: Bearer TOKEN' with a token from: fairlead account add NAME";
        #[error("this token of account '{0}' is over")]
        TokenOver(String) => Unauthorized of (0: account),
            format!("a newer one replaced it, or it expired; an admin makes one: fairlead account add {account} --new-token");
        #[error("the token does not belong to the account in my_account")]
        OthersToken => Unauthorized,
            "send 'Authorization: Bearer TOKEN' with a token from: fairlead account add NAME";
        /// A newer version gave it a role that this version does not know.
        #[error("account '{0}' has a role that this replica does not know")]
        NewRole(String) => Forbidden,
            "a newer version set it; upgrade all replicas, or ask an admin for another role";
        #[error("account '{0}' is not an admin")]
        NotAdmin(String) => Forbidden, "ask an admin, or use the token of an admin";
        #[error("account '{0}' is not a testbox")]
        NotTestbox(String) => Forbidden,
            "create one with: fairlead account add NAME --role testbox --hosts 'PATTERN'";
        #[error("account '{account}' does not name host '{host}'")]
        NotItsHost { account: String, host: String } => Forbidden of (account),
            format!("an admin names all its hosts: fairlead account add {account} --hosts 'PATTERN,PATTERN'");
        #[error("account '{0}' is a testbox: it asks for work and reports, and does nothing else")]
        OnlyTestbox(String) => Forbidden, "use the token of a user";
        #[error("account '{account}' may not put a host into group '{group}'")]
        NotItsGroup { account: String, group: String } => Forbidden of (account),
            format!("an admin names all its groups: fairlead account add {account} --groups 'PATTERN,PATTERN'");

        // Setting an account.
        #[error("role: unknown role '{0}'")]
        UnknownRole(String) => BadField, "one of: admin, user, testbox";
        #[error("{0} cannot be set in an open lab, only limits can")]
        OpenLab(String) => Forbidden,
            "start with --auth; make the first admin in the store: fairlead account add NAME --role admin --data DIR";
        #[error("hosts: an account of role '{0}' names no hosts")]
        NamesNoHosts(String) => BadField, "only testbox accounts act for hosts: --role testbox";
        #[error("hosts: {given} patterns; 1 to {max} can be named")]
        HostPatterns { given: usize, max: usize } => BadField,
            "a pattern such as rack1-* stands for many hosts";
        #[error("hosts: '{0}' is no pattern of host names")]
        BadHostPattern(String) => BadField,
            "1 to 128 bytes of letters, digits and ._-@+~:, with * for any text and ? for one character";

        // Setting a limit, of an account or a queue.
        #[error("limits.{what}: {given} is over {max}")]
        LimitTooHigh {
            what: &'static str,
            given: u64,
            max: u64,
        } => BadField, "omit it for no limit";
        #[error("limits.{what}: only accounts have this limit")]
        LimitOfAccounts { what: &'static str } => BadField,
            "set it for an account: fairlead account set NAME";
        #[error("limits.{what}: a soft limit was given")]
        NoSoftLimit { what: &'static str } => BadField, "set a hard limit: N, or none";
        #[error("limits.{what}: the soft limit {soft} is over the hard limit {hard}")]
        SoftOverHard {
            what: &'static str,
            soft: u64,
            hard: u64,
        } => BadField, "jobs over the soft limit go behind others; jobs at the hard limit wait";

        // Setting a queue.
        #[error("no change was given")]
        NoChange => BadField, "set priority, weight, paused, background_permille, users or limits";
        #[error("priority: {given} is over {max}")]
        PriorityTooHigh { given: u8, max: u8 } => BadField,
            "0 to 9; 9 is served first, 3 is the default";
        #[error("weight: {given} is not 1 to {max}")]
        BadWeight { given: u32, max: u32 } => BadField, "to stop a queue set paused: true";
        #[error("background_permille: {given} is over {max}")]
        BackgroundTooHigh { given: u16, max: u16 } => BadField,
            "thousandths of all dispatches, 50 for one of twenty; 0 for none";
        #[error("users: the list is empty")]
        NoUsers => BadField,
            "name accounts, or say 'all' for every account, 'own' for the one of its name";
        #[error("users: {given} accounts are over {max}")]
        TooManyUsers { given: usize, max: usize } => BadField,
            "name accounts, or say 'all' for every account, 'own' for the one of its name";
        #[error("queue '{0}' has the default policy")]
        DefaultPolicy(String) => NotFound, "only queues with a policy can be deleted";
        #[error("unknown queue '{0}'")]
        UnknownQueue(String) => NotFound, "list them with GET queues";
        #[error("no account '{0}'")]
        UnknownAccount(String) => NotFound, "list them with GET accounts";
        #[error("account '{0}' is your own")]
        OwnAccount(String) => Conflict, "another admin can delete it";

        // Notices about the jobs of an account.
        #[error("account '{asker}' may not see or set who is told of the jobs of '{account}'")]
        OthersNotify { asker: String, account: String } => Forbidden,
            "its owner or an admin can do this";
        #[error("nobody is told of the jobs of account '{0}' that do not say so themselves")]
        NoNotify(String) => NotFound, "set one with: fairlead account notify URL";

        // Setting how long jobs are kept.
        #[error("expires_s: {0}, but no new token is made")]
        NoNewToken(u64) => BadField, "make one: new_token: true, or --new-token";
        #[error("{what}: {given} is not between {min} and {max}")]
        TokenTime {
            what: &'static str,
            given: u64,
            min: u64,
            max: u64,
        } => BadField, "seconds; omit it for the default";
        #[error("keep_months: no old jobs can be deleted: the login of Elasticsearch lacks {0}")]
        MayNotDrop(String) => Conflict,
            "add that right to the role of the login, then set it again";
        #[error("keep_months: {given} is over {max}")]
        TooManyMonths { given: u32, max: u32 } => BadField,
            "0 keeps jobs for ever; null leaves it to --keep-months";

        // Setting submit rules.
        #[error("{0}")]
        BadRule(RuleError) => BadField of (0: error), error.hint.clone();
        #[error("{0}")]
        BadReuse(String) => BadField,
            "write for example {suites: [{suite: 'ltp*', within: 14d}], performance: ['iozone*']}";
    }
}
