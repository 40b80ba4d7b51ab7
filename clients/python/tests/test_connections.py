"""Connections: servers that are away, streams that break, and time that is up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from proxy import Proxy, at_once, behind
from test_jobs import job_of, waiting

import fairlead

EVENTS = b"/events"


def test_events_are_resumed_behind_the_last_whole_one(server: str, suite: str) -> None:
    cuts = (behind(b"\n\n"), behind(b'data: {"job_id"'), at_once)
    with Proxy(server, EVENTS, cuts) as proxy, fairlead.Lab(proxy.url, account="python") as lab:
        submit = lab.submit([job_of(suite, "true") for _ in range(3)])
        ended = list(submit.wait())
        assert sorted(job.id for job in ended) == sorted(job.id for job in submit.jobs)
        first, *later = proxy.marked()
    assert len(later) == 3
    assert b"last-event-id" not in first
    # The event that was cut was not told, so the place of the first one stays.
    places = [line for head in later for line in head.split(b"\r\n") if b"last-event-id" in line]
    assert len(places) == 3
    assert len(set(places)) == 1


def test_events_are_resumed_at_another_server(server: str, suite: str) -> None:
    with Proxy(server, EVENTS, (behind(b"\n\n"),)) as proxy, Proxy(server, EVENTS) as other:
        with fairlead.Lab(f"{proxy.url},{other.url}", account="python") as lab:
            submit = lab.submit([job_of(suite, "true") for _ in range(3)])
            ended = list(submit.wait())
        assert sorted(job.id for job in ended) == sorted(job.id for job in submit.jobs)
        assert (len(proxy.marked()), len(other.marked())) == (1, 1)
        assert b"last-event-id" in other.marked()[0]


def test_a_stream_that_always_breaks_is_given_up(server: str, suite: str) -> None:
    with Proxy(server, EVENTS, (at_once,)) as proxy:
        with fairlead.Lab(proxy.url, account="python", retry_for_s=0) as lab:
            submit = lab.submit(job_of(suite, "true"))
            with pytest.raises(fairlead.Unreachable):
                list(submit.wait())
        assert len(proxy.marked()) == 1


def test_a_repeated_submit_makes_no_second_job(server: str, suite: str) -> None:
    with Proxy(server, b"/jobs/submit", (at_once,)) as proxy:
        with fairlead.Lab(proxy.url, account="python") as lab:
            submit = lab.submit(job_of(suite, "true"))
            assert [job.id for job in lab.jobs(suite=suite)] == [submit.jobs[0].id]
        lines = [head.split(b"\r\n")[0] for head in proxy.marked()]
        assert len(lines) == 2
        assert lines[0] == lines[1]
        assert b"idempotency_key=" in lines[0]


def test_a_rerun_whose_answer_is_lost_is_not_repeated(server: str, suite: str) -> None:
    with Proxy(server, b"/rerun", (at_once,)) as proxy:
        with fairlead.Lab(proxy.url, account="python") as lab:
            (job,) = lab.submit(job_of(suite, "true")).wait()
            with pytest.raises(fairlead.Unreachable, match="the answer was lost"):
                job.rerun()
        assert len(proxy.marked()) == 1


def test_a_followed_log_is_resumed_at_its_byte(server: str, suite: str) -> None:
    with Proxy(server, b"follow=true", (behind(b"a line 1"), behind(b"2"))) as proxy:
        with fairlead.Lab(proxy.url, account="python") as lab:
            script = "for n in $(seq 1 2000); do echo a line $n; done"
            (job,) = lab.submit(job_of(suite, script)).jobs
            output = b"".join(job.follow_log())
        assert output == b"".join(b"a line %d\n" % n for n in range(1, 2001))
        assert b"offset=8&" in proxy.marked()[1]


def test_a_download_that_breaks_off_begins_again(server: str, suite: str, tmp_path: Path) -> None:
    with Proxy(server, b"/x.bin", (behind(b"\0" * 1000),)) as proxy:
        with fairlead.Lab(proxy.url, account="python") as lab:
            script = 'head -c 300000 /dev/zero > "$RESULT_ROOT/x.bin"'
            (job,) = lab.submit(job_of(suite, script)).wait()
            assert job.download("x.bin", tmp_path).read_bytes() == bytes(300_000)
        assert len(proxy.marked()) == 2


def test_the_next_server_is_asked(server: str, dead: str, suite: str) -> None:
    with fairlead.Lab(f"{dead},{server}", account="python") as lab:
        (job,) = lab.submit(job_of(suite, "true")).wait()
        # No connection was made, so that nothing can be done twice.
        (again,) = job.rerun().wait()
        assert again.succeeded


def test_nobody_answers(server: str, dead: str, suite: str) -> None:
    with fairlead.Lab(dead, retry_for_s=0) as lab:
        with pytest.raises(fairlead.Unreachable, match=f"servers: none of {dead} answers"):
            lab.whoami()
        with pytest.raises(fairlead.Unreachable):
            lab.submit(job_of(suite, "true"))
    with Proxy(server) as proxy, fairlead.Lab(proxy.url, account="python", retry_for_s=0) as lab:
        submit = lab.submit(waiting(suite))
        proxy.stop()
        for call in (submit.wait, submit.jobs[0].follow_log):
            with pytest.raises(fairlead.Unreachable):
                list(call())
    with fairlead.Lab(server) as lab:
        lab.job(submit.jobs[0].id).cancel()


def test_the_time_is_up(server: str, lab: fairlead.Lab, suite: str) -> None:
    submit = lab.submit([waiting(suite), waiting(suite)])
    submit.jobs[0].cancel()
    for timeout in (0, 0.2, 2.5):
        with pytest.raises(TimeoutError, match=f"had not ended after {timeout} s"):
            list(submit.wait(timeout))
    waited = submit.wait(60)
    assert next(waited) is submit.jobs[0]
    submit.jobs[1].cancel()
    assert list(waited) == [submit.jobs[1]]


def test_the_time_is_up_while_nobody_answers(server: str, suite: str) -> None:
    with Proxy(server) as proxy, fairlead.Lab(proxy.url, account="python") as lab:
        submit = lab.submit(waiting(suite))
        submit.jobs[0].cancel()
        proxy.stop()
        with pytest.raises(TimeoutError):
            list(submit.wait(0.5))


def test_the_token_and_the_environment_are_used(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Proxy(server) as proxy:
        monkeypatch.setenv("FAIRLEAD_SERVER", proxy.url)
        monkeypatch.setenv("FAIRLEAD_TOKEN", "of-the-environment")
        monkeypatch.setenv("FAIRLEAD_ACCOUNT", "carol")
        with fairlead.Lab() as lab:
            assert lab.whoami().my_account == "carol"
        with fairlead.Lab(token="given", account="dave") as lab:
            assert lab.whoami().my_account == "dave"
        tokens = [b"authorization: bearer of-the-environment", b"authorization: bearer given"]
        assert [token in head for token, head in zip(tokens, proxy.marked(), strict=True)] == [
            True
        ] * 2


class Page(BaseHTTPRequestHandler):
    """Answers as no lab does, or as one that is not ready."""

    ANSWERS: ClassVar = {
        "/scheduler/v1/whoami": (200, b'{"hello": 1}'),
        "/scheduler/v1/queues": (503, b'{"code": "unavailable", "message": "m", "hint": "h"}'),
        "/scheduler/v1/jobs/submit": (503, b'[{"code": "unavailable", "message": "m"}]'),
    }

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, body = self.ANSWERS.get(self.path.split("?")[0], (404, b"<html>"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def other() -> Iterator[str]:
    """A web server that is no lab."""
    with HTTPServer(("127.0.0.1", 0), Page) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def test_something_else_than_a_lab_answers(other: str) -> None:
    with fairlead.Lab(other) as lab:
        with pytest.raises(fairlead.Error, match="answered 404 with something else"):
            lab.job("1")
        with pytest.raises(fairlead.Error, match="is not understood"):
            lab.whoami()


@pytest.mark.parametrize(
    "address", ["ftp://lab", "http://", "http://lab?x=1", "http://a b", "http://a:b", "me@lab", ","]
)
def test_a_bad_address_is_refused(address: str) -> None:
    with pytest.raises(fairlead.Error, match="is not an address"):
        fairlead.Lab(address)
