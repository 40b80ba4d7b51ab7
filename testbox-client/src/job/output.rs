//! Copies a workload's pipe to the file `output`. The pipe is always emptied, so a job never blocks on a disk limit or
//! the network. The file never exceeds its limit.

use std::{io, path::Path};

use tokio::{
    fs::{File, OpenOptions},
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    sync::{Notify, watch},
};

use super::crashes::CrashWatch;

/// Number of bytes per read.
const READ_BYTES: usize = 64 * 1024;

/// Creates the file before the job can put its own there.
pub(crate) async fn create(output: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true).open(output).await
}

/// Copies until all writers are gone. `size` always has the length of the file, and `heard` is notified of all output.
/// `crashes` gets all output, even the part that the file does not take.
///
/// A full disk does not stop the job: the rest is read and discarded, and the error is returned at the end.
pub(crate) async fn pump(
    mut pipe: pipe::Receiver,
    mut file: File,
    bytes_max: u64,
    size: &watch::Sender<u64>,
    heard: &Notify,
    crashes: &mut CrashWatch,
) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    let mut written = 0;
    let mut result = Ok(());
    let mut full = false;
    loop {
        let read = tokio::select! {
            read = pipe.read(&mut buffer) => read?,
            () = crashes.named() => continue,
        };
        if read == 0 {
            crashes.end();
            return result;
        }
        heard.notify_one();
        crashes.hear(&buffer[..read]);
        if full || result.is_err() {
            continue;
        }
        let room = usize::try_from(bytes_max - written).unwrap_or(usize::MAX);
        let (kept, rest) = buffer[..read].split_at(read.min(room));
        result = append(&mut file, kept).await;
        written += kept.len() as u64;
        if !rest.is_empty() && result.is_ok() {
            full = true;
            let line = cut_line(bytes_max);
            result = append(&mut file, line.as_bytes()).await;
            written += line.len() as u64;
        }
        if result.is_ok() {
            size.send_replace(written);
        }
    }
}

/// Returns the line that replaces all output after the limit.
fn cut_line(bytes_max: u64) -> String {
    format!("\n[fairlead: the output was cut here, at its limit of {bytes_max} bytes]\n")
}

async fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes).await?;
    // tokio's file buffers writes: without a flush the size would be reported before the bytes are written.
    file.flush().await
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use fairlead_job::Spec;

    use super::*;

    async fn pumped(said: &'static [u8], bytes_max: u64) -> (Vec<u8>, u64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output");
        let (reader, mut writer) = io::pipe().unwrap();
        let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        let (size, seen) = watch::channel(0);
        let write = tokio::task::spawn_blocking(move || io::Write::write_all(&mut writer, said));
        let file = create(&path).await.unwrap();
        let mut crashes = CrashWatch::of(&Spec::new(), false);
        pump(reader, file, bytes_max, &size, &Notify::new(), &mut crashes)
            .await
            .unwrap();
        write.await.unwrap().unwrap();
        let size = *seen.borrow();
        (std::fs::read(path).unwrap(), size)
    }

    #[tokio::test]
    async fn all_is_kept_up_to_the_limit_and_then_a_line_says_so() {
        assert_eq!(pumped(b"hello", 5).await, (b"hello".to_vec(), 5));
        let (text, size) = pumped(b"hello world", 5).await;
        assert_eq!(text.len() as u64, size);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, format!("hello{}", cut_line(5)));
    }

    /// Checks that a full disk does not block the job, and is reported.
    #[tokio::test]
    async fn what_cannot_be_kept_is_read_all_the_same_and_the_error_returned() {
        let (reader, mut writer) = io::pipe().unwrap();
        let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        let write = tokio::task::spawn_blocking(move || {
            io::Write::write_all(&mut writer, &vec![b'x'; 1 << 20])
        });
        let full = OpenOptions::new().write(true).open("/dev/full").await;
        let size = watch::Sender::new(0);
        let mut crashes = CrashWatch::of(&Spec::new(), false);
        let heard = Notify::new();
        let pumping = pump(reader, full.unwrap(), u64::MAX, &size, &heard, &mut crashes);
        let pumped = pumping.await;
        write.await.unwrap().unwrap();
        assert_eq!(pumped.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(*size.borrow(), 0);
    }

    #[tokio::test]
    async fn much_output_does_not_stop() {
        static MUCH: [u8; 1 << 20] = [b'x'; 1 << 20];
        let (text, _) = pumped(&MUCH, 1000).await;
        assert!(text.starts_with(&[b'x'; 1000]) && text.len() < 1200);
    }
}
