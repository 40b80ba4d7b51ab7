from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="PausedView")


@_attrs_define
class PausedView:
    """Why nothing is dispatched in the whole lab.

    Attributes:
        by (str): Who paused it. Default: ''.
        reason (str): Why. Default: ''.
        at_ms (int): When, UTC epoch ms. Default: 0.
    """

    by: str = ""
    reason: str = ""
    at_ms: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        by = self.by

        reason = self.reason

        at_ms = self.at_ms

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "by": by,
                "reason": reason,
                "at_ms": at_ms,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        by = d.pop("by")

        reason = d.pop("reason")

        at_ms = d.pop("at_ms")

        paused_view = cls(
            by=by,
            reason=reason,
            at_ms=at_ms,
        )

        paused_view.additional_properties = d
        return paused_view

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
