from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.bounds import Bounds


T = TypeVar("T", bound="LimitsChange")


@_attrs_define
class LimitsChange:
    """A change of limits: each that is given is replaced whole, so `{}` takes it away.

    Attributes:
        waiting (Bounds | None | Unset): Jobs that wait.
        running (Bounds | None | Unset): Jobs that testboxes have.
        hours (Bounds | None | Unset): Hours of testboxes within 24 hours.
        shards (Bounds | None | Unset): Shards that have not ended.
    """

    waiting: Bounds | None | Unset = UNSET
    running: Bounds | None | Unset = UNSET
    hours: Bounds | None | Unset = UNSET
    shards: Bounds | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.bounds import Bounds

        waiting: dict[str, Any] | None | Unset
        if isinstance(self.waiting, Unset):
            waiting = UNSET
        elif isinstance(self.waiting, Bounds):
            waiting = self.waiting.to_dict()
        else:
            waiting = self.waiting

        running: dict[str, Any] | None | Unset
        if isinstance(self.running, Unset):
            running = UNSET
        elif isinstance(self.running, Bounds):
            running = self.running.to_dict()
        else:
            running = self.running

        hours: dict[str, Any] | None | Unset
        if isinstance(self.hours, Unset):
            hours = UNSET
        elif isinstance(self.hours, Bounds):
            hours = self.hours.to_dict()
        else:
            hours = self.hours

        shards: dict[str, Any] | None | Unset
        if isinstance(self.shards, Unset):
            shards = UNSET
        elif isinstance(self.shards, Bounds):
            shards = self.shards.to_dict()
        else:
            shards = self.shards

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if waiting is not UNSET:
            field_dict["waiting"] = waiting
        if running is not UNSET:
            field_dict["running"] = running
        if hours is not UNSET:
            field_dict["hours"] = hours
        if shards is not UNSET:
            field_dict["shards"] = shards

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.bounds import Bounds

        d = dict(src_dict)

        def _parse_waiting(data: object) -> Bounds | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                waiting_type_0 = Bounds.from_dict(data)

                return waiting_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Bounds | None | Unset, data)

        waiting = _parse_waiting(d.pop("waiting", UNSET))

        def _parse_running(data: object) -> Bounds | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                running_type_0 = Bounds.from_dict(data)

                return running_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Bounds | None | Unset, data)

        running = _parse_running(d.pop("running", UNSET))

        def _parse_hours(data: object) -> Bounds | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                hours_type_0 = Bounds.from_dict(data)

                return hours_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Bounds | None | Unset, data)

        hours = _parse_hours(d.pop("hours", UNSET))

        def _parse_shards(data: object) -> Bounds | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                shards_type_0 = Bounds.from_dict(data)

                return shards_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Bounds | None | Unset, data)

        shards = _parse_shards(d.pop("shards", UNSET))

        limits_change = cls(
            waiting=waiting,
            running=running,
            hours=hours,
            shards=shards,
        )

        return limits_change
