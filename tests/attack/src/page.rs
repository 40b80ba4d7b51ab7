//! A web site of one page, on its own loopback port. It records the requested paths.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Maximum length of a request that is read, bytes.
const REQUEST_MAX: usize = 16 << 10;

/// A running site. It ends on drop.
#[derive(Debug)]
pub struct Site {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Site {
    /// Serves this page at `/`, and nothing else.
    pub async fn serve(page: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap_or_else(|error| panic!("a port for a web site: {error}"));
        let address = listener.local_addr();
        let port = address.map_or(0, |address| address.port());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, page.to_owned(), Arc::clone(&asked)));
        Self {
            port,
            asked,
            _serving: serving,
        }
    }

    /// Returns its address under a name of this machine.
    pub fn url(&self, name: &str) -> String {
        format!("http://{name}:{}/", self.port)
    }

    /// Returns true if this path was requested.
    pub fn was_asked(&self, path: &str) -> bool {
        let asked = self.asked.lock();
        asked.iter().any(|known| known == path)
    }
}

async fn accept(listener: TcpListener, page: String, asked: Arc<Mutex<Vec<String>>>) {
    let mut visitors = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        visitors.spawn(answer(stream, page.clone(), Arc::clone(&asked)));
    }
}

async fn answer(mut stream: TcpStream, page: String, asked: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") && request.len() < REQUEST_MAX {
        match stream.read_buf(&mut request).await {
            Ok(read) if read > 0 => {}
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = if path == "/" { page.as_str() } else { "" };
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    asked.lock().push(path);
}
