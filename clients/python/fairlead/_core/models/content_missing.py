from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.missing_chunk import MissingChunk


T = TypeVar("T", bound="ContentMissing")


@_attrs_define
class ContentMissing:
    """Which of these chunks must be sent.

    Attributes:
        missing (list[MissingChunk]): The chunks that are not there, in the order of the request, without repeats.
        until_ms (int): Until when the put keeps its chunks, UTC epoch ms: the manifest must be in by then.
    """

    missing: list[MissingChunk]
    until_ms: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        missing = []
        for missing_item_data in self.missing:
            missing_item = missing_item_data.to_dict()
            missing.append(missing_item)

        until_ms = self.until_ms

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "missing": missing,
                "until_ms": until_ms,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.missing_chunk import MissingChunk

        d = dict(src_dict)
        missing = []
        _missing = d.pop("missing")
        for missing_item_data in _missing:
            missing_item = MissingChunk.from_dict(missing_item_data)

            missing.append(missing_item)

        until_ms = d.pop("until_ms")

        content_missing = cls(
            missing=missing,
            until_ms=until_ms,
        )

        content_missing.additional_properties = d
        return content_missing

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
