//! Reads a file that people write: settings of a command, of a scheduler, or of a lab.

use std::{fs, io, path::Path};

/// Maximum size of such a file, bytes. A larger file is a mistake.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads a text file of at most [`FILE_BYTES_MAX`] bytes.
pub(crate) fn text_of(path: &Path) -> io::Result<String> {
    let about = fs::metadata(path)?;
    if about.len() > FILE_BYTES_MAX {
        let bytes = about.len();
        let problem = format!("it has {bytes} bytes; the limit is {FILE_BYTES_MAX}");
        return Err(io::Error::other(problem));
    }
    fs::read_to_string(path)
}
