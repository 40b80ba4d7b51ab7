//! A replica behind a TCP port: opens its store, listens, stops in order.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use fairlead_api::{AccountChange, AccountView};
use futures_util::future::BoxFuture;
use hyper::{
    Request, Uri, Version,
    body::Incoming,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use crate::{
    Clock, Config, ConnectionLimits, Parts, Replica,
    flows::Flows,
    http::{
        self,
        connections::{Connection, Connections, Held, Watched},
    },
    people::accounts::set_account,
};
use fairlead_base::{
    metrics::Counters,
    peer_link::HttpPeers,
    providers::Programs,
    start_error::StartError,
    storage::{
        lab_folder::check_shared,
        open::{open_content, open_store},
        small_doc::SmallDocs,
    },
};

/// How long open connections may take to finish when the replica stops.
const DRAIN: Duration = Duration::from_secs(10);
/// A replica that drains closes its port when nobody has come for so long, and after so long in any case.
const LEAVE_QUIET: Duration = Duration::from_millis(300);
const LEAVE_MAX_MS: u64 = 3_000;
/// How long to rest when no connection can be accepted (no file descriptor left).
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// A running replica.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    replica: Replica,
    accepting: TaskTracker,
}

impl Server {
    /// Opens the store, restores what runs, and listens. Returns when requests are answered.
    pub fn start(config: Config) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(async move {
            let clock = Clock::system();
            let listener =
                TcpListener::bind(config.listen)
                    .await
                    .map_err(|cause| StartError::Listen {
                        address: config.listen,
                        cause,
                    })?;
            let address = listener.local_addr().map_err(|cause| StartError::Listen {
                address: config.listen,
                cause,
            })?;
            let store = open_store(&config).await?;
            let prepared = config.results.prepare(&config.data_dir);
            prepared.map_err(|cause| StartError::Data {
                path: config.data_dir.display().to_string(),
                cause,
            })?;
            check_shared(&config, store.as_ref(), &clock).await?;
            let content = open_content(&config)?;
            let parts = Parts::new(
                store,
                clock,
                Arc::new(HttpPeers::default()),
                content,
                Arc::new(Programs::new(config.providers.clone())),
            );
            let advertise = config.advertise.clone();
            let url = advertise.unwrap_or_else(|| format!("http://{address}"));
            let replica = Replica::start(config, parts, url).await?;
            let flows = replica.flows();
            flows
                .ctx
                .tasks
                .run("room", Arc::clone(&flows.files).watch_room());
            let accepting = TaskTracker::new();
            accepting.spawn(accept(listener, replica.flows()));
            accepting.close();
            tracing::info!(%address, "ready");
            Ok(Self {
                address,
                replica,
                accepting,
            })
        })
    }

    /// Where it listens (the real port when 0 was asked for).
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://address`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the replica gives up, because its clock has been off from the others' for a minute. It must then be
    /// stopped.
    pub fn gave_up(&self) -> impl Future<Output = ()> + Send + 'static {
        self.replica.gave_up()
    }

    /// Stops in order: answers the waiting, finishes claims in flight, flushes, joins every task.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.replica.drain();
            self.accepting.wait().await;
            self.replica.stop().await;
            tracing::info!("stopped");
        })
    }
}

/// Creates or changes an account directly in the store (no server must run on an embedded one), with a new token.
pub fn add_account<'a>(
    config: &'a Config,
    name: &'a str,
    change: &'a AccountChange,
) -> BoxFuture<'a, Result<AccountView, StartError>> {
    Box::pin(async move {
        let store = open_store(config).await?;
        let change = AccountChange {
            new_token: true,
            ..change.clone()
        };
        let docs = SmallDocs::new(store, None, Counters::default());
        match set_account(&docs, name, &change, true, Clock::system().wall_ms()).await {
            Ok((view, _)) => Ok(view),
            Err(refusal) => Err(StartError::Account {
                message: refusal.to_string(),
                hint: refusal.body().hint,
            }),
        }
    })
}

/// The request, with how it came where handlers find it. A target without a path (`CONNECT`) gets the shortest one: no
/// handler has it.
fn noted(mut request: Request<Incoming>, connection: &Arc<Connection>) -> Request<Incoming> {
    let came = http::Came {
        authority: request.uri().authority().map(ToString::to_string),
        is_h2: request.version() == Version::HTTP_2,
        connection: Arc::clone(connection),
    };
    request.extensions_mut().insert(came);
    if request.uri().path_and_query().is_none() {
        *request.uri_mut() = Uri::from_static("/");
    }
    request
}

/// HTTP/1 and HTTP/2 on one port.
fn protocols(limits: &ConnectionLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // `Watched` keeps the limits; this is the longest that they let a head take.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle + limits.head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.ping)
        .keep_alive_timeout(limits.ping);
    builder
}

/// The next connection; `None` when the replica drains and nobody comes any more. `leaves_at` is when it leaves in any
/// case, once it drains.
async fn next_connection(
    listener: &TcpListener,
    flows: &Flows,
    leaves_at: &mut Option<u64>,
) -> Option<(TcpStream, SocketAddr)> {
    while leaves_at.is_none_or(|at| flows.ctx.clock.now().0 < at) {
        let drains = leaves_at.is_some();
        let enough = async {
            if drains {
                flows.ctx.clock.sleep(LEAVE_QUIET).await;
            } else {
                flows.ctx.tasks.draining.cancelled().await;
            }
        };
        let accepted = tokio::select! {
            biased;
            () = enough => {
                if drains {
                    return None;
                }
                *leaves_at = Some(flows.ctx.clock.now().0 + LEAVE_MAX_MS);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => return Some(accepted),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                flows.ctx.clock.sleep(ACCEPT_REST).await;
            }
        }
    }
    None
}

/// Accepts connections until the replica drains and nobody comes any more, then lets the open ones finish.
///
/// The system makes connections before they are accepted here, and breaks those that are waiting when the
/// listener goes: whoever sent a request into one cannot know whether it was done. So a replica that drains
/// still takes them and says that it stops, until clients and proxies have gone elsewhere.
async fn accept(listener: TcpListener, flows: Arc<Flows>) {
    let graceful = GracefulShutdown::new();
    let connections = TaskTracker::new();
    let builder = protocols(&flows.ctx.config.connections);
    let strangers = Arc::new(Connections::new(
        flows.ctx.clock.clone(),
        flows.ctx.config.connections.clone(),
    ));
    let routes = TowerToHyperService::new(warp::service(http::filter(Arc::clone(&flows))));
    let mut leaves_at = None;
    while let Some((stream, from)) = next_connection(&listener, &flows, &mut leaves_at).await {
        // Small answers must not wait for an acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "nodelay could not be set");
        }
        let connection = strangers.enter(from.ip());
        let bytes = TokioIo::new(Watched::new(stream, Arc::clone(&connection)));
        let (routes, came_by) = (routes.clone(), Arc::clone(&connection));
        let service = service_fn(move |request: Request<Incoming>| {
            let is_h2 = request.version() == Version::HTTP_2;
            let answer = routes.call(noted(request, &came_by));
            Held::answer(Arc::clone(&came_by), is_h2, answer)
        });
        let served = builder.serve_connection_with_upgrades(bytes, service);
        let served = graceful.watch(served.into_owned());
        connections.spawn(async move {
            tokio::select! {
                ended = served => if let Err(error) = ended {
                    tracing::debug!(error, "a connection ended badly");
                },
                () = connection.closed() => {}
            }
        });
    }
    drop(listener);
    connections.close();
    tokio::select! {
        biased;
        () = graceful.shutdown() => {}
        () = flows.ctx.clock.sleep(DRAIN) => tracing::warn!("connections were still open when the replica stopped"),
    }
}
