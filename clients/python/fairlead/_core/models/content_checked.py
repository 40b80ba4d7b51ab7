from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ContentChecked")


@_attrs_define
class ContentChecked:
    """What a check found.

    Attributes:
        manifests (int): Manifests that were read.
        chunks (int): Chunks that were read.
        bytes_ (int): Bytes that were read.
        problems (list[str]): What is damaged or missing, a sentence each, the first 100.
        problems_total (int): How many problems there are in all.
    """

    manifests: int
    chunks: int
    bytes_: int
    problems: list[str]
    problems_total: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        manifests = self.manifests

        chunks = self.chunks

        bytes_ = self.bytes_

        problems = self.problems

        problems_total = self.problems_total

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "manifests": manifests,
                "chunks": chunks,
                "bytes": bytes_,
                "problems": problems,
                "problems_total": problems_total,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        manifests = d.pop("manifests")

        chunks = d.pop("chunks")

        bytes_ = d.pop("bytes")

        problems = cast(list[str], d.pop("problems"))

        problems_total = d.pop("problems_total")

        content_checked = cls(
            manifests=manifests,
            chunks=chunks,
            bytes_=bytes_,
            problems=problems,
            problems_total=problems_total,
        )

        content_checked.additional_properties = d
        return content_checked

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
