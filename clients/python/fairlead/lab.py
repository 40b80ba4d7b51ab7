"""A lab, its submits and its jobs."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx

from .answers import (
    AccountView,
    Explanation,
    HostView,
    JobAnswer,
    JobList,
    JobState,
    JobView,
    QueueView,
    SubmitItem,
)
from .decode import value_of
from .errors import Error, Refused, Unreachable
from .servers import Patience, Servers, text_of

T = TypeVar("T")
Filter = str | int | Iterable[str]

# Silence after which a stream is asked for again. In the events of a submit, the server shows each second that it lives. It
# takes a second more for each thousand jobs.
SILENCE_MAX_S = 30.0
JOBS_A_SECOND = 500
# How often jobs are looked at that the stream of a submit does not tell of: those that joined a group.
LOOK_EVERY_S = 1.0


class Lab:
    """A lab: its servers, and who asks.

    `server` is an address, or several separated by commas. Without it, `FAIRLEAD_SERVER` is used, else the loopback.
    `token` and `account` come from `FAIRLEAD_TOKEN` and `FAIRLEAD_ACCOUNT`. Without both, the account is `$USER`.
    A request may take `timeout_s` seconds, and is repeated for `retry_for_s` seconds while no server answers.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        account: str | None = None,
        *,
        timeout_s: float = 30.0,
        retry_for_s: float = 15.0,
    ) -> None:
        env = os.environ.get
        server = server or env("FAIRLEAD_SERVER") or "http://127.0.0.1:3000"
        token = token or env("FAIRLEAD_TOKEN")
        account = account or env("FAIRLEAD_ACCOUNT") or (None if token else env("USER"))
        self._who = {"my_account": account} if account else {}
        self._retry_for_s = retry_for_s
        self._servers = Servers(server, token, timeout_s, retry_for_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._servers.close()

    def submit(
        self,
        jobs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path,
        strict: bool = False,
    ) -> Submit:
        """Submits jobs: a dict, a list of dicts, or a job file in YAML, which the server expands.

        A string with a line break is the text of a job file. Any other string and a `Path` name a file. `strict` refuses
        jobs that no host can run, and misspelt fields. Raises `Refused` if a job is refused; `accepted` has the others.
        """
        if isinstance(jobs, str | Path):
            kind, body = "yaml", text_of_file(jobs)
            has_key = re.search(r"^idempotency_key\s*:", body, re.MULTILINE) is not None
        else:
            listed = [dict(jobs)] if isinstance(jobs, Mapping) else [dict(job) for job in jobs]
            kind, body = "json", json.dumps(listed)
            has_key = any("idempotency_key" in job for job in listed)
        params = {"strict": str(strict).lower()} | self._who
        if not has_key:
            # It makes a repeat harmless. A key of the jobs themselves must not be hidden.
            params["idempotency_key"] = str(uuid.uuid4())
        items = self._ask(
            list[SubmitItem],
            "POST",
            "/scheduler/v1/jobs/submit",
            params=params,
            content=body.encode(),
            headers={"Content-Type": f"application/{kind}"},
        )
        return self._submitted(items)

    def job(self, id: str) -> Job:
        """One job, as it is now."""
        return Job(self, id).refresh()

    def jobs(self, **filters: Filter) -> Iterator[Job]:
        """All jobs that match, newest first. The pages are fetched as they are needed.

        The filters are those of `GET /scheduler/v1/jobs`, such as `suite`, `stage`, `health=["fail", "oom"]` or
        `order="oldest"`. `limit` is the size of a page.
        """
        params: dict[str, Any] = {
            name: value if isinstance(value, str | int) else ",".join(value)
            for name, value in filters.items()
        }
        while True:
            page = self._ask(JobList, "GET", "/scheduler/v1/jobs", params=params)
            for summary in page.jobs:
                yield Job(self, summary.job_id)._take(summary)
            if not page.next_:
                return
            params["after"] = page.next_

    def queues(self) -> list[QueueView]:
        """The queues, with their policy and what waits and runs."""
        return self._ask(list[QueueView], "GET", "/scheduler/v1/queues", params=self._who)

    def hosts(self, *tags: str) -> list[HostView]:
        """The hosts, or those that have all of these tags. Reads page after page."""
        params = self._who | ({"tags": ",".join(tags)} if tags else {})
        hosts: list[HostView] = []
        while True:
            answer = self._servers.request("GET", "/scheduler/v1/hosts", params=params)
            page = self._read(list[HostView], answer.content)
            hosts += page
            if not page or "next" not in answer.links:
                return hosts
            params = params | {"after": page[-1].hostname}

    def whoami(self) -> AccountView:
        """The account that asks."""
        return self._ask(AccountView, "GET", "/scheduler/v1/whoami", params=self._who)

    def _ask(self, kind: type[T], method: str, path: str, **options: Any) -> T:
        """Sends a request, and reads its answer as a value of a type."""
        return self._read(kind, self._servers.request(method, path, **options).content)

    def _read(self, kind: type[T], body: bytes) -> T:
        """JSON of the server as a value of a type."""
        try:
            return value_of(kind, json.loads(body))
        except ValueError as error:
            message = f"server: an answer of {self._servers} is not understood {text_of(error)}"
            raise Error(message, "check the versions of the server and of this package") from error

    def _submitted(self, items: Sequence[SubmitItem]) -> Submit:
        accepted = [item for item in items if item.job_id != "0"]
        submit = Submit(self, accepted) if accepted else None
        for index, item in enumerate(items):
            if item.job_id == "0":
                code, hint = item.code or "", item.hint or ""
                raise Refused(code, item.message, hint, index=index, accepted=submit)
        if submit is None:
            raise Error("submit: the answer has no job", "check that the job file makes jobs")
        return submit


def text_of_file(file: str | Path) -> str:
    """The text of a job file. A string with a line break is one already."""
    if isinstance(file, str) and "\n" in file:
        return file
    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        hint = "name a job file, or give its text with a line break"
        raise Error(f"job file: '{file}' cannot be read: {error.strerror}", hint) from error


class Submit:
    """The jobs of one submit. `warnings` says what is odd about accepted jobs, such as a misspelt field."""

    def __init__(self, lab: Lab, items: Sequence[SubmitItem]) -> None:
        self.lab = lab
        self.id = items[0].submit_id or items[0].job_id
        self.jobs = [Job(lab, item.job_id, item.result_root or "") for item in items]
        said = [text for item in items for text in (item.hint or "", *(item.warnings or ()))]
        self.warnings = list(dict.fromkeys(text for text in said if text))

    def __repr__(self) -> str:
        return f"<Submit {self.id}: {len(self.jobs)} jobs>"

    def wait(self, timeout: float | None = None) -> Iterator[Job]:
        """Yields each job once, when it has ended, in the order of their ends.

        A broken stream is resumed, at another server if there is one. Raises `TimeoutError` after `timeout` seconds, and
        `Unreachable` after a long silence of all servers. Another call begins anew with the jobs that have ended.
        """
        return self._ends(None if timeout is None else time.monotonic() + timeout, timeout)

    def _ends(self, until: float | None, timeout: float | None) -> Iterator[Job]:
        waited = {job.id: job for job in self.jobs}
        silence_s = SILENCE_MAX_S + len(self.jobs) / JOBS_A_SECOND
        patience = Patience(self.lab._retry_for_s)
        last = ""

        def left() -> float:
            if until is not None and until <= time.monotonic():
                message = f"submit {self.id}: {len(waited)} of {len(self.jobs)} jobs had not ended after {timeout} s"
                raise TimeoutError(f"{message}\nhint: wait again, or ask a job to explain()")
            return silence_s if until is None else min(until - time.monotonic(), silence_s)

        while waited:
            is_over = False
            try:
                with closing(self._events(last, left(), until)) as events:
                    for id, event, data in events:
                        patience.restart()
                        last = id or last
                        is_over = is_over or event == "over"
                        if event == "job":
                            state = self.lab._read(JobState, data)
                            job = waited.get(state.job_id)
                            if job and job._take(state).ended:
                                del waited[job.id]
                                yield job
                                if not waited:
                                    return
                        left()
                fault: Exception | None = None
            except httpx.TransportError as error:
                fault = error
            except Unreachable:
                left()
                raise
            except Refused as error:
                if error.code != "not_found":
                    raise
                is_over = True
            if is_over:
                # The stream does not tell of jobs that joined a group.
                ended = [job for job in waited.values() if job.refresh().ended]
                for job in sorted(ended, key=lambda job: (job.view and job.view.end_ms) or 0):
                    del waited[job.id]
                    yield job
                if waited:
                    time.sleep(min(left(), LOOK_EVERY_S))
                continue
            what = f"submit {self.id}: the stream of its events"
            self.lab._servers.broken(what, fault, patience, until)

    def _events(
        self, last: str, read_s: float, until: float | None
    ) -> Generator[tuple[str, str, bytes], None, None]:
        """The id, the name and the data of each event. They are empty where the stream only shows that it lives."""
        servers = self.lab._servers
        with servers.stream(
            "GET",
            f"/scheduler/v1/submits/{quote(self.id, safe='')}/events",
            headers={"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {}),
            timeout=servers.timeout_of(read_s),
            extensions={"until": until},
        ) as response:
            rest = b""
            for chunk in response.iter_bytes():
                *blocks, rest = (rest + chunk).split(b"\n\n")
                for block in blocks:
                    lines = (line.partition(b":") for line in block.split(b"\n"))
                    fields = {name: value.removeprefix(b" ") for name, _, value in lines}
                    id, event = fields.get(b"id", b"").decode(), fields.get(b"event", b"").decode()
                    yield id, event, fields.get(b"data", b"")


class Job:
    """A job, as it was when the server last told of it. `refresh` asks again.

    `stage` says how far it is, and `health` how it ended. `host`, `reason` and `exit_code` are None if they are not known.
    `params` are its short parameters. `view` has all of its fields after `refresh`.
    """

    def __init__(self, lab: Lab, id: str, result_root: str = "") -> None:
        self.lab = lab
        self.id = id
        self.stage = "submit"
        self.health = "unknown"
        self.host: str | None = None
        self.reason: str | None = None
        self.exit_code: int | None = None
        self.attempt = 1
        self.params = ""
        self.result_root = result_root
        self.view: JobView | None = None

    def __repr__(self) -> str:
        return f"<Job {self.id}: {self.stage}, {self.health}>"

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.stage in ("finish", "cancel") or self.stage.startswith("abort")

    @property
    def succeeded(self) -> bool:
        """Whether it has ended well."""
        return self.health == "success"

    def refresh(self) -> Job:
        """Asks the server how the job is now."""
        self.view = self.lab._ask(JobView, "GET", self._path())
        return self._take(self.view)

    def _path(self, rest: str = "") -> str:
        return f"/scheduler/v1/jobs/{quote(self.id, safe='')}{rest}"

    def _take(self, state: JobView | JobState) -> Job:
        self.stage, self.health, self.attempt = state.job_stage, state.job_health, state.attempt
        self.host, self.reason = state.host or None, state.reason or None
        self.params, self.result_root = state.params or "", state.result_root or self.result_root
        self.exit_code = state.exit_code if isinstance(state.exit_code, int) else None
        return self

    def log(self, attempt: int | None = None) -> str:
        """The output of the present attempt, or of another one."""
        params = {"attempt": attempt} if attempt else {}
        return self.lab._servers.get(self._path("/log"), params=params).text

    def follow_log(self) -> Iterator[bytes]:
        """The output of the present attempt and of all later ones, until the job ends. A broken stream is resumed."""
        attempt, offset = self.refresh().attempt, 0
        patience = Patience(self.lab._retry_for_s)
        timeout = self.lab._servers.timeout_of(SILENCE_MAX_S)
        while True:
            # What came before this moment is read below, even if the server stops.
            was_over = self.refresh().ended or self.attempt > attempt
            params: dict[str, Any] = {"attempt": attempt, "offset": offset, "follow": "true"}
            try:
                with self.lab._servers.stream(
                    "GET", self._path("/log"), params=params, timeout=timeout
                ) as response:
                    for chunk in response.iter_bytes():
                        patience.restart()
                        offset += len(chunk)
                        yield chunk
            except httpx.ReadTimeout:
                patience.restart()
                continue
            except httpx.TransportError as error:
                self.lab._servers.broken(
                    f"job {self.id}: the stream of its output", error, patience
                )
                continue
            if was_over and self.attempt > attempt:
                attempt, offset = attempt + 1, 0
            elif was_over:
                return

    def files(self) -> list[str]:
        """The names of the result files, such as `x.txt` or `logs/a`. A job that has none yet has an empty list."""
        found, folders = [], [""]
        while folders:
            folder = folders.pop()
            try:
                names = self.lab._ask(list[str], "GET", self._url(folder))
            except Refused as error:
                if error.code != "not_found":
                    raise
                continue
            folders += [folder + name for name in names if name.endswith("/")]
            found += [folder + name for name in names if not name.endswith("/")]
        return sorted(found)

    def download(self, name: str, to: str | Path) -> Path:
        """Downloads a result file to a path, or into a folder that exists. Returns the path of the file."""
        if not all(part not in ("", ".", "..") for part in name.split("/")):
            raise Error(
                f"result file: the name '{name}' leaves the folder", "use a name of files()"
            )
        target = Path(to) / name if Path(to).is_dir() else Path(to)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        patience = Patience(self.lab._retry_for_s)
        while True:
            try:
                with (
                    self.lab._servers.stream("GET", self._url(name)) as response,
                    part.open("wb") as file,
                ):
                    for chunk in response.iter_bytes():
                        file.write(chunk)
                return part.replace(target)
            except httpx.TransportError as error:
                self.lab._servers.broken(f"result file {name}: its download", error, patience)

    def _url(self, name: str) -> str:
        if not self.result_root:
            self.refresh()
        return quote(f"{self.result_root}/{name}".rstrip("/"))

    def answer(self) -> JobAnswer:
        """The result of the job: its test cases, and each of its shards."""
        path = f"/r/{quote(self.id, safe='')}"
        return self.lab._ask(JobAnswer, "GET", path, params={"format": "json"})

    def cancel(self) -> None:
        """Cancels the job if it waits. A job that runs is refused with `wrong_stage`."""
        self.lab._servers.post(self._path("/cancel"), params=self.lab._who)

    def terminate(self, grace_s: int | None = None) -> None:
        """Stops the job if it runs: SIGTERM, and SIGKILL after `grace_s` seconds (10)."""
        body = {"grace_s": grace_s}
        self.lab._servers.post(self._path("/terminate"), params=self.lab._who, json=body)

    def rerun(self, failed: bool = False) -> Submit:
        """Submits the job again; with `failed` only its shards or tests that failed."""
        body, who = {"failed": failed}, self.lab._who
        items = self.lab._ask(list[SubmitItem], "POST", self._path("/rerun"), params=who, json=body)
        return self.lab._submitted(items)

    def explain(self) -> Explanation:
        """Why the job waits, or where it is."""
        return self.lab._ask(Explanation, "GET", self._path("/explain"))
