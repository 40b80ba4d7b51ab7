from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="LeavingJob")


@_attrs_define
class LeavingJob:
    """A job on a host that gets no new one.

    Attributes:
        job_id (str): The job.
        suite (str): Its suite.
        since_ms (int): Since when the host has it, UTC epoch ms.
        expected_ms (int | None | Unset): When it ends, as far as is known of such jobs, UTC epoch ms; absent: nothing
            is known.
        latest_ms (int | None | Unset): When it is over by its time limits, UTC epoch ms; absent: it has none.
    """

    job_id: str
    suite: str
    since_ms: int
    expected_ms: int | None | Unset = UNSET
    latest_ms: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_id = self.job_id

        suite = self.suite

        since_ms = self.since_ms

        expected_ms: int | None | Unset
        if isinstance(self.expected_ms, Unset):
            expected_ms = UNSET
        else:
            expected_ms = self.expected_ms

        latest_ms: int | None | Unset
        if isinstance(self.latest_ms, Unset):
            latest_ms = UNSET
        else:
            latest_ms = self.latest_ms

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "suite": suite,
                "since_ms": since_ms,
            }
        )
        if expected_ms is not UNSET:
            field_dict["expected_ms"] = expected_ms
        if latest_ms is not UNSET:
            field_dict["latest_ms"] = latest_ms

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        job_id = d.pop("job_id")

        suite = d.pop("suite")

        since_ms = d.pop("since_ms")

        def _parse_expected_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        expected_ms = _parse_expected_ms(d.pop("expected_ms", UNSET))

        def _parse_latest_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        latest_ms = _parse_latest_ms(d.pop("latest_ms", UNSET))

        leaving_job = cls(
            job_id=job_id,
            suite=suite,
            since_ms=since_ms,
            expected_ms=expected_ms,
            latest_ms=latest_ms,
        )

        leaving_job.additional_properties = d
        return leaving_job

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
