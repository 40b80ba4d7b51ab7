from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="RecentWaits")


@_attrs_define
class RecentWaits:
    """How long jobs waited in the last hour, from when they could run to when a host got them.

    Attributes:
        jobs (int): Jobs that hosts got. Default: 0.
        p50_s (int | None | Unset): Half of them waited less than this, seconds, a power of two; absent: there were
            none.
        p95_s (int | None | Unset): 95 of 100 of them waited less than this, seconds, a power of two; absent: there were
            none.
    """

    jobs: int = 0
    p50_s: int | None | Unset = UNSET
    p95_s: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        jobs = self.jobs

        p50_s: int | None | Unset
        if isinstance(self.p50_s, Unset):
            p50_s = UNSET
        else:
            p50_s = self.p50_s

        p95_s: int | None | Unset
        if isinstance(self.p95_s, Unset):
            p95_s = UNSET
        else:
            p95_s = self.p95_s

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "jobs": jobs,
            }
        )
        if p50_s is not UNSET:
            field_dict["p50_s"] = p50_s
        if p95_s is not UNSET:
            field_dict["p95_s"] = p95_s

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        jobs = d.pop("jobs")

        def _parse_p50_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        p50_s = _parse_p50_s(d.pop("p50_s", UNSET))

        def _parse_p95_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        p95_s = _parse_p95_s(d.pop("p95_s", UNSET))

        recent_waits = cls(
            jobs=jobs,
            p50_s=p50_s,
            p95_s=p95_s,
        )

        recent_waits.additional_properties = d
        return recent_waits

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
