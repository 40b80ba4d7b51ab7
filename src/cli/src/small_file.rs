//! Reads a small file of the scheduler into memory.

use fairlead_api::client::Client;

use crate::exit::Failure;

/// Reads a result file, or the listing of a folder. `None`: it does not exist. `too_large` returns the error for more
/// than `most` bytes.
pub(crate) async fn read(
    path: &str,
    most: usize,
    client: &Client,
    too_large: impl FnOnce() -> Failure,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut stream = match client.download(path).await {
        Ok(stream) => stream,
        Err(error) if error.status() == Some(404) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > most {
            return Err(too_large());
        }
    }
    Ok(Some(bytes))
}
