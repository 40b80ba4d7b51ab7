from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.bounds import Bounds


T = TypeVar("T", bound="Limits")


@_attrs_define
class Limits:
    """The limits of an account or a queue.

    Attributes:
        waiting (Bounds | Unset): A limit: past the soft one jobs go behind others, at the hard one they stop. Each 0 to
            1,000,000,000; none: no limit.
        running (Bounds | Unset): A limit: past the soft one jobs go behind others, at the hard one they stop. Each 0 to
            1,000,000,000; none: no limit.
        hours (Bounds | Unset): A limit: past the soft one jobs go behind others, at the hard one they stop. Each 0 to
            1,000,000,000; none: no limit.
        shards (Bounds | Unset): A limit: past the soft one jobs go behind others, at the hard one they stop. Each 0 to
            1,000,000,000; none: no limit.
        content_mb (Bounds | Unset): A limit: past the soft one jobs go behind others, at the hard one they stop. Each 0
            to 1,000,000,000; none: no limit.
        content_day_mb (Bounds | Unset): A limit: past the soft one jobs go behind others, at the hard one they stop.
            Each 0 to 1,000,000,000; none: no limit.
    """

    waiting: Bounds | Unset = UNSET
    running: Bounds | Unset = UNSET
    hours: Bounds | Unset = UNSET
    shards: Bounds | Unset = UNSET
    content_mb: Bounds | Unset = UNSET
    content_day_mb: Bounds | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        waiting: dict[str, Any] | Unset = UNSET
        if not isinstance(self.waiting, Unset):
            waiting = self.waiting.to_dict()

        running: dict[str, Any] | Unset = UNSET
        if not isinstance(self.running, Unset):
            running = self.running.to_dict()

        hours: dict[str, Any] | Unset = UNSET
        if not isinstance(self.hours, Unset):
            hours = self.hours.to_dict()

        shards: dict[str, Any] | Unset = UNSET
        if not isinstance(self.shards, Unset):
            shards = self.shards.to_dict()

        content_mb: dict[str, Any] | Unset = UNSET
        if not isinstance(self.content_mb, Unset):
            content_mb = self.content_mb.to_dict()

        content_day_mb: dict[str, Any] | Unset = UNSET
        if not isinstance(self.content_day_mb, Unset):
            content_day_mb = self.content_day_mb.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if waiting is not UNSET:
            field_dict["waiting"] = waiting
        if running is not UNSET:
            field_dict["running"] = running
        if hours is not UNSET:
            field_dict["hours"] = hours
        if shards is not UNSET:
            field_dict["shards"] = shards
        if content_mb is not UNSET:
            field_dict["content_mb"] = content_mb
        if content_day_mb is not UNSET:
            field_dict["content_day_mb"] = content_day_mb

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.bounds import Bounds

        d = dict(src_dict)
        _waiting = d.pop("waiting", UNSET)
        waiting: Bounds | Unset
        if isinstance(_waiting, Unset):
            waiting = UNSET
        else:
            waiting = Bounds.from_dict(_waiting)

        _running = d.pop("running", UNSET)
        running: Bounds | Unset
        if isinstance(_running, Unset):
            running = UNSET
        else:
            running = Bounds.from_dict(_running)

        _hours = d.pop("hours", UNSET)
        hours: Bounds | Unset
        if isinstance(_hours, Unset):
            hours = UNSET
        else:
            hours = Bounds.from_dict(_hours)

        _shards = d.pop("shards", UNSET)
        shards: Bounds | Unset
        if isinstance(_shards, Unset):
            shards = UNSET
        else:
            shards = Bounds.from_dict(_shards)

        _content_mb = d.pop("content_mb", UNSET)
        content_mb: Bounds | Unset
        if isinstance(_content_mb, Unset):
            content_mb = UNSET
        else:
            content_mb = Bounds.from_dict(_content_mb)

        _content_day_mb = d.pop("content_day_mb", UNSET)
        content_day_mb: Bounds | Unset
        if isinstance(_content_day_mb, Unset):
            content_day_mb = UNSET
        else:
            content_day_mb = Bounds.from_dict(_content_day_mb)

        limits = cls(
            waiting=waiting,
            running=running,
            hours=hours,
            shards=shards,
            content_mb=content_mb,
            content_day_mb=content_day_mb,
        )

        limits.additional_properties = d
        return limits

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
