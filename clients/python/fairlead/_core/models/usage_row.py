from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UsageRow")


@_attrs_define
class UsageRow:
    """What ran of one name.

    Attributes:
        name (str): The name.
        dispatched (int): Jobs that hosts got.
        ended (int): Attempts that ended.
        failed (int): Those of them that did not succeed.
        busy_ms (int): How long hosts had those that ended, ms.
        share_permille (int): Its part of the busy time of all rows, thousandths.
        wait_p50_s (int | None | Unset): Half of the jobs waited less than this, seconds, a power of two; absent: hosts
            got none.
        wait_p95_s (int | None | Unset): 95 of 100 jobs waited less than this, seconds, a power of two; absent: hosts
            got none.
    """

    name: str
    dispatched: int
    ended: int
    failed: int
    busy_ms: int
    share_permille: int
    wait_p50_s: int | None | Unset = UNSET
    wait_p95_s: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        dispatched = self.dispatched

        ended = self.ended

        failed = self.failed

        busy_ms = self.busy_ms

        share_permille = self.share_permille

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
                "name": name,
                "dispatched": dispatched,
                "ended": ended,
                "failed": failed,
                "busy_ms": busy_ms,
                "share_permille": share_permille,
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
        name = d.pop("name")

        dispatched = d.pop("dispatched")

        ended = d.pop("ended")

        failed = d.pop("failed")

        busy_ms = d.pop("busy_ms")

        share_permille = d.pop("share_permille")

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

        usage_row = cls(
            name=name,
            dispatched=dispatched,
            ended=ended,
            failed=failed,
            busy_ms=busy_ms,
            share_permille=share_permille,
            wait_p50_s=wait_p50_s,
            wait_p95_s=wait_p95_s,
        )

        usage_row.additional_properties = d
        return usage_row

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
