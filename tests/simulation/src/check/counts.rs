//! Counts events over simulations. A check of an event that never happens proves nothing.

/// Counts for the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs acknowledged to users.
    pub acknowledged: u64,
    /// Stored claims.
    pub claims: u64,
    /// Attempts with a lost lease.
    pub lost: u64,
    /// Grants that were put back undelivered.
    pub given_back: u64,
    /// Workloads that started.
    pub runs: u64,
    /// Workloads that started while a former owner of the job, which does not know it yet, still ran it.
    pub overlaps: u64,
    /// Jobs in parts that ended after their shards.
    pub wholes: u64,
    /// Jobs that went on after the jobs that they need.
    pub needed: u64,
    /// Jobs with the result of another job.
    pub reused: u64,
    /// Reused jobs that waited for the result.
    pub shared: u64,
    /// Reused jobs with a result of another account.
    pub reused_of_others: u64,
    /// Jobs that waited for an identical one, with any outcome.
    pub joins: u64,
    /// Audits: jobs that ran to check the result of another job.
    pub audits: u64,
    /// Keys whose runs ended in different ways.
    pub differing: u64,
}

impl Counts {
    /// Adds the counts of another simulation.
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
