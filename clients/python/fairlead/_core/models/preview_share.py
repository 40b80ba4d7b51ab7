from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="PreviewShare")


@_attrs_define
class PreviewShare:
    """How the share of a queue changes.

    Attributes:
        queue (str): The queue. Default: ''.
        now_permille (int): Its share of its class now, among queues with work, thousandths. Default: 0.
        then_permille (int): Its share afterwards. Default: 0.
    """

    queue: str = ""
    now_permille: int = 0
    then_permille: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        queue = self.queue

        now_permille = self.now_permille

        then_permille = self.then_permille

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "queue": queue,
                "now_permille": now_permille,
                "then_permille": then_permille,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        queue = d.pop("queue")

        now_permille = d.pop("now_permille")

        then_permille = d.pop("then_permille")

        preview_share = cls(
            queue=queue,
            now_permille=now_permille,
            then_permille=then_permille,
        )

        preview_share.additional_properties = d
        return preview_share

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
