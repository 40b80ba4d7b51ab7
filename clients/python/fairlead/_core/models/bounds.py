from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Bounds")


@_attrs_define
class Bounds:
    """A limit: past the soft one jobs go behind others, at the hard one they stop. Each 0 to 1,000,000,000; none: no
    limit.

        Attributes:
            soft (int | None | Unset): The soft one.
            hard (int | None | Unset): The hard one, not below the soft one.
    """

    soft: int | None | Unset = UNSET
    hard: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        soft: int | None | Unset
        if isinstance(self.soft, Unset):
            soft = UNSET
        else:
            soft = self.soft

        hard: int | None | Unset
        if isinstance(self.hard, Unset):
            hard = UNSET
        else:
            hard = self.hard

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if soft is not UNSET:
            field_dict["soft"] = soft
        if hard is not UNSET:
            field_dict["hard"] = hard

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_soft(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        soft = _parse_soft(d.pop("soft", UNSET))

        def _parse_hard(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        hard = _parse_hard(d.pop("hard", UNSET))

        bounds = cls(
            soft=soft,
            hard=hard,
        )

        return bounds
