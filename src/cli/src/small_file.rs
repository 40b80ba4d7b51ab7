//! Reads a small file of the scheduler into memory.

use fairlead_api::client::Client;

use crate::exit::Failure;

/// A result file, or the listing of a folder; `None`: it is not there. `too_large` says that it has more bytes than `most`.
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
