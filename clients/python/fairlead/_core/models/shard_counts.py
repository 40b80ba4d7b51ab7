from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ShardCounts")


@_attrs_define
class ShardCounts:
    """How far the shards of a job are.

    Attributes:
        count (int): How many there are.
        running (int): Those that testboxes have. Default: 0.
        over (int): Those that have ended. Default: 0.
        failed (int): Those of them that did not succeed. Default: 0.
        reused (int | Unset): Those of them that have results of earlier jobs: nothing ran for them. Only the answer of
            a job counts them.
    """

    count: int
    running: int = 0
    over: int = 0
    failed: int = 0
    reused: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        running = self.running

        over = self.over

        failed = self.failed

        reused = self.reused

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "count": count,
                "running": running,
                "over": over,
                "failed": failed,
            }
        )
        if reused is not UNSET:
            field_dict["reused"] = reused

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        count = d.pop("count")

        running = d.pop("running")

        over = d.pop("over")

        failed = d.pop("failed")

        reused = d.pop("reused", UNSET)

        shard_counts = cls(
            count=count,
            running=running,
            over=over,
            failed=failed,
            reused=reused,
        )

        shard_counts.additional_properties = d
        return shard_counts

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
