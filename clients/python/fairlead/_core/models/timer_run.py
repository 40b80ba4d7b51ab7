from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="TimerRun")


@_attrs_define
class TimerRun:
    """A run of a timer.

    Attributes:
        due_time (str): When it was due, UTC. Default: ''.
        due_ms (int): The same, UTC epoch ms. Default: 0.
        job_id (str): Its job. Default: ''.
    """

    due_time: str = ""
    due_ms: int = 0
    job_id: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        due_time = self.due_time

        due_ms = self.due_ms

        job_id = self.job_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "due_time": due_time,
                "due_ms": due_ms,
                "job_id": job_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        due_time = d.pop("due_time")

        due_ms = d.pop("due_ms")

        job_id = d.pop("job_id")

        timer_run = cls(
            due_time=due_time,
            due_ms=due_ms,
            job_id=job_id,
        )

        timer_run.additional_properties = d
        return timer_run

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
