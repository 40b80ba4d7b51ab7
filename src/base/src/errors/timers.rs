//! Errors of timers.

refusals! {
    /// An error of a timer.
    pub enum TimerError {
        #[error("timer: missing")]
        NoName => BadField, "give the timer a name: timer: nightly";
        #[error("timer: a timer of this name exists already")]
        Exists => Conflict, "change it with: fairlead timers update NAME, or use another name";
        #[error("account '{account}' has no timer '{name}'")]
        Unknown { account: String, name: String } => NotFound,
            "list them with: fairlead timers list";
        #[error("timer '{name}' belongs to account '{account}', not to '{asker}'")]
        NotOwner {
            name: String,
            account: String,
            asker: String,
        } => Forbidden, "its owner or an admin can do this";
        #[error("{field}: a run every {shortest_s} s; the shortest interval is {least_s} s")]
        TooOften {
            field: &'static str,
            shortest_s: u64,
            least_s: u64,
        } => BadField, "use a longer interval, or ask the operator for a lower timer_period_min_s";
        #[error("account '{account}' has {there} timers; the limit is {max}")]
        TooMany {
            account: String,
            there: u64,
            max: u64,
        } => TooMany, "delete some: fairlead timers delete NAME";
        #[error("no change was given")]
        NoChange => BadField, "set every, cron, timezone, overlap or missed, or send a whole job";
        #[error("a run of timer '{0}' is due and cannot start now")]
        RunDue(String) => Unavailable, "nothing was changed; try again in a few seconds";
        /// The submitter may not submit it.
        #[error("there is no account '{0}' any more")]
        NoSubmitter(String) => Forbidden, "submit the timer again as another account";
    }
}
