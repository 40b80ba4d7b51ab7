//! How much room the data folder has, and whether files were refused there of late.

use fairlead_api::{DataView, StoreProblem};
use fairlead_dispatch::Millis;
use parking_lot::Mutex;

/// Time for which a refused file is reported, ms. Small files may still fit after a large one did not.
const TOLD_MS: u64 = 600_000;
/// Free space below this fraction (1/N) of the total counts as little.
const LITTLE_PART: u64 = 20;
/// Free space above this is never little, bytes.
const LITTLE_BYTES_MAX: u64 = 10 << 30;

/// Space of the data folder's file system. Zero inodes in total: the file system does not count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    pub free_bytes: u64,
    pub bytes: u64,
    pub free_inodes: u64,
    pub inodes: u64,
}

impl Room {
    /// Returns a sentence that names the scarce resource.
    fn little(&self) -> Option<String> {
        let bytes = (self.bytes / LITTLE_PART).min(LITTLE_BYTES_MAX);
        if self.free_bytes < bytes {
            let (free, all) = (self.free_bytes >> 20, self.bytes >> 20);
            return Some(format!("it is nearly full: {free} MB of {all} MB are free"));
        }
        let (free, all) = (self.free_inodes, self.inodes);
        let is_little = free < all / LITTLE_PART;
        is_little.then(|| format!("it is nearly full: {free} of {all} inodes are free"))
    }
}

/// Failed writes of files.
#[derive(Debug, Clone)]
struct Refused {
    /// Times of the first and the last failure.
    since: Millis,
    last: Millis,
    problem: String,
}

/// Known state of the data folder.
#[derive(Debug, Default)]
pub struct DataRoom {
    room: Mutex<Option<Room>>,
    refused: Mutex<Option<Refused>>,
}

impl DataRoom {
    /// Returns the latest space of the file system.
    pub fn room(&self) -> Option<Room> {
        *self.room.lock()
    }

    pub fn measured(&self, room: Room) {
        *self.room.lock() = Some(room);
    }

    /// Notes that a file could not be stored. Returns true for the first failure in a while.
    pub fn refused(&self, problem: &str, now: Millis) -> bool {
        let mut refused = self.refused.lock();
        let known = refused.take().filter(|known| known.is_told(now));
        let is_first = known.is_none();
        *refused = Some(Refused {
            since: known.map_or(now, |known| known.since),
            last: now,
            problem: problem.to_owned(),
        });
        is_first
    }

    /// Returns the view for people. `None`: the file system was not read yet.
    pub fn view(&self, now: Millis) -> Option<DataView> {
        let room = self.room()?;
        let refused = self.refused.lock().clone();
        let refused = refused.filter(|refused| refused.is_told(now));
        let refused = refused.map(|refused| StoreProblem {
            problem: refused.problem,
            seconds: now.0.saturating_sub(refused.since.0) / 1_000,
        });
        let little = || {
            let problem = room.little()?;
            Some(StoreProblem {
                problem,
                seconds: 0,
            })
        };
        Some(DataView {
            free_bytes: room.free_bytes,
            bytes: room.bytes,
            free_inodes: room.free_inodes,
            inodes: room.inodes,
            problem: refused.or_else(little),
        })
    }
}

impl Refused {
    fn is_told(&self, now: Millis) -> bool {
        now.0.saturating_sub(self.last.0) < TOLD_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        free_bytes: 50 << 20,
        bytes: 1_000 << 20,
        free_inodes: 500,
        inodes: 10_000,
    };

    #[test]
    fn little_room_is_a_twentieth_of_bytes_or_inodes() {
        assert_eq!(ROOM.little(), None);
        let free_bytes = 49 << 20;
        let few = Room { free_bytes, ..ROOM }.little().unwrap();
        assert!(few.contains("49 MB of 1000 MB"), "{few}");
        let free_inodes = 499;
        let few = Room {
            free_inodes,
            ..ROOM
        }
        .little()
        .unwrap();
        assert!(few.contains("499 of 10000 inodes"), "{few}");
        let uncounted = Room {
            free_inodes: 0,
            inodes: 0,
            ..ROOM
        };
        assert_eq!(uncounted.little(), None);
        let large = Room {
            free_bytes: 11 << 30,
            bytes: 1 << 50,
            ..ROOM
        };
        assert_eq!(large.little(), None);
    }

    #[test]
    fn a_refused_file_is_told_of_for_ten_minutes_though_others_fit() {
        let data = DataRoom::default();
        let problem = |now| data.view(Millis(now))?.problem;
        assert!(data.refused("full", Millis(1_000)));
        assert_eq!(problem(1_000), None, "nobody looked yet");
        data.measured(ROOM);
        assert!(!data.refused("full", Millis(500_000)));
        let told = problem(501_000).unwrap();
        assert_eq!((told.problem.as_str(), told.seconds), ("full", 500));
        assert!(problem(1_099_999).is_some());
        assert_eq!(problem(1_100_000), None);
        assert!(data.refused("full", Millis(2_000_000)), "once more");
    }
}
