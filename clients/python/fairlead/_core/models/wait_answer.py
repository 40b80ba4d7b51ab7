from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.wait_answer_waited_jobs import WaitAnswerWaitedJobs


T = TypeVar("T", bound="WaitAnswer")


@_attrs_define
class WaitAnswer:
    """Which of the jobs have reached what is waited for, or cannot any more.

    Attributes:
        waited_jobs (WaitAnswerWaitedJobs): By job id: `job_stage`, `job_health`, and the fields that were asked for.
    """

    waited_jobs: WaitAnswerWaitedJobs
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        waited_jobs = self.waited_jobs.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "waited_jobs": waited_jobs,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.wait_answer_waited_jobs import WaitAnswerWaitedJobs

        d = dict(src_dict)
        waited_jobs = WaitAnswerWaitedJobs.from_dict(d.pop("waited_jobs"))

        wait_answer = cls(
            waited_jobs=waited_jobs,
        )

        wait_answer.additional_properties = d
        return wait_answer

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
