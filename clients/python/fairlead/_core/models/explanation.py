from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.host_verdict import HostVerdict


T = TypeVar("T", bound="Explanation")


@_attrs_define
class Explanation:
    """Why a job waits, or where it is.

    Attributes:
        job_id (str): The job.
        job_stage (str): How far it is.
        summary (str): The answer in one sentence.
        reasons (list[str]): What else is known, one sentence a line, most important first.
        hosts (list[HostVerdict]): For each host that was looked at: whether it could run the job, and what it lacks.
        hosts_more (int): How many more hosts there are than `hosts` shows. Default: 0.
    """

    job_id: str
    job_stage: str
    summary: str
    reasons: list[str]
    hosts: list[HostVerdict]
    hosts_more: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_id = self.job_id

        job_stage = self.job_stage

        summary = self.summary

        reasons = self.reasons

        hosts = []
        for hosts_item_data in self.hosts:
            hosts_item = hosts_item_data.to_dict()
            hosts.append(hosts_item)

        hosts_more = self.hosts_more

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "job_stage": job_stage,
                "summary": summary,
                "reasons": reasons,
                "hosts": hosts,
                "hosts_more": hosts_more,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.host_verdict import HostVerdict

        d = dict(src_dict)
        job_id = d.pop("job_id")

        job_stage = d.pop("job_stage")

        summary = d.pop("summary")

        reasons = cast(list[str], d.pop("reasons"))

        hosts = []
        _hosts = d.pop("hosts")
        for hosts_item_data in _hosts:
            hosts_item = HostVerdict.from_dict(hosts_item_data)

            hosts.append(hosts_item)

        hosts_more = d.pop("hosts_more")

        explanation = cls(
            job_id=job_id,
            job_stage=job_stage,
            summary=summary,
            reasons=reasons,
            hosts=hosts,
            hosts_more=hosts_more,
        )

        explanation.additional_properties = d
        return explanation

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
