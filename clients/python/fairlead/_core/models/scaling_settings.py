from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ScalingSettings")


@_attrs_define
class ScalingSettings:
    """What holds for all pools together.

    Attributes:
        quota (int | None | Unset): Most machines of all pools together. Absent: no limit but those of the pools.
    """

    quota: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        quota: int | None | Unset
        if isinstance(self.quota, Unset):
            quota = UNSET
        else:
            quota = self.quota

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if quota is not UNSET:
            field_dict["quota"] = quota

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_quota(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        quota = _parse_quota(d.pop("quota", UNSET))

        scaling_settings = cls(
            quota=quota,
        )

        return scaling_settings
