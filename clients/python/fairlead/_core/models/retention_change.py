from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RetentionChange")


@_attrs_define
class RetentionChange:
    """Sets how long jobs are kept.

    Attributes:
        keep_months (int | None | Unset): Whole months, 0 to 1,000; 0: for ever. Null: each replica has its own `--keep-
            months`.
    """

    keep_months: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        keep_months: int | None | Unset
        if isinstance(self.keep_months, Unset):
            keep_months = UNSET
        else:
            keep_months = self.keep_months

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if keep_months is not UNSET:
            field_dict["keep_months"] = keep_months

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_keep_months(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        keep_months = _parse_keep_months(d.pop("keep_months", UNSET))

        retention_change = cls(
            keep_months=keep_months,
        )

        return retention_change
