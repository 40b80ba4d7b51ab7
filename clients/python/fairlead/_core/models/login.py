from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Login")


@_attrs_define
class Login:
    """A login of a person: with a token, or in an open lab with a name.

    Attributes:
        token (str | Unset): The token of the account; in a lab with accounts.
        my_account (str | Unset): The name to act under; in an open lab.
    """

    token: str | Unset = UNSET
    my_account: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        token = self.token

        my_account = self.my_account

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if token is not UNSET:
            field_dict["token"] = token
        if my_account is not UNSET:
            field_dict["my_account"] = my_account

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        token = d.pop("token", UNSET)

        my_account = d.pop("my_account", UNSET)

        login = cls(
            token=token,
            my_account=my_account,
        )

        return login
