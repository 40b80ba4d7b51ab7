//! Labels inside an account's own queue: jobs of one account that name queues which do not exist.
//!
//! A label is one of [`SLOTS`] slots, and part of the stored name of the queue: `alice/7` is slot 7 of queue `alice`.
//! No queue or account has a slash in its name. So labels are counted, pulled and found like queues. The ledger lets
//! them take turns inside the one queue, with that queue's weight, class, limits and share.

/// Number of label slots of a queue. More labels share these slots.
pub const SLOTS: u8 = 16;

/// Separator between a queue and the slot of a label.
const SEPARATOR: char = '/';

/// Returns the stored name of a label: its account's queue, and its slot.
pub fn slot_of(queue: &str, slot: u8) -> String {
    format!("{queue}{SEPARATOR}{}", slot % SLOTS)
}

/// Returns the stored names of all labels of a queue.
pub fn slots_of(queue: &str) -> impl Iterator<Item = String> {
    (0..SLOTS).map(move |slot| slot_of(queue, slot))
}

/// Splits a label into its queue and its slot; `None`: the name is that of a whole queue.
fn split(stored: &str) -> Option<(&str, u8)> {
    let (queue, slot) = stored.split_once(SEPARATOR)?;
    let number: u8 = slot.parse().ok()?;
    (number < SLOTS && number.to_string() == slot).then_some((queue, number))
}

/// Returns the queue whose weight, class and limits apply to jobs of this stored queue.
pub fn queue_of(stored: &str) -> &str {
    split(stored).map_or(stored, |(queue, _)| queue)
}

/// Returns true if this stored queue is a label of another one.
pub fn is_label(stored: &str) -> bool {
    split(stored).is_some()
}

/// Returns the queue that is charged for a job, and its member that takes turns inside: an account or a label.
pub(crate) fn place_of<'a>(stored: &'a str, account: &'a str) -> (&'a str, &'a str) {
    match split(stored) {
        // A label is its own account's alone.
        Some((queue, _)) if queue == account => (queue, stored),
        _ => (stored, account),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_belong_to_their_account_s_queue() {
        let stored = slot_of("alice", 7);
        assert_eq!((stored.as_str(), queue_of(&stored)), ("alice/7", "alice"));
        assert_eq!(place_of("alice/7", "alice"), ("alice", "alice/7"));
        assert_eq!(place_of("alice", "bob"), ("alice", "bob"));
        assert!(slots_of("alice").all(|stored| is_label(&stored)));
    }

    #[test]
    fn other_names_are_queues_as_they_are() {
        for name in ["alice", "alice/16", "alice/07", "alice/", "/", "a/b/1", ""] {
            assert!(!is_label(name), "{name}");
            assert_eq!(queue_of(name), name);
        }
        assert_eq!(place_of("alice/7", "bob"), ("alice/7", "bob"));
    }
}
