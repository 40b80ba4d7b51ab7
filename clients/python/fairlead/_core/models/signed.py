from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Signed")


@_attrs_define
class Signed:
    """A body that only says who asks, as compass-ci's clients do; an empty one will do, too.

    Attributes:
        my_account (None | str | Unset): Who asks, where no token says so.
        my_token (None | str | Unset): The token, where the header has none.
    """

    my_account: None | str | Unset = UNSET
    my_token: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        my_account: None | str | Unset
        if isinstance(self.my_account, Unset):
            my_account = UNSET
        else:
            my_account = self.my_account

        my_token: None | str | Unset
        if isinstance(self.my_token, Unset):
            my_token = UNSET
        else:
            my_token = self.my_token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if my_account is not UNSET:
            field_dict["my_account"] = my_account
        if my_token is not UNSET:
            field_dict["my_token"] = my_token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_my_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        my_account = _parse_my_account(d.pop("my_account", UNSET))

        def _parse_my_token(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        my_token = _parse_my_token(d.pop("my_token", UNSET))

        signed = cls(
            my_account=my_account,
            my_token=my_token,
        )

        signed.additional_properties = d
        return signed

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
