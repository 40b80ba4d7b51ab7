from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="SeriesPoint")


@_attrs_define
class SeriesPoint:
    """One step of a plot.

    Attributes:
        at_ms (int): Its begin, UTC epoch ms. Default: 0.
        dispatched (int): Jobs that hosts got. Default: 0.
        ended (int): Attempts that ended. Default: 0.
        failed (int): Those of them that did not succeed. Default: 0.
        busy_ms (int): How long hosts had those that ended, ms. Default: 0.
        wait_p50_s (int | None | Unset): Half of the jobs waited less than this, seconds, a power of two; absent: hosts
            got none.
        wait_p95_s (int | None | Unset): 95 of 100 jobs waited less than this, seconds, a power of two; absent: hosts
            got none.
    """

    at_ms: int = 0
    dispatched: int = 0
    ended: int = 0
    failed: int = 0
    busy_ms: int = 0
    wait_p50_s: int | None | Unset = UNSET
    wait_p95_s: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at_ms = self.at_ms

        dispatched = self.dispatched

        ended = self.ended

        failed = self.failed

        busy_ms = self.busy_ms

        wait_p50_s: int | None | Unset
        if isinstance(self.wait_p50_s, Unset):
            wait_p50_s = UNSET
        else:
            wait_p50_s = self.wait_p50_s

        wait_p95_s: int | None | Unset
        if isinstance(self.wait_p95_s, Unset):
            wait_p95_s = UNSET
        else:
            wait_p95_s = self.wait_p95_s

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at_ms": at_ms,
                "dispatched": dispatched,
                "ended": ended,
                "failed": failed,
                "busy_ms": busy_ms,
            }
        )
        if wait_p50_s is not UNSET:
            field_dict["wait_p50_s"] = wait_p50_s
        if wait_p95_s is not UNSET:
            field_dict["wait_p95_s"] = wait_p95_s

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        at_ms = d.pop("at_ms")

        dispatched = d.pop("dispatched")

        ended = d.pop("ended")

        failed = d.pop("failed")

        busy_ms = d.pop("busy_ms")

        def _parse_wait_p50_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        wait_p50_s = _parse_wait_p50_s(d.pop("wait_p50_s", UNSET))

        def _parse_wait_p95_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        wait_p95_s = _parse_wait_p95_s(d.pop("wait_p95_s", UNSET))

        series_point = cls(
            at_ms=at_ms,
            dispatched=dispatched,
            ended=ended,
            failed=failed,
            busy_ms=busy_ms,
            wait_p50_s=wait_p50_s,
            wait_p95_s=wait_p95_s,
        )

        series_point.additional_properties = d
        return series_point

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
