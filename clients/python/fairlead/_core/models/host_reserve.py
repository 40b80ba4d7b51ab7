from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="HostReserve")


@_attrs_define
class HostReserve:
    """Keeps a host for some accounts.

    Attributes:
        accounts (list[str]): Accounts whose jobs alone it gets, 1 to 100.
        until (str): Until when: `+2h` from now or a time such as `2026-11-22T05:00:00Z`; at most 366 days ahead.
        reason (str | Unset): Why, for people, at most 300 characters. Default: ''.
    """

    accounts: list[str]
    until: str
    reason: str | Unset = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        accounts = self.accounts

        until = self.until

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "accounts": accounts,
                "until": until,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        accounts = cast(list[str], d.pop("accounts"))

        until = d.pop("until")

        reason = d.pop("reason", UNSET)

        host_reserve = cls(
            accounts=accounts,
            until=until,
            reason=reason,
        )

        host_reserve.additional_properties = d
        return host_reserve

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
