from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ContentPin")


@_attrs_define
class ContentPin:
    """Chunks that are about to be put, and kept from collection from now on.

    Attributes:
        put (str): Names this put: 1 to 64 letters, digits, `-` and `_`, by chance. The same one for all requests of a
            put.
        chunks (list[str]): Digests of chunks, at most 10,000.
    """

    put: str
    chunks: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        put = self.put

        chunks = self.chunks

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "put": put,
                "chunks": chunks,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        put = d.pop("put")

        chunks = cast(list[str], d.pop("chunks"))

        content_pin = cls(
            put=put,
            chunks=chunks,
        )

        content_pin.additional_properties = d
        return content_pin

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
