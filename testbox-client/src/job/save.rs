//! Writes journals beside the async loop.

use std::io;

use super::{folder::JobFolder, journal::Journal};
use crate::blocking::blocking;

/// Writes the journal. It is synced to the disk before this returns.
pub(super) async fn save(folder: &JobFolder, journal: &Journal) -> io::Result<()> {
    let (folder, journal) = (folder.clone(), journal.clone());
    blocking(move || folder.save(&journal)).await
}
