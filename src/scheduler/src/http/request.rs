//! Parses a request once, for all handlers.

use std::{
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::{Buf, Bytes};
use fairlead_api::{ErrorCode, JOB_TOKEN_HEADER};
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use warp::http::{HeaderMap, Method};

use crate::{
    files::read::{Part, Wanted},
    flows::Flows,
    http::{
        connections::{Connection, UnderWay, network},
        ranges::part_of,
    },
};
use fairlead_base::{
    budget::{Budget, Charge, Identity, built_bytes},
    errors::Refusal,
    query::{Query, decode_segment},
};
use fairlead_known::accounts::Credentials;

/// The body, piece by piece.
pub(super) type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send>>;

/// Longest path, bytes.
const PATH_MAX: usize = 4096;
/// Only then a slow body is too slow: the first pieces of a good one may take their time.
const RATE_AFTER: Duration = Duration::from_mins(1);
/// So much of a body is read although no handler wants it, bytes: its client then sees the answer, not a broken
/// connection.
const UNREAD_MAX: usize = 1 << 20;

/// How a request came: what the routes do not see.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    /// The address in its target: `:authority` of HTTP/2, or the absolute form of HTTP/1.
    pub(crate) authority: Option<String>,
    /// A body that is not read to its end breaks a connection of HTTP/1, and only a stream of HTTP/2.
    pub(crate) is_h2: bool,
    pub(crate) connection: Arc<Connection>,
}

/// One request.
pub(super) struct Request {
    pub(super) method: Method,
    /// Decoded segments of the path.
    pub(super) path: Vec<String>,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    flows: Arc<Flows>,
    /// What it takes of the memory of all requests.
    pub(super) charge: Charge,
    sender: Sender,
    came: Option<Came>,
    /// Whether it is for people and what acts for them, and not for testboxes.
    pub(super) is_for_people: bool,
    /// Who a login of a browser says it is.
    pub(super) session: Option<Credentials>,
    body: Unread,
}

/// Who sent a request, as far as that is known by now. Its answer is charged to them.
#[derive(Clone)]
pub(super) struct Sender(Arc<Mutex<Sent>>);

struct Sent {
    whose: Identity,
    /// The place of a request whose sender is not known.
    place: Option<Charge>,
}

impl Sender {
    fn new(whose: Identity) -> Self {
        Self(Arc::new(Mutex::new(Sent { whose, place: None })))
    }

    fn becomes(&self, whose: Identity) {
        let mut sent = self.0.lock();
        if !matches!(whose, Identity::Stranger(_)) {
            sent.place = None;
        }
        sent.whose = whose;
    }

    /// Charges an answer of so many bytes until the last of them is sent.
    pub(super) fn answered(&self, budget: &Budget, bytes: u64) -> Result<UnderWay, Refusal> {
        let mut sent = self.0.lock();
        let memory = budget.memory.take(sent.whose.clone(), bytes)?;
        Ok(UnderWay::new(memory, sent.place.take()))
    }
}

/// The body: who may read it, and whether it was read to its end.
#[derive(Clone)]
pub(super) struct Unread {
    body: Arc<Mutex<Option<BodyStream>>>,
    is_read: Arc<AtomicBool>,
}

impl Unread {
    fn new(body: impl Stream<Item = Result<Bytes, warp::Error>> + Send + 'static) -> Self {
        let is_read = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_read);
        let end = stream::poll_fn(move |_| {
            ended.store(true, Ordering::Relaxed);
            Poll::Ready(None)
        });
        let body: BodyStream = Box::pin(body.chain(end));
        Self {
            body: Arc::new(Mutex::new(Some(body))),
            is_read,
        }
    }

    fn take(&self) -> Option<BodyStream> {
        self.body.lock().take()
    }

    /// Reads a small body that no handler wanted. HTTP/1 breaks a connection with a body that was not read, and its
    /// client may be writing the next request by then.
    pub(super) async fn read_out(&self) {
        let Some(mut stream) = self.take() else {
            return;
        };
        let mut left = UNREAD_MAX;
        while let Some(Ok(piece)) = stream.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                return;
            }
        }
    }

    /// Whether all of it was read.
    pub(super) fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Relaxed)
    }
}

impl Request {
    pub(super) fn new<S, B>(
        flows: &Arc<Flows>,
        method: Method,
        path: &str,
        query: &str,
        headers: HeaderMap,
        body: S,
    ) -> Result<Self, Refusal>
    where
        S: Stream<Item = Result<B, warp::Error>> + Send + 'static,
        B: Buf,
    {
        if path.len() > PATH_MAX {
            let message = format!("the path has {} bytes; the limit is {PATH_MAX}", path.len());
            return Err(Refusal::new(ErrorCode::TooLarge, message, "shorten it"));
        }
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        let path = segments.map(decode_segment).collect::<Result<_, _>>()?;
        let body = body.map(|piece| piece.map(|mut buf| buf.copy_to_bytes(buf.remaining())));
        let whose = Identity::Account(String::new());
        Ok(Self {
            method,
            path,
            query: Query::parse(query)?,
            headers,
            charge: flows.ctx.budget.memory.charge(whose.clone()),
            sender: Sender::new(whose),
            flows: Arc::clone(flows),
            came: None,
            is_for_people: false,
            session: None,
            body: Unread::new(body),
        })
    }

    /// The same, that came so, of nobody in particular; `None`: not through a port.
    pub(super) fn by(self, came: Option<Came>) -> Self {
        let mut request = Self { came, ..self };
        if let Some(address) = request.address() {
            request.belongs_to(Identity::Stranger(network(address)));
        }
        request
    }

    /// The address in its target.
    pub(super) fn authority(&self) -> Option<&str> {
        self.came.as_ref()?.authority.as_deref()
    }

    /// The address of its client.
    pub(super) fn address(&self) -> Option<IpAddr> {
        let connection = &self.came.as_ref()?.connection;
        let said = self.headers.get_all("x-forwarded-for").iter();
        Some(connection.client(said.filter_map(|said| said.to_str().ok())))
    }

    /// Who sent it is known: its connection is no stranger's.
    pub(super) fn identified(&self) {
        if let Some(came) = &self.came {
            came.connection.identified();
        }
    }

    /// Whether whoever asks shows pages to people, as browsers do.
    pub(super) fn accepts_pages(&self) -> bool {
        self.accepts("text/html")
    }

    /// Whether whoever asks names this media type.
    pub(super) fn accepts(&self, media_type: &str) -> bool {
        self.header("accept")
            .is_some_and(|types| types.contains(media_type))
    }

    /// Whether the answer may be compressed by gzip.
    pub(super) fn takes_gzip(&self) -> bool {
        let takes = self.header("accept-encoding").unwrap_or_default();
        takes.split(',').any(|one| one.trim().starts_with("gzip"))
    }

    /// The address of the page behind `after` of the same list, without what says who asks.
    pub(super) fn with_after(&self, after: &str) -> String {
        let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let said = self.query.pairs();
        let said = said.filter(|(name, _)| !matches!(*name, "after" | "token" | "my_account"));
        let mut query = format!("after={}", escaped(after));
        for (name, value) in said {
            query.extend(["&", &escaped(name), "=", &escaped(value)]);
        }
        format!("/{}?{query}", self.path.join("/"))
    }

    /// What it asks of a file.
    pub(super) fn wanted(&self) -> Wanted {
        let text = |name: &str| self.header(name).map(str::to_owned);
        Wanted {
            part: self.header("range").map_or(Part::All, part_of),
            unless: text("if-none-match"),
            only_of: text("if-range"),
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The content type, lower case.
    pub(super) fn content_type(&self) -> Option<String> {
        self.header("content-type").map(str::to_ascii_lowercase)
    }

    /// How the client reached us, for addresses in scripts.
    pub(super) fn host(&self) -> String {
        let good = |host: &&str| {
            host.len() < 256
                && host
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b".-:[]_".contains(&b))
        };
        self.header("host")
            .filter(good)
            .unwrap_or("localhost")
            .to_owned()
    }

    /// The body, once; it fails when it stops coming.
    pub(super) fn take_body(
        &mut self,
    ) -> Option<impl Stream<Item = Result<Bytes, Refusal>> + Send + Unpin + use<>> {
        let (body, flows) = (self.body.take()?, Arc::clone(&self.flows));
        let pieces = stream::unfold((body, flows), |(mut body, flows)| async move {
            let piece = next_piece(&flows, &mut body).await?;
            Some((piece, (body, flows)))
        });
        // A refusal may come of its end: the rest is read then, too.
        Some(Box::pin(pieces.fuse()))
    }

    /// The body, as long as nobody takes it.
    pub(super) fn unread(&self) -> Unread {
        self.body.clone()
    }

    /// The whole body, if it is not larger than `limit`.
    pub(super) async fn read_body(&mut self, limit: usize) -> Result<Bytes, Refusal> {
        let over = |bytes: usize| {
            let message = format!("the body has {bytes} bytes or more; the limit is {limit}");
            Refusal::new(ErrorCode::TooLarge, message, "send less at once")
        };
        let said = self
            .header("content-length")
            .and_then(|length| length.parse::<usize>().ok());
        if let Some(said) = said.filter(|said| *said > limit) {
            return Err(over(said));
        }
        let Some(mut stream) = self.body.take() else {
            return Ok(Bytes::new());
        };
        // As long as the body comes, its head stays, too.
        let head = self.headers.iter();
        let head: usize = head
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        self.charge.grow(u64::try_from(head).unwrap_or(u64::MAX))?;
        // It grows with what comes, not with what was said.
        let mut bytes = Vec::new();
        let began = self.flows.ctx.clock.now().0;
        while let Some(piece) = next_piece(&self.flows, &mut stream).await {
            let piece = piece?;
            let lasts = Duration::from_millis(self.flows.ctx.clock.now().0.saturating_sub(began));
            let enough = lasts
                .as_secs()
                .saturating_mul(self.flows.ctx.config.connections.body_rate_min);
            if lasts > RATE_AFTER && u64::try_from(bytes.len()).is_ok_and(|read| read < enough) {
                return Err(too_slow(&format!(
                    "{} bytes came in {} s",
                    bytes.len(),
                    lasts.as_secs()
                )));
            }
            if bytes.len() + piece.len() > limit {
                return Err(over(bytes.len() + piece.len()));
            }
            self.charge
                .grow(u64::try_from(piece.len()).unwrap_or(u64::MAX))?;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.into())
    }

    /// The body as a JSON object; an empty body is an empty object.
    pub(super) async fn read_object(
        &mut self,
        limit: usize,
    ) -> Result<Map<String, Value>, Refusal> {
        let bytes = self.read_body(limit).await?;
        self.charge_built(&bytes)?;
        to_object(&bytes)
    }

    /// Charges so many bytes that it is about to take.
    pub(super) fn charge_bytes(&mut self, bytes: u64) -> Result<(), Refusal> {
        Ok(self.charge.grow(bytes)?)
    }

    /// Charges what is built of a body, before it is.
    pub(super) fn charge_built(&mut self, body: &[u8]) -> Result<(), Refusal> {
        Ok(self.charge.grow(built_bytes(body))?)
    }

    /// Who is charged for its memory from now on.
    pub(super) fn belongs_to(&mut self, whose: Identity) {
        self.charge.belongs_to(whose.clone());
        self.sender.becomes(whose);
    }

    /// Takes one of the few places of requests of strangers, until it is known who asks or its answer is out.
    pub(super) fn take_strangers_place(&self) -> Result<(), Refusal> {
        let whose = self.charge.whose().clone();
        let place = self.flows.ctx.budget.strangers.take(whose, 1)?;
        self.sender.0.lock().place = Some(place);
        Ok(())
    }

    /// Who is charged.
    pub(super) fn whose(&self) -> Identity {
        self.charge.whose().clone()
    }

    /// The same when the request is gone.
    pub(super) fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// A charge for what its body is made into.
    pub(super) fn another_charge(&self) -> Charge {
        self.charge.another()
    }

    /// The body as this type.
    pub(super) async fn read_json<T: DeserializeOwned>(
        &mut self,
        limit: usize,
    ) -> Result<T, Refusal> {
        let bytes = self.read_body(limit).await?;
        self.charge_built(&bytes)?;
        serde_json::from_slice(&bytes).map_err(|error| bad_json(&error))
    }

    /// The token of a job: from its header, else from the query, as boot scripts and compass-ci's clients send it.
    pub(super) fn job_token(&self) -> Option<&str> {
        let in_query = || self.query.get("job_token");
        self.header(JOB_TOKEN_HEADER).or_else(in_query)
    }

    /// What the request says of its sender; `body` is where old clients put it.
    pub(super) fn credentials(&self, body: Option<&Map<String, Value>>) -> Credentials {
        let bearer = self
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "))
            .map(str::trim);
        let in_body = |name: &str| body.and_then(|body| body.get(name)).and_then(Value::as_str);
        let token = bearer
            .or_else(|| in_body("my_token"))
            .or_else(|| self.query.get("token"));
        let account = in_body("my_account").or_else(|| self.query.get("my_account"));
        if let (None, None, Some(session)) = (token, account, &self.session) {
            return Credentials {
                is_for_people: self.is_for_people,
                ..session.clone()
            };
        }
        Credentials {
            token: token.map(str::to_owned),
            account: account.map(str::to_owned),
            is_for_people: self.is_for_people,
            vouched: None,
        }
    }
}

/// A body as a JSON object; an empty one is an empty object.
pub(super) fn to_object(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Refusal::new(
            ErrorCode::BadBody,
            "the body is not a JSON object",
            "send {\"name\": value}",
        )),
        Err(error) => Err(bad_json(&error)),
    }
}

/// The next piece of a body, unless it takes too long.
async fn next_piece(flows: &Flows, body: &mut BodyStream) -> Option<Result<Bytes, Refusal>> {
    let pause = flows.ctx.config.connections.body_pause;
    let piece = tokio::select! {
        biased;
        piece = body.next() => piece?,
        () = flows.ctx.clock.sleep(pause) => {
            return Some(Err(too_slow(&format!("nothing came for {} s", pause.as_secs()))));
        }
    };
    Some(piece.map_err(|_| Refusal::new(ErrorCode::BadBody, "the body broke off", "send it again")))
}

fn too_slow(how: &str) -> Refusal {
    Refusal::new(
        ErrorCode::BodyTimeout,
        format!("the body stopped coming: {how}"),
        "send it again, without pauses",
    )
}

fn bad_json(error: &serde_json::Error) -> Refusal {
    let (code, hint) = if error.is_data() {
        (
            ErrorCode::BadField,
            "see docs/api.md for the fields and their types",
        )
    } else {
        (ErrorCode::BadBody, "send JSON")
    };
    Refusal::new(code, format!("the body cannot be read: {error}"), hint)
}

/// A job id from a path.
pub(super) fn job_id(text: &str) -> Result<fairlead_job::JobId, Refusal> {
    text.parse()
        .map_err(|error: fairlead_job::ParseJobIdError| {
            Refusal::new(
                ErrorCode::NotFound,
                error.to_string(),
                "list jobs with GET /scheduler/v1/jobs",
            )
        })
}
