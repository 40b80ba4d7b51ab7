from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="JobGroup")


@_attrs_define
class JobGroup:
    """Jobs of a list with one value of a field.

    Attributes:
        value (str): The value; empty: they have none.
        jobs (int): All of them.
        waiting (int): Those in stage submit.
        running (int): Those that hosts have.
        succeeded (int): Those that succeeded.
        stopped (int): Those that people cancelled or terminated. Default: 0.
        failed (int): Those that ended in another way.
        since_ms (int): When the first of them was submitted, UTC epoch ms. Default: 0.
        suite (str | Unset): Their suite; absent: they have several.
    """

    value: str
    jobs: int
    waiting: int
    running: int
    succeeded: int
    failed: int
    stopped: int = 0
    since_ms: int = 0
    suite: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        value = self.value

        jobs = self.jobs

        waiting = self.waiting

        running = self.running

        succeeded = self.succeeded

        stopped = self.stopped

        failed = self.failed

        since_ms = self.since_ms

        suite = self.suite

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "value": value,
                "jobs": jobs,
                "waiting": waiting,
                "running": running,
                "succeeded": succeeded,
                "stopped": stopped,
                "failed": failed,
                "since_ms": since_ms,
            }
        )
        if suite is not UNSET:
            field_dict["suite"] = suite

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        value = d.pop("value")

        jobs = d.pop("jobs")

        waiting = d.pop("waiting")

        running = d.pop("running")

        succeeded = d.pop("succeeded")

        stopped = d.pop("stopped")

        failed = d.pop("failed")

        since_ms = d.pop("since_ms")

        suite = d.pop("suite", UNSET)

        job_group = cls(
            value=value,
            jobs=jobs,
            waiting=waiting,
            running=running,
            succeeded=succeeded,
            stopped=stopped,
            failed=failed,
            since_ms=since_ms,
            suite=suite,
        )

        job_group.additional_properties = d
        return job_group

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
