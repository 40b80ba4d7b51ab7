//! Counts events over simulations. A check of an event that never happens proves nothing.

/// What is counted for the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs that users were told are in.
    pub acknowledged: u64,
    /// Claims that are in.
    pub claims: u64,
    /// Attempts whose lease was lost.
    pub lost: u64,
    /// Grants that were put back undelivered.
    pub given_back: u64,
    /// Workloads that began.
    pub runs: u64,
    /// Runs that began while a former owner of the job, who does not know it yet, still ran it.
    pub overlaps: u64,
    /// Jobs in parts that ended after their shards.
    pub wholes: u64,
    /// Jobs that went on after those that they need.
    pub needed: u64,
    /// Jobs that have the result of another one.
    pub reused: u64,
    /// Those of them that waited for it.
    pub shared: u64,
    /// Those of them that have one of another account.
    pub reused_of_others: u64,
    /// Jobs that waited for one that ran the same thing, whatever came of it.
    pub joins: u64,
    /// Jobs that ran to check the result of another one.
    pub audits: u64,
    /// Keys whose runs ended in different ways.
    pub differing: u64,
}

impl Counts {
    /// Adds those of another simulation.
    pub fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.claims += other.claims;
        self.lost += other.lost;
        self.given_back += other.given_back;
        self.runs += other.runs;
        self.overlaps += other.overlaps;
        self.wholes += other.wholes;
        self.needed += other.needed;
        self.reused += other.reused;
        self.shared += other.shared;
        self.reused_of_others += other.reused_of_others;
        self.joins += other.joins;
        self.audits += other.audits;
        self.differing += other.differing;
    }
}
