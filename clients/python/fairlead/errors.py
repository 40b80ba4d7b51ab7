"""Errors of the client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol


class Accepted(Protocol):
    """The accepted jobs of a submit, as `lab.Submit` has them. This module knows no lab."""

    id: str
    jobs: list[Any]
    warnings: list[str]

    def wait(self, timeout: float | None = None) -> Iterator[Any]:
        """Yields each job once, when it has ended."""


class Error(Exception):
    """The base of all errors of this package. `message` says what is wrong, and `hint` what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class Unreachable(Error):
    """No server answers, or the answer to a request that must not be repeated was lost."""


class Refused(Error):
    """The server refused a request, or a job of a submit.

    `code` is stable and meant for programs. `status` is that of the answer. If a job was refused, `index` is its place
    among the expanded jobs, from 0, and `accepted` has the jobs of the same submit that were not refused.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str,
        *,
        status: int = 200,
        index: int | None = None,
        accepted: Accepted | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.code = code
        self.status = status
        self.index = index
        self.accepted = accepted

    def __str__(self) -> str:
        has_others = bool(self.index) or self.accepted is not None
        return f"job {self.index}: {super().__str__()}" if has_others else super().__str__()
