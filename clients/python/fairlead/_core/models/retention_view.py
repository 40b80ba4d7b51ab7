from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="RetentionView")


@_attrs_define
class RetentionView:
    """How long jobs are kept.

    Attributes:
        keep_months (int | None): Whole months, as an admin set it for all replicas; 0: for ever. Null: nobody did.
        in_force (int): The months that this replica keeps: `keep_months`, else its `--keep-months`. Default: 0.
    """

    keep_months: int | None
    in_force: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        keep_months: int | None
        keep_months = self.keep_months

        in_force = self.in_force

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "keep_months": keep_months,
                "in_force": in_force,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_keep_months(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        keep_months = _parse_keep_months(d.pop("keep_months"))

        in_force = d.pop("in_force")

        retention_view = cls(
            keep_months=keep_months,
            in_force=in_force,
        )

        retention_view.additional_properties = d
        return retention_view

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
