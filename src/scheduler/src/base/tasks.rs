//! The background tasks of a replica. It waits for all of them when it stops.

use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// Starts tasks whose log lines say what they belong to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(TaskTracker);

impl Tasks {
    /// Starts a task that goes on with the work of its caller: its log lines have the caller's `request_id`, or task.
    pub(crate) fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.0.spawn(work.in_current_span())
    }

    /// Starts a task of the replica itself: its log lines have the field `task`, at level debug.
    pub(crate) fn run<F>(&self, name: &'static str, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let span = tracing::debug_span!(parent: None, "task", task = name);
        self.0.spawn(work.instrument(span));
    }

    /// Waits until all tasks have ended.
    pub(crate) async fn finish(&self) {
        self.0.close();
        self.0.wait().await;
    }
}

#[cfg(test)]
mod tests {
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
}
