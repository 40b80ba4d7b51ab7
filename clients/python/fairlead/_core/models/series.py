from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.series_point import SeriesPoint


T = TypeVar("T", bound="Series")


@_attrs_define
class Series:
    """What ran in each step of a time, for plots.

    Attributes:
        since_ms (int): Begin, UTC epoch ms. Default: 0.
        until_ms (int): End, UTC epoch ms. Default: 0.
        step_ms (int): How long a step is, ms: a minute, or an hour of long times. Default: 0.
        points (list[SeriesPoint]): Steps in which anything ran, in order of time.
    """

    points: list[SeriesPoint]
    since_ms: int = 0
    until_ms: int = 0
    step_ms: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        since_ms = self.since_ms

        until_ms = self.until_ms

        step_ms = self.step_ms

        points = []
        for points_item_data in self.points:
            points_item = points_item_data.to_dict()
            points.append(points_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "since_ms": since_ms,
                "until_ms": until_ms,
                "step_ms": step_ms,
                "points": points,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.series_point import SeriesPoint

        d = dict(src_dict)
        since_ms = d.pop("since_ms")

        until_ms = d.pop("until_ms")

        step_ms = d.pop("step_ms")

        points = []
        _points = d.pop("points")
        for points_item_data in _points:
            points_item = SeriesPoint.from_dict(points_item_data)

            points.append(points_item)

        series = cls(
            since_ms=since_ms,
            until_ms=until_ms,
            step_ms=step_ms,
            points=points,
        )

        series.additional_properties = d
        return series

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
