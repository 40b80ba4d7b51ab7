//! A gate in front of Elasticsearch. While a test holds it, connections are accepted and bytes are taken, but nothing
//! passes. From outside, a paused node looks the same.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
};

use crate::settings;

/// A gate before the Elasticsearch of `ES_URL`.
#[derive(Debug)]
pub struct Gate {
    url: String,
    held: watch::Sender<bool>,
    _accepting: JoinSet<()>,
}

impl Gate {
    /// Opens a gate on its own port.
    pub async fn open() -> Self {
        let urls = settings::elasticsearch();
        let behind = urls.first().map_or("", String::as_str);
        let behind = behind.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap_or_else(|error| panic!("a port for the gate: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("the gate's address: {error}"));
        let (held, look) = watch::channel(false);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, behind, look));
        Self {
            url: format!("http://{address}"),
            held,
            _accepting: accepting,
        }
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Holds back everything from now on.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    /// Lets everything through again, beginning with the requests that were held back.
    pub fn release(&self) {
        self.held.send_replace(false);
    }
}

async fn accept(listener: TcpListener, behind: String, held: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    while let Ok((from, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (behind, held) = (behind.clone(), held.clone());
        connections.spawn(async move {
            let Ok(to) = TcpStream::connect(&behind).await else {
                return;
            };
            for stream in [&from, &to] {
                let _ = stream.set_nodelay(true);
            }
            let ((from_read, from_write), (to_read, to_write)) =
                (from.into_split(), to.into_split());
            tokio::join!(
                pass(from_read, to_write, held.clone()),
                pass(to_read, from_write, held)
            );
        });
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut held: watch::Receiver<bool>) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(n @ 1..) = from.read(&mut bytes).await {
        let through = held.wait_for(|held| !held).await.is_ok();
        if !through
            || to
                .write_all(bytes.get(..n).unwrap_or_default())
                .await
                .is_err()
        {
            break;
        }
    }
    let _ = to.shutdown().await;
}
