from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.timer_view import TimerView


T = TypeVar("T", bound="TimerList")


@_attrs_define
class TimerList:
    """A page of timers.

    Attributes:
        timers (list[TimerView]): By account and name.
        total (int): How many there are. Default: 0.
        next_ (None | str | Unset): To be sent as `after` for the next page; none: this is the last one.
    """

    timers: list[TimerView]
    total: int = 0
    next_: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        timers = []
        for timers_item_data in self.timers:
            timers_item = timers_item_data.to_dict()
            timers.append(timers_item)

        total = self.total

        next_: None | str | Unset
        if isinstance(self.next_, Unset):
            next_ = UNSET
        else:
            next_ = self.next_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "timers": timers,
                "total": total,
            }
        )
        if next_ is not UNSET:
            field_dict["next"] = next_

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.timer_view import TimerView

        d = dict(src_dict)
        timers = []
        _timers = d.pop("timers")
        for timers_item_data in _timers:
            timers_item = TimerView.from_dict(timers_item_data)

            timers.append(timers_item)

        total = d.pop("total")

        def _parse_next_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        next_ = _parse_next_(d.pop("next", UNSET))

        timer_list = cls(
            timers=timers,
            total=total,
            next_=next_,
        )

        timer_list.additional_properties = d
        return timer_list

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
