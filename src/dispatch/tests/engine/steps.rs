//! Random histories, one step at a time.

use proptest::prelude::*;

/// One step of a random history. Numbers are folded into what exists.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Learn(Vec<(u8, u8, u8, i16)>),
    Offer(u8, u8),
    Commit(u8),
    Refuse(u8, u8),
    End(u8),
    Gone(u8),
    Withdraw(u8),
    Leave(u8),
    Load(u8, u8),
    Close(u8),
    Held(u8),
    Requeue(u8),
    Policy(u8, u8, u8),
    Counts(u16),
    FindsEnd,
    PullsEnd,
    Pass(u16),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), -1..2_i16), 1..6).prop_map(Step::Learn),
        8 => (any::<u8>(), any::<u8>()).prop_map(|(host, how)| Step::Offer(host, how)),
        8 => any::<u8>().prop_map(Step::Commit),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(which, how)| Step::Refuse(which, how)),
        5 => any::<u8>().prop_map(Step::End),
        1 => any::<u8>().prop_map(Step::Gone),
        1 => any::<u8>().prop_map(Step::Withdraw),
        1 => any::<u8>().prop_map(Step::Leave),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(host, how)| Step::Load(host, how)),
        1 => any::<u8>().prop_map(Step::Close),
        1 => any::<u8>().prop_map(Step::Held),
        1 => any::<u8>().prop_map(Step::Requeue),
        1 => (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(queue, class, weight)| Step::Policy(queue, class, weight)),
        1 => any::<u16>().prop_map(Step::Counts),
        2 => Just(Step::FindsEnd),
        1 => Just(Step::PullsEnd),
        3 => (0..4_000_u16).prop_map(Step::Pass),
        1 => (4_000..16_000_u16).prop_map(Step::Pass),
    ]
}
