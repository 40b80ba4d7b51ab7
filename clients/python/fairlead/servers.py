"""Requests to the servers of one lab: which server is asked, and what is repeated."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import httpx

from .errors import Error, Refused, Unreachable

PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 3.0
# A proxy or the server says that it cannot answer now.
TRANSIENT = frozenset({429, 502, 503, 504})


class Patience:
    """Pauses after failures. They double up to `PAUSE_MAX_S`, until all tries have failed for `limit_s` seconds."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self.restart()

    def restart(self) -> None:
        """Notes a success."""
        self._since: float | None = None
        self._pause_s = PAUSE_MIN_S

    def rest(self, until: float | None = None) -> bool:
        """Pauses, at most until this time of `time.monotonic`. False: the tries have failed for too long."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        pause_s = self._pause_s * random.uniform(0.5, 1)
        if now + pause_s > self._since + self._limit_s:
            return False
        time.sleep(pause_s if until is None else max(0.0, min(pause_s, until - now)))
        self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
        return True


class Servers(httpx.Client):
    """An HTTP client that sends each request to one of several servers.

    A request goes to the server that answered last. If no connection is made, the next one is tried. A GET and a submit
    with an idempotency key are also repeated after a broken connection or a status of `TRANSIENT`.
    """

    def __init__(
        self, servers: str, token: str | None, timeout_s: float, retry_for_s: float
    ) -> None:
        self._bases = [base_of(server) for server in servers.split(",")]
        self._at = 0
        self._retry_for_s = retry_for_s
        self._timeout_s = timeout_s
        super().__init__(
            # Each try replaces it.
            base_url="http://lab",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=self.timeout_of(timeout_s),
            # A proxy cannot reach the loopback of this machine.
            mounts={"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None},
        )

    def __str__(self) -> str:
        return ", ".join(self._bases)

    def timeout_of(self, read_s: float) -> httpx.Timeout:
        """The limits of a request that may be silent for so long."""
        return httpx.Timeout(self._timeout_s, connect=min(self._timeout_s, 5.0), read=read_s)

    def turn(self) -> None:
        """Sends the next request to the next server."""
        self._at = (self._at + 1) % len(self._bases)

    def broken(
        self, what: str, fault: Exception | None, patience: Patience, until: float | None = None
    ) -> None:
        """Turns to the next server after a broken stream, and pauses. Raises `Unreachable` when it takes too long."""
        self.turn()
        if not patience.rest(until):
            text = text_of(fault) if fault else "by the server"
            hint = "check the servers, and the proxies between"
            raise Unreachable(f"{what} breaks again and again: {text}", hint) from fault

    def send(
        self, request: httpx.Request, *, stream: bool = False, **options: Any
    ) -> httpx.Response:
        """Sends a request until a server answers it. A refusal raises `Refused`."""
        path = request.url.raw_path.decode("ascii")
        may_repeat = request.method == "GET" or "idempotency_key" in request.url.params
        until: float | None = request.extensions.get("until")
        patience = Patience(self._retry_for_s)
        while True:
            refusal, fault = None, ""
            for _ in self._bases:
                base = self._bases[self._at]
                request.url = httpx.URL(base + path)
                request.headers["Host"] = request.url.netloc.decode("ascii")
                try:
                    response = super().send(request, stream=stream, **options)
                    return checked(response, base)
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    fault = f"{base} {text_of(error)}"
                except httpx.TransportError as error:
                    fault = f"{base} {text_of(error)}"
                    if not may_repeat:
                        message = f"{request.method} {path}: the answer was lost: {fault}"
                        hint = "look at the state before you repeat the request"
                        raise Unreachable(message, hint) from error
                except Error as error:
                    if response.status_code not in TRANSIENT or not may_repeat:
                        raise
                    refusal = error
                self.turn()
            if not patience.rest(until) or (until and until <= time.monotonic()):
                hint = "check the address, and whether the server runs"
                raise refusal or Unreachable(f"servers: none of {self} answers: {fault}", hint)


def base_of(server: str) -> str:
    """The address of a server, without a slash at its end."""
    text = server.strip()
    text = text if "://" in text else f"http://{text}"
    try:
        is_good = bool(re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", text) and httpx.URL(text))
    except httpx.InvalidURL:
        is_good = False
    if not is_good:
        message = f"server: '{server}' is not an address"
        raise Error(message, "use http://HOST:PORT; separate several servers by commas")
    return text.rstrip("/")


def checked(response: httpx.Response, base: str) -> httpx.Response:
    """The answer, unless it is a refusal. The items of a submit are an answer."""
    if response.is_success:
        return response
    response.read()
    try:
        body = response.json()
    except ValueError:
        body = None
    status = response.status_code
    if isinstance(body, list) and body:
        if status not in TRANSIENT:
            return response
        body = body[0]
    if not isinstance(body, dict) or "code" not in body:
        message = f"server: {base} answered {status} with something else than JSON of fairlead"
        raise Error(message, "check the address, and the proxies between")
    raise Refused(
        str(body["code"]), str(body.get("message", "")), str(body.get("hint", "")), status=status
    )


def text_of(error: Exception) -> str:
    """What is wrong with a connection; some errors have no text of their own."""
    return f"({type(error).__name__}: {error})".replace(": )", ")")
