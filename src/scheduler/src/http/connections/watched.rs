//! The bytes of a connection: a read fails once the connection was silent for too long.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Connection;

/// The bytes of a connection, watched.
pub(crate) struct Watched<T> {
    bytes: T,
    connection: Arc<Connection>,
    /// When to look at the deadline again.
    timer: Option<(u64, BoxFuture<'static, ()>)>,
}

impl<T> Watched<T> {
    pub(crate) fn new(bytes: T, connection: Arc<Connection>) -> Self {
        Self {
            bytes,
            connection,
            timer: None,
        }
    }

    /// Ready when the time is over; else the task is woken when there is something to look at.
    fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let clock = &self.connection.all.clock;
        loop {
            let Some(deadline_ms) = self.connection.deadline_ms() else {
                self.timer = None;
                return Poll::Pending;
            };
            let now_ms = clock.now().0;
            if now_ms >= deadline_ms {
                return Poll::Ready(());
            }
            // One that is early is kept: deadlines move on with each request.
            let timer = match self.timer.take() {
                Some((at_ms, timer)) if at_ms <= deadline_ms => (at_ms, timer),
                _ => {
                    let (clock, left) =
                        (clock.clone(), Duration::from_millis(deadline_ms - now_ms));
                    let timer = async move { clock.sleep(left).await };
                    (deadline_ms, Box::pin(timer) as _)
                }
            };
            let (_, timer) = self.timer.insert(timer);
            ready!(timer.as_mut().poll(context));
            self.timer = None;
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.bytes).poll_read(context, buffer) {
            Poll::Ready(read) => {
                if buffer.filled().len() > before {
                    self.connection.heard();
                }
                Poll::Ready(read)
            }
            Poll::Pending => {
                ready!(self.poll_over(context));
                Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "nothing came for too long",
                )))
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.bytes.is_write_vectored()
    }
}
