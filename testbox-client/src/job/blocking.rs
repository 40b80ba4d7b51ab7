//! Runs disk work beside the async loop.

use std::io;

use super::{folder::JobFolder, journal::Journal};

/// Writes the journal; it is on the disk when this returns.
pub(super) async fn save(folder: &JobFolder, journal: &Journal) -> io::Result<()> {
    let (folder, journal) = (folder.clone(), journal.clone());
    blocking(move || folder.save(&journal)).await
}

/// Runs work that blocks.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
