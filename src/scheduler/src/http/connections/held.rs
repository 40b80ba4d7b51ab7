//! The body of an answer: its connection counts as busy while the body exists.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::body::{Body, Frame, SizeHint};

use super::connection::Connection;

/// A request that is worked on, until it is dropped.
struct Working(Arc<Connection>);

impl Working {
    fn on(connection: Arc<Connection>, is_h2: bool) -> Self {
        connection.begin(is_h2);
        Self(connection)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A body, and with it the request that it answers.
pub(crate) struct Held<B> {
    body: B,
    _working: Working,
}

impl<B> Held<B> {
    /// Answers a request: it counts as worked on from now to the end of its answer's body.
    pub(crate) fn answer<E>(
        connection: Arc<Connection>,
        is_h2: bool,
        answer: impl Future<Output = Result<hyper::Response<B>, E>>,
    ) -> impl Future<Output = Result<hyper::Response<Self>, E>> {
        let working = Working::on(connection, is_h2);
        async move {
            let answer = answer.await?;
            if answer.status() == hyper::StatusCode::SWITCHING_PROTOCOLS {
                working.0.upgrade();
            }
            Ok(answer.map(|body| Self {
                body,
                _working: working,
            }))
        }
    }
}

impl<B: Body + Unpin> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
