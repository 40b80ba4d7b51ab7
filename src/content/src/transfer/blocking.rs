//! Work that waits for files, beside the tasks that wait for the network.

use super::error::TransferError;

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TransferError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| TransferError::Bug(error.to_string()))
}
