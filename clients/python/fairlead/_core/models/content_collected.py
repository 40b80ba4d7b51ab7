from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ContentCollected")


@_attrs_define
class ContentCollected:
    """What a collection removed, or would remove.

    Attributes:
        manifests (int): Manifests that are there.
        manifests_removed (int): Manifests that were removed: no job names them, nobody keeps them, and the grace period
            is over.
        chunks (int): Chunks that are there.
        chunks_removed (int): Chunks that were removed.
        bytes_removed (int): Bytes of the chunks that were removed.
        bytes_kept (int): Bytes of the chunks that stay.
    """

    manifests: int
    manifests_removed: int
    chunks: int
    chunks_removed: int
    bytes_removed: int
    bytes_kept: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        manifests = self.manifests

        manifests_removed = self.manifests_removed

        chunks = self.chunks

        chunks_removed = self.chunks_removed

        bytes_removed = self.bytes_removed

        bytes_kept = self.bytes_kept

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "manifests": manifests,
                "manifests_removed": manifests_removed,
                "chunks": chunks,
                "chunks_removed": chunks_removed,
                "bytes_removed": bytes_removed,
                "bytes_kept": bytes_kept,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        manifests = d.pop("manifests")

        manifests_removed = d.pop("manifests_removed")

        chunks = d.pop("chunks")

        chunks_removed = d.pop("chunks_removed")

        bytes_removed = d.pop("bytes_removed")

        bytes_kept = d.pop("bytes_kept")

        content_collected = cls(
            manifests=manifests,
            manifests_removed=manifests_removed,
            chunks=chunks,
            chunks_removed=chunks_removed,
            bytes_removed=bytes_removed,
            bytes_kept=bytes_kept,
        )

        content_collected.additional_properties = d
        return content_collected

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
