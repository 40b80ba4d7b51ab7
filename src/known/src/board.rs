//! The snapshot of the lab that people look at, and its changes in the seconds before.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use fairlead_api::Snapshot;
use fairlead_store::StageCounts;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use fairlead_base::gzip;

/// Number of recent changes kept for streams that reconnect. There is at most one change a second.
const FRAMES_KEPT: usize = 64;
/// Number of changes that a stream may lag behind before it must start again.
const FRAMES_BEHIND: usize = 32;

/// One change of the dashboard, as sent to all streams.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Number of the snapshot that it leads to.
    pub seq: u64,
    /// Text of a server-sent event.
    text: Bytes,
    /// The same text as a piece of a gzip stream, made on first use.
    packed: Arc<OnceLock<Bytes>>,
}

impl Frame {
    pub fn new(seq: u64, text: Bytes) -> Self {
        Self {
            seq,
            text,
            packed: Arc::default(),
        }
    }

    /// Returns the bytes to send. They are compressed once for all compressed streams.
    pub fn bytes(&self, is_packed: bool) -> Bytes {
        if !is_packed {
            return self.text.clone();
        }
        self.packed.get_or_init(|| gzip::piece(&self.text)).clone()
    }
}

/// A computed value, with the time of its computation on this replica's clock, ms.
type Kept<T> = Option<(u64, Arc<T>)>;

/// Waiting jobs, as last counted.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// Time of the count on this replica's clock, ms.
    pub at_ms: u64,
    /// Number of jobs by stored queue.
    pub queues: Vec<(String, u64)>,
}

/// Data of the dashboard, shared by all its viewers.
#[derive(Debug)]
pub struct Board {
    latest: Mutex<Kept<Snapshot>>,
    /// Last snapshot that a stream took as an event.
    whole: Mutex<Option<Frame>>,
    frames: Mutex<VecDeque<Frame>>,
    news: broadcast::Sender<Frame>,
    /// Notified when somebody opens the dashboard.
    pub looked: Notify,
    /// Lock of the task that makes the next snapshot.
    pub making: tokio::sync::Mutex<()>,
    seq: AtomicU64,
    waiting: Mutex<Option<Waiting>>,
    stages: Mutex<Kept<StageCounts>>,
    week: Mutex<Kept<BTreeMap<String, u32>>>,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            latest: Mutex::default(),
            whole: Mutex::default(),
            frames: Mutex::default(),
            news: broadcast::Sender::new(FRAMES_BEHIND),
            looked: Notify::new(),
            making: tokio::sync::Mutex::default(),
            seq: AtomicU64::new(0),
            waiting: Mutex::default(),
            stages: Mutex::default(),
            week: Mutex::default(),
        }
    }
}

impl Board {
    /// Returns true if any stream is open.
    pub fn is_watched(&self) -> bool {
        self.news.receiver_count() > 0
    }

    /// Returns a receiver of all later changes.
    pub fn listen(&self) -> broadcast::Receiver<Frame> {
        let news = self.news.subscribe();
        self.looked.notify_one();
        news
    }

    /// Returns the last snapshot, if it was made at or after this time of this replica's clock, ms.
    pub fn since(&self, ms: u64) -> Option<Arc<Snapshot>> {
        since(&self.latest, ms)
    }

    /// Returns the number of the next snapshot. Numbers begin at 1.
    pub fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Keeps a snapshot, and sends the change since the previous one to all streams.
    pub fn keep(&self, at_ms: u64, snapshot: Arc<Snapshot>, frame: Option<Frame>) {
        *self.latest.lock() = Some((at_ms, snapshot));
        let Some(frame) = frame else { return };
        let mut frames = self.frames.lock();
        if frames.len() >= FRAMES_KEPT {
            frames.pop_front();
        }
        frames.push_back(frame.clone());
        drop(frames);
        // A send without receivers is fine.
        let _ = self.news.send(frame);
    }

    /// Returns a snapshot as an event. Streams that open together share it.
    pub fn whole(&self, snapshot: &Snapshot, text: impl FnOnce() -> Bytes) -> Frame {
        let mut whole = self.whole.lock();
        let known = whole.as_ref().filter(|frame| frame.seq == snapshot.seq);
        if let Some(known) = known {
            return known.clone();
        }
        let frame = Frame::new(snapshot.seq, text());
        *whole = Some(frame.clone());
        frame
    }

    /// Returns the changes after a snapshot number. `None`: too old, or no number of this run.
    pub fn behind(&self, seq: u64) -> Option<Vec<Frame>> {
        let latest = self.latest.lock().as_ref().map(|(_, it)| it.seq)?;
        let frames = self.frames.lock();
        let is_latest = seq == latest;
        let is_kept = frames.iter().any(|frame| frame.seq == seq);
        let later = || frames.iter().filter(|frame| frame.seq > seq).cloned();
        (is_latest || is_kept).then(|| later().collect())
    }

    /// Keeps a count of the waiting jobs.
    pub fn counted(&self, waiting: Waiting) {
        *self.waiting.lock() = Some(waiting);
    }

    /// Returns the last count, if it was made at or after this time, ms.
    pub fn counted_since(&self, ms: u64) -> Option<Waiting> {
        let known = self.waiting.lock();
        known.clone().filter(|known| known.at_ms >= ms)
    }

    /// Returns the stage counts, if they were made at or after this time, ms.
    pub fn stages_since(&self, ms: u64) -> Option<Arc<StageCounts>> {
        since(&self.stages, ms)
    }

    pub fn keep_stages(&self, at_ms: u64, counts: Arc<StageCounts>) {
        *self.stages.lock() = Some((at_ms, counts));
    }

    /// Returns the shares of a week, if they were computed at or after this time, ms.
    pub fn week_since(&self, ms: u64) -> Option<Arc<BTreeMap<String, u32>>> {
        since(&self.week, ms)
    }

    pub fn keep_week(&self, at_ms: u64, shares: Arc<BTreeMap<String, u32>>) {
        *self.week.lock() = Some((at_ms, shares));
    }
}

fn since<T>(kept: &Mutex<Kept<T>>, ms: u64) -> Option<Arc<T>> {
    let kept = kept.lock();
    let fresh = kept.as_ref().filter(|(at_ms, _)| *at_ms >= ms);
    fresh.map(|(_, value)| Arc::clone(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(board: &Board, seq: u64) {
        let snapshot = Snapshot {
            seq,
            ..Snapshot::default()
        };
        let frame = Frame::new(seq, Bytes::from(seq.to_string()));
        board.keep(seq, Arc::new(snapshot), Some(frame));
    }

    #[test]
    fn a_stream_goes_on_behind_what_it_has_or_begins_again() {
        let board = Board::default();
        assert!(board.behind(0).is_none());
        for seq in 1..=100 {
            keep(&board, seq);
        }
        let seqs = |seq| {
            let frames = board.behind(seq)?;
            Some(frames.iter().map(|frame| frame.seq).collect::<Vec<_>>())
        };
        assert_eq!(seqs(100), Some(vec![]));
        assert_eq!(seqs(98), Some(vec![99, 100]));
        assert_eq!(seqs(3), None, "it was too long ago");
        assert_eq!(seqs(101), None, "another run made it");
        assert!(board.since(100).is_some() && board.since(101).is_none());
    }

    #[test]
    fn who_listens_is_told_and_nobody_else_is_counted() {
        let board = Board::default();
        assert!(!board.is_watched());
        let mut news = board.listen();
        assert!(board.is_watched());
        keep(&board, 1);
        assert_eq!(news.try_recv().unwrap().seq, 1);
        drop(news);
        assert!(!board.is_watched());
    }
}
