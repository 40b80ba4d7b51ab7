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
        content_mb (Bounds | None | Unset): Of an account: MB of its inputs and outputs together.
        content_day_mb (Bounds | None | Unset): Of an account: MB of inputs and outputs put within 24 hours that it
            still has.
    """

    waiting: Bounds | None | Unset = UNSET
    running: Bounds | None | Unset = UNSET
    hours: Bounds | None | Unset = UNSET
    shards: Bounds | None | Unset = UNSET
    content_mb: Bounds | None | Unset = UNSET
    content_day_mb: Bounds | None | Unset = UNSET

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

        content_mb: dict[str, Any] | None | Unset
        if isinstance(self.content_mb, Unset):
            content_mb = UNSET
        elif isinstance(self.content_mb, Bounds):
            content_mb = self.content_mb.to_dict()
        else:
            content_mb = self.content_mb

        content_day_mb: dict[str, Any] | None | Unset
        if isinstance(self.content_day_mb, Unset):
            content_day_mb = UNSET
        elif isinstance(self.content_day_mb, Bounds):
            content_day_mb = self.content_day_mb.to_dict()
        else:
            content_day_mb = self.content_day_mb

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
        if content_mb is not UNSET:
            field_dict["content_mb"] = content_mb
        if content_day_mb is not UNSET:
            field_dict["content_day_mb"] = content_day_mb

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

        def _parse_content_mb(data: object) -> Bounds | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                content_mb_type_0 = Bounds.from_dict(data)

                return content_mb_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Bounds | None | Unset, data)

        content_mb = _parse_content_mb(d.pop("content_mb", UNSET))

        def _parse_content_day_mb(data: object) -> Bounds | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                content_day_mb_type_0 = Bounds.from_dict(data)

                return content_day_mb_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Bounds | None | Unset, data)

        content_day_mb = _parse_content_day_mb(d.pop("content_day_mb", UNSET))

        limits_change = cls(
            waiting=waiting,
            running=running,
            hours=hours,
            shards=shards,
            content_mb=content_mb,
            content_day_mb=content_day_mb,
        )

        return limits_change
