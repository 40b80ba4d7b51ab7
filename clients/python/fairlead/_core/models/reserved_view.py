from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ReservedView")


@_attrs_define
class ReservedView:
    """For whom a host is kept.

    Attributes:
        accounts (list[str]): Accounts whose jobs alone it gets, sorted.
        until_ms (int): Until when, UTC epoch ms.
        reason (str): Why, in the words of who reserved it. Default: ''.
        by (str): Who reserved it.
        at_ms (int): When, UTC epoch ms.
    """

    accounts: list[str]
    until_ms: int
    by: str
    at_ms: int
    reason: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        accounts = self.accounts

        until_ms = self.until_ms

        reason = self.reason

        by = self.by

        at_ms = self.at_ms

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "accounts": accounts,
                "until_ms": until_ms,
                "reason": reason,
                "by": by,
                "at_ms": at_ms,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        accounts = cast(list[str], d.pop("accounts"))

        until_ms = d.pop("until_ms")

        reason = d.pop("reason")

        by = d.pop("by")

        at_ms = d.pop("at_ms")

        reserved_view = cls(
            accounts=accounts,
            until_ms=until_ms,
            reason=reason,
            by=by,
            at_ms=at_ms,
        )

        reserved_view.additional_properties = d
        return reserved_view

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
