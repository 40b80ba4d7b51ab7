//! The background tasks of a replica. It waits for all of them when it stops.

use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

/// Starts tasks whose log lines name their origin, and ends their waits when the replica drains.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    /// Cancelled first: waiting requests are answered, and no new work is taken.
    pub draining: CancellationToken,
}

impl Tasks {
    /// Starts a task that continues the work of its caller. Its log lines have the caller's `request_id`, or task.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tracker.spawn(work.in_current_span())
    }

    /// Starts a task of the replica itself: its log lines have the field `task`, at level debug.
    pub fn run<F>(&self, name: &'static str, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let span = tracing::debug_span!(parent: None, "task", task = name);
        self.tracker.spawn(work.instrument(span));
    }

    /// Returns the result of `wait`; `None` once the replica drains.
    pub async fn until_draining<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.draining.cancelled() => None,
            got = wait => Some(got),
        }
    }

    /// Waits until all tasks have ended.
    pub async fn finish(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tracing::Span;

    use super::*;

    #[tokio::test]
    async fn a_task_is_in_the_span_of_its_caller_and_one_of_the_replica_in_its_own() {
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
        let tasks = Tasks::default();
        let request = tracing::info_span!("request");
        let id = request.id();
        let inside = request.in_scope(|| tasks.spawn(async { Span::current().id() }));
        assert!(id.is_some());
        assert_eq!(inside.await.unwrap(), id);
        let (tell, told) = tokio::sync::oneshot::channel();
        request.in_scope(|| {
            tasks.run("round", async {
                let name = Span::current().metadata().map(tracing::Metadata::name);
                let _ = tell.send(name);
            });
        });
        assert_eq!(told.await.unwrap(), Some("task"));
        tasks.finish().await;
    }

    #[tokio::test]
    async fn a_wait_ends_when_the_replica_drains() {
        let tasks = Tasks::default();
        assert_eq!(tasks.until_draining(async { 7 }).await, Some(7));
        let (waits, ()) = tokio::join!(tasks.until_draining(pending::<()>()), async {
            tasks.draining.cancel();
        });
        assert_eq!(waits, None);
        assert_eq!(tasks.until_draining(async { 7 }).await, None);
    }
}
