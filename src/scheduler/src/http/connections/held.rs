//! The body of an answer: its connection counts as busy while the body exists, and its bytes are charged until they are
//! read.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::connection::{Connection, ReadBy};
use fairlead_base::budget::Charge;

/// A shorter piece has no time limit: what holds it is bounded by the number of streams.
const PIECE_MIN: usize = 4 << 10;

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

/// What an answer is charged until the last of it is read. Whoever makes an answer lays it beside that.
#[derive(Debug, Clone)]
pub(crate) struct UnderWay {
    _charges: Arc<(Charge, Option<Charge>)>,
}

impl UnderWay {
    /// Its memory, and the place of its sender.
    pub(crate) fn new(memory: Charge, place: Option<Charge>) -> Self {
        Self {
            _charges: Arc::new((memory, place)),
        }
    }
}

/// A body, and with it the request that it answers.
pub(crate) struct Held<B> {
    body: B,
    working: Working,
    under_way: Option<UnderWay>,
    /// The reader has not asked for the next piece yet.
    waits: Option<ReadBy>,
}

impl<B: Body> Held<B> {
    /// Answers a request: it counts as worked on from now to the end of its answer's body.
    pub(crate) fn answer<E>(
        connection: Arc<Connection>,
        is_h2: bool,
        answer: impl Future<Output = Result<hyper::Response<B>, E>>,
    ) -> impl Future<Output = Result<hyper::Response<Self>, E>> {
        let working = Working::on(connection, is_h2);
        async move {
            let mut answer = answer.await?;
            if answer.status() == hyper::StatusCode::SWITCHING_PROTOCOLS {
                working.0.upgrade();
            }
            let under_way = answer.extensions_mut().remove::<UnderWay>();
            Ok(answer.map(|body| Self {
                waits: waits(&working.0, body.size_hint().exact()),
                body,
                working,
                under_way,
            }))
        }
    }
}

/// A time limit for the next piece of a body of this length; `None`: it is short.
fn waits(connection: &Connection, length: Option<u64>) -> Option<ReadBy> {
    let length = length.map_or(PIECE_MIN, |length| usize::try_from(length).unwrap_or(0));
    (length >= PIECE_MIN).then(|| connection.reads_by(length))
}

/// A piece that was handed over and is not read yet.
struct Piece {
    bytes: Bytes,
    _under_way: Option<UnderWay>,
    _read_by: ReadBy,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Held<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let held = &mut *self;
        // The reader has room. From now on it is the body that may take its time.
        held.waits = None;
        let polled = Pin::new(&mut held.body).poll_frame(context);
        let Poll::Ready(Some(Ok(frame))) = polled else {
            return polled;
        };
        held.waits = waits(&held.working.0, held.body.size_hint().exact());
        let frame = frame.map_data(|bytes| {
            if bytes.len() < PIECE_MIN {
                return bytes;
            }
            Bytes::from_owner(Piece {
                _read_by: held.working.0.reads_by(bytes.len()),
                _under_way: held.under_way.clone(),
                bytes,
            })
        });
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
