//! A door before an S3 server. While it is busy, it asks for fewer requests; else all passes.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

const SLOW_DOWN: &str = "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A proxy in front of the object store.
#[derive(Debug)]
pub(crate) struct Busy {
    busy: watch::Sender<bool>,
    _accepting: JoinSet<()>,
}

impl Busy {
    /// Opens the proxy in front of the server that these variables name. They name the proxy from then on.
    pub(crate) async fn before(variables: &mut [(String, String)]) -> Self {
        let endpoint = variables
            .iter_mut()
            .find(|(name, _)| name == "AWS_ENDPOINT");
        let (_, endpoint) = endpoint.expect("an endpoint");
        let behind = endpoint.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        *endpoint = format!("http://{address}");
        let (busy, look) = watch::channel(false);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, behind, look));
        Self {
            busy,
            _accepting: accepting,
        }
    }

    pub(crate) fn set(&self, is_busy: bool) {
        self.busy.send_replace(is_busy);
    }
}

async fn accept(listener: TcpListener, behind: String, busy: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    while let Ok((from, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(from, behind.clone(), busy.clone()));
    }
}

async fn serve(mut from: TcpStream, behind: String, mut busy: watch::Receiver<bool>) {
    let is_busy = *busy.borrow_and_update();
    if is_busy {
        let mut head = Vec::new();
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            if from.read_buf(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let _ = from.write_all(SLOW_DOWN.as_bytes()).await;
        let _ = from.shutdown().await;
        return;
    }
    let Ok(mut to) = TcpStream::connect(&behind).await else {
        return;
    };
    // Open connections end when the proxy becomes busy.
    tokio::select! {
        _ = copy_bidirectional(&mut from, &mut to) => {}
        _ = busy.wait_for(|is_busy| *is_busy) => {}
    }
}
