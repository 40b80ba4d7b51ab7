from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="NotifyChange")


@_attrs_define
class NotifyChange:
    """Who is to be told of the jobs of an account that do not say so themselves.

    Attributes:
        url (str): The address, `http` or `https`, at most 2,048 bytes. It is stored sealed.
        on (list[str] | Unset): Of what: `ended`, `failed`, `passed_again`, `failing`. Default `ended`.
        kind (None | str | Unset): `text`, a sentence for a chat, or `fairlead`, which needs a secret. Default `text`.
        secret (None | str | Unset): The key of signatures. It is stored sealed.
    """

    url: str
    on: list[str] | Unset = UNSET
    kind: None | str | Unset = UNSET
    secret: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        on: list[str] | Unset = UNSET
        if not isinstance(self.on, Unset):
            on = self.on

        kind: None | str | Unset
        if isinstance(self.kind, Unset):
            kind = UNSET
        else:
            kind = self.kind

        secret: None | str | Unset
        if isinstance(self.secret, Unset):
            secret = UNSET
        else:
            secret = self.secret

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "url": url,
            }
        )
        if on is not UNSET:
            field_dict["on"] = on
        if kind is not UNSET:
            field_dict["kind"] = kind
        if secret is not UNSET:
            field_dict["secret"] = secret

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        url = d.pop("url")

        on = cast(list[str], d.pop("on", UNSET))

        def _parse_kind(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        kind = _parse_kind(d.pop("kind", UNSET))

        def _parse_secret(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        secret = _parse_secret(d.pop("secret", UNSET))

        notify_change = cls(
            url=url,
            on=on,
            kind=kind,
            secret=secret,
        )

        notify_change.additional_properties = d
        return notify_change

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
