//! The signals that ask a program to end.

use tokio::signal::unix::{SignalKind, signal};

/// Does this work. SIGINT and SIGTERM drop it where it is; so what it holds is cleaned up.
///
/// # Errors
/// Those of the work, a signal, and the system's.
pub async fn unless_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut ends = signal(SignalKind::terminate())?;
    tokio::select! {
        done = work => done,
        _ = interrupts.recv() => Err(anyhow::anyhow!("interrupted by SIGINT")),
        _ = ends.recv() => Err(anyhow::anyhow!("interrupted by SIGTERM")),
    }
}
