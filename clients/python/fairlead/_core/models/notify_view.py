from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="NotifyView")


@_attrs_define
class NotifyView:
    """Who is told of the jobs of an account.

    Attributes:
        url (str): The address without its path and query, which may let in whoever knows them.
        on (list[str]): Of what: `ended`, `failed`, `passed_again`, `failing`.
        kind (str): In which words: `text` or `fairlead`.
    """

    url: str
    on: list[str]
    kind: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        on = self.on

        kind = self.kind

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "url": url,
                "on": on,
                "kind": kind,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        url = d.pop("url")

        on = cast(list[str], d.pop("on"))

        kind = d.pop("kind")

        notify_view = cls(
            url=url,
            on=on,
            kind=kind,
        )

        notify_view.additional_properties = d
        return notify_view

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
