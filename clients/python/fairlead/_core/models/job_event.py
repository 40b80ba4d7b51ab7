from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="JobEvent")


@_attrs_define
class JobEvent:
    """A change of a job, in the stream of a submit's events.

    Attributes:
        job_id (str): The job.
        job_stage (str): How far it is now.
        job_health (str): How it ended; `unknown`: it has not ended.
        attempt (int): Which try.
        at_ms (int): When it changed, UTC epoch ms.
        suite (str): Its suite.
        params (str | Unset): Short parameters.
        host (str | Unset): The host that has or had it.
        reason (str | Unset): Why it is as it is.
        result_root (str | Unset): Where its results are.
    """

    job_id: str
    job_stage: str
    job_health: str
    attempt: int
    at_ms: int
    suite: str
    params: str | Unset = UNSET
    host: str | Unset = UNSET
    reason: str | Unset = UNSET
    result_root: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_id = self.job_id

        job_stage = self.job_stage

        job_health = self.job_health

        attempt = self.attempt

        at_ms = self.at_ms

        suite = self.suite

        params = self.params

        host = self.host

        reason = self.reason

        result_root = self.result_root

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "job_stage": job_stage,
                "job_health": job_health,
                "attempt": attempt,
                "at_ms": at_ms,
                "suite": suite,
            }
        )
        if params is not UNSET:
            field_dict["params"] = params
        if host is not UNSET:
            field_dict["host"] = host
        if reason is not UNSET:
            field_dict["reason"] = reason
        if result_root is not UNSET:
            field_dict["result_root"] = result_root

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        job_id = d.pop("job_id")

        job_stage = d.pop("job_stage")

        job_health = d.pop("job_health")

        attempt = d.pop("attempt")

        at_ms = d.pop("at_ms")

        suite = d.pop("suite")

        params = d.pop("params", UNSET)

        host = d.pop("host", UNSET)

        reason = d.pop("reason", UNSET)

        result_root = d.pop("result_root", UNSET)

        job_event = cls(
            job_id=job_id,
            job_stage=job_stage,
            job_health=job_health,
            attempt=attempt,
            at_ms=at_ms,
            suite=suite,
            params=params,
            host=host,
            reason=reason,
            result_root=result_root,
        )

        job_event.additional_properties = d
        return job_event

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
