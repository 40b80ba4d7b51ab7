//! HTTP/2 connections that ask for much and read nothing: their streams have a window of 0.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use parking_lot::Mutex;

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const HEAD_BYTES: usize = 9;
/// Identifier of the setting of a stream's initial window.
const INITIAL_WINDOW: u16 = 4;
/// A head with status 200 in HPACK.
const GOOD: u8 = 0x88;

/// A connection that answers each ping. It is closed on drop.
#[derive(Debug)]
pub struct Unread {
    stream: Arc<Mutex<TcpStream>>,
    next: u32,
    answered: Arc<AtomicUsize>,
    good: Arc<AtomicUsize>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Appends a text in HPACK, not compressed.
fn text(value: &str, block: &mut Vec<u8>) {
    let mut length = value.len();
    if length < 127 {
        block.extend(u8::try_from(length));
    } else {
        block.push(127);
        length -= 127;
        while length > 127 {
            block.extend(u8::try_from(length % 128 + 128));
            length /= 128;
        }
        block.extend(u8::try_from(length));
    }
    block.extend(value.as_bytes());
}

impl Unread {
    /// Connects to `HOST:PORT`.
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address)
            .unwrap_or_else(|error| panic!("a connection to {address}: {error}"));
        let reader = stream.try_clone();
        let reader = reader.unwrap_or_else(|error| panic!("a second handle: {error}"));
        let unread = Self {
            stream: Arc::new(Mutex::new(stream)),
            next: 1,
            answered: Arc::default(),
            good: Arc::default(),
        };
        let mut hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let mut window = INITIAL_WINDOW.to_be_bytes().to_vec();
        window.extend(0_u32.to_be_bytes());
        hello.extend(frame(SETTINGS, 0, 0, &window));
        unread.send(&hello);
        let (writer, answered, good) = (
            Arc::clone(&unread.stream),
            Arc::clone(&unread.answered),
            Arc::clone(&unread.good),
        );
        thread::spawn(move || read(reader, &writer, &answered, &good));
        unread
    }

    fn send(&self, bytes: &[u8]) {
        let _ = self.stream.lock().write_all(bytes);
    }

    /// Requests a path, with the token of an account if there is one.
    pub fn get(&mut self, path: &str, token: Option<&str>) {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut block = Vec::new();
        for (name, value) in [
            (":method", Some("GET")),
            (":scheme", Some("http")),
            (":authority", Some("127.0.0.1")),
            (":path", Some(path)),
            ("authorization", bearer.as_deref()),
        ] {
            if let Some(value) = value {
                block.push(0);
                text(name, &mut block);
                text(value, &mut block);
            }
        }
        self.send(&frame(HEADERS, END_HEADERS | END_STREAM, self.next, &block));
        self.next += 2;
    }

    /// Returns the number of answered requests, by the received heads.
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Returns the number of answers with status 200.
    pub fn good(&self) -> usize {
        self.good.load(Ordering::Relaxed)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.stream.lock().shutdown(std::net::Shutdown::Both);
    }
}

fn read(
    mut reader: TcpStream,
    writer: &Mutex<TcpStream>,
    answered: &AtomicUsize,
    good: &AtomicUsize,
) {
    let mut head = [0; HEAD_BYTES];
    while reader.read_exact(&mut head).is_ok() {
        let [a, b, c, kind, flags, ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        let mut payload = vec![0; usize::try_from(length).unwrap_or(0)];
        if reader.read_exact(&mut payload).is_err() {
            return;
        }
        let reply = match kind {
            SETTINGS if flags & ACK == 0 => frame(SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(PING, ACK, 0, &payload),
            HEADERS => {
                answered.fetch_add(1, Ordering::Relaxed);
                let is_good = payload.first() == Some(&GOOD);
                good.fetch_add(usize::from(is_good), Ordering::Relaxed);
                continue;
            }
            _ => continue,
        };
        if writer.lock().write_all(&reply).is_err() {
            return;
        }
    }
}
