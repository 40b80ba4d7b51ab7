from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ContentUrls")


@_attrs_define
class ContentUrls:
    """From where to read chunks.

    Attributes:
        urls (list[str]): An address for each of them, in order, to be read by GET without any credentials. Empty: from
            `content/chunks/:digest` of a scheduler.
        until_ms (int): Until when the addresses can be used, UTC epoch ms; 0: there are none. Default: 0.
    """

    urls: list[str]
    until_ms: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        urls = self.urls

        until_ms = self.until_ms

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "urls": urls,
                "until_ms": until_ms,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        urls = cast(list[str], d.pop("urls"))

        until_ms = d.pop("until_ms")

        content_urls = cls(
            urls=urls,
            until_ms=until_ms,
        )

        content_urls.additional_properties = d
        return content_urls

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
