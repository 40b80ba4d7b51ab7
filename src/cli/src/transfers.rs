//! Shared by `put` and `get`: the lab that they speak to, and a bar on the terminal.

use std::{pin::pin, time::Duration};

use fairlead_api::client::Client;
use fairlead_content::transfer::{LabRemote, Stoppable, TransferError};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::watch;

use crate::{context::Context, exit::Failure, signals::Signals};

/// Time for which a transfer waits for an unreachable lab. The lab was reachable at the start.
const RETRY_FOR: Duration = Duration::from_mins(5);
/// Interval between updates of the bar.
const TICK: Duration = Duration::from_millis(200);

/// Returns the lab's content storage. Fails at once if no scheduler answers; later outages are awaited.
pub(crate) async fn remote(context: &Context) -> Result<LabRemote, Failure> {
    context.client()?.version().await?;
    let mut config = context.settings()?.client_config();
    config.retry_for = RETRY_FOR;
    Ok(LabRemote::new(Client::new(config)?, None)?)
}

/// Runs a transfer until its end or Ctrl-C. After Ctrl-C it ends cleanly, without a partial folder.
pub(crate) async fn until_stopped<T>(
    remote: &LabRemote,
    work: impl AsyncFnOnce(&Stoppable<'_>) -> Result<T, TransferError>,
) -> anyhow::Result<T> {
    let (stop, stopped) = watch::channel(false);
    let mut signals = Signals::catch()?;
    let remote = Stoppable::new(remote, stopped);
    let mut working = pin!(work(&remote));
    let done = tokio::select! {
        done = &mut working => done,
        () = signals.next() => {
            // There is no receiver only if the work has ended.
            let _ = stop.send(true);
            working.await
        }
    };
    Ok(done.map_err(Failure::from)?)
}

/// Progress bar of bytes on a person's terminal. It does nothing elsewhere.
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(crate) fn new(context: &Context) -> Self {
        let bar = context.output.remarks_are_seen().then(|| {
            let bar = ProgressBar::new(0);
            let style =
                ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes}, {msg} [{elapsed}]");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("=> "));
            bar.enable_steady_tick(TICK);
            bar
        });
        Self(bar)
    }

    pub(crate) fn show(&self, done: u64, all: u64, message: impl FnOnce() -> String) {
        if let Some(bar) = &self.0 {
            bar.set_length(all);
            bar.set_position(done);
            bar.set_message(message());
        }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
