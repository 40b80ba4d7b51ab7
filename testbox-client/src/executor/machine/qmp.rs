//! The machine protocol of QEMU, as far as it is needed: a press of the power button.

use std::{io, path::Path, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
};

/// Timeout of an answer of QEMU.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Presses the power button of the machine with this socket.
///
/// # Errors
/// Fails if there is no such socket, or if QEMU does not answer within 2 s.
pub(crate) async fn press_power_button(socket: &Path) -> io::Result<()> {
    let pressing = async {
        let mut stream = BufReader::new(UnixStream::connect(socket).await?);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        for command in ["qmp_capabilities", "system_powerdown"] {
            let words = format!("{{\"execute\": \"{command}\"}}\n");
            stream.write_all(words.as_bytes()).await?;
            line.clear();
            stream.read_line(&mut line).await?;
        }
        Ok(())
    };
    tokio::time::timeout(ANSWER_MAX, pressing)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
