from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="MissingChunk")


@_attrs_define
class MissingChunk:
    """A chunk that is not there.

    Attributes:
        digest (str): Its digest.
        url (None | str | Unset): Where to send it by PUT, without any credentials. Absent: to `content/chunks/:digest`
            of a scheduler.
        headers (list[list[str]] | Unset): Headers that the PUT must have.
    """

    digest: str
    url: None | str | Unset = UNSET
    headers: list[list[str]] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        digest = self.digest

        url: None | str | Unset
        if isinstance(self.url, Unset):
            url = UNSET
        else:
            url = self.url

        headers: list[list[str]] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = []
            for headers_item_data in self.headers:
                headers_item = []
                for headers_item_item_data in headers_item_data:
                    headers_item_item: str
                    headers_item_item = headers_item_item_data
                    headers_item.append(headers_item_item)

                headers.append(headers_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "digest": digest,
            }
        )
        if url is not UNSET:
            field_dict["url"] = url
        if headers is not UNSET:
            field_dict["headers"] = headers

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        digest = d.pop("digest")

        def _parse_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        url = _parse_url(d.pop("url", UNSET))

        _headers = d.pop("headers", UNSET)
        headers: list[list[str]] | Unset = UNSET
        if _headers is not UNSET:
            headers = []
            for headers_item_data in _headers:
                headers_item = []
                _headers_item = headers_item_data
                for headers_item_item_data in _headers_item:

                    def _parse_headers_item_item(data: object) -> str:
                        return cast(str, data)

                    headers_item_item = _parse_headers_item_item(headers_item_item_data)

                    headers_item.append(headers_item_item)

                headers.append(headers_item)

        missing_chunk = cls(
            digest=digest,
            url=url,
            headers=headers,
        )

        missing_chunk.additional_properties = d
        return missing_chunk

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
