"""A TCP proxy before a server, which cuts connections where a test wants it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self
from urllib.parse import urlsplit

# The bytes that came from the server so far. Returns how many of them the client gets, or None: all, and go on.
Cut = Callable[[bytes], int | None]


class Proxy:
    """Requests whose head has `marker` are cut by the functions of `cuts`, one after the other; then no more."""

    def __init__(self, server: str, marker: bytes = b"", cuts: tuple[Cut, ...] = ()) -> None:
        at = urlsplit(server)
        self._server = (at.hostname or "", at.port or 80)
        self._marker = marker
        self._cuts = list(cuts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.heads: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Takes no more connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def marked(self) -> list[bytes]:
        """The heads of the requests that have the marker, in lower case."""
        return [head.lower() for head in self.heads if self._marker in head]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(self._server) as server:
            self._pass_on(client, server)
            # The other thread still reads, so that closing it would not end the connection.
            client.shutdown(socket.SHUT_RDWR)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        """Passes one request and its answer on. Each connection has one: the server is told to close it."""
        request = b""
        while b"\r\n\r\n" not in request:
            piece = client.recv(65536)
            if not piece:
                return
            request += piece
        head, body = request.split(b"\r\n\r\n", 1)
        self.heads.append(head)
        is_cut = self._marker in head and self._cuts
        cut = self._cuts.pop(0) if is_cut else lambda got: None
        server.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
        threading.Thread(target=pump, args=(client, server), daemon=True).start()
        got, sent, stop = b"", 0, None
        while stop is None and (piece := server.recv(65536)):
            got += piece
            stop = cut(got)
            client.sendall(got[sent:stop])
            sent = len(got)


def pump(client: socket.socket, server: socket.socket) -> None:
    """Copies the rest of a request's body."""
    with contextlib.suppress(OSError):
        while piece := client.recv(65536):
            server.sendall(piece)


def at_once(got: bytes) -> int:
    """Cuts before the first byte of the answer."""
    return 0


def behind(text: bytes) -> Cut:
    """Cuts behind the first place of a text in the answer."""

    def cut(got: bytes) -> int | None:
        place = got.find(text)
        return None if place < 0 else place + len(text)

    return cut
