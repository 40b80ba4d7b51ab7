//! Cuts a console that comes in pieces into lines.

use memchr::memchr;

/// Maximum line length, bytes. Longer lines are cut, because the important part of a message is at its start.
pub const LINE_BYTES_MAX: usize = 1024;

/// Start of a line whose end has not arrived.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    /// Calls `each` for the lines that these bytes complete. The bytes may end anywhere.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            if self.0.is_empty() {
                each(line.get(..LINE_BYTES_MAX).unwrap_or(line));
            } else {
                self.keep(line);
                each(&self.0);
                self.0.clear();
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.keep(bytes);
    }

    /// Returns the last line, of a console that ended without a newline.
    pub(crate) fn last(&mut self) -> Option<Vec<u8>> {
        let last = std::mem::take(&mut self.0);
        (!last.is_empty()).then_some(last)
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.0.len());
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.0.extend_from_slice(kept);
    }
}
