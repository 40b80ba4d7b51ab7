from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="AttemptView")


@_attrs_define
class AttemptView:
    """An earlier try of a job.

    Attributes:
        attempt (int): Which try, from 1. Default: 0.
        host (str): The host that had it. Default: ''.
        host_machine (str): compass-ci's name of `host`. Default: ''.
        job_stage (str): How far it came. Default: ''.
        job_health (str): How it ended. Default: ''.
        failure (None | str): What made it end badly.
        dispatch_ms (int): When a host got it, UTC epoch ms. Default: 0.
        end_ms (int): When it ended, UTC epoch ms. Default: 0.
        dispatch_time (str): When a host got it. Default: ''.
        end_time (str): When it ended. Default: ''.
        reason (str): Why it ended so. Default: ''.
    """

    failure: None | str
    attempt: int = 0
    host: str = ""
    host_machine: str = ""
    job_stage: str = ""
    job_health: str = ""
    dispatch_ms: int = 0
    end_ms: int = 0
    dispatch_time: str = ""
    end_time: str = ""
    reason: str = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        attempt = self.attempt

        host = self.host

        host_machine = self.host_machine

        job_stage = self.job_stage

        job_health = self.job_health

        failure: None | str
        failure = self.failure

        dispatch_ms = self.dispatch_ms

        end_ms = self.end_ms

        dispatch_time = self.dispatch_time

        end_time = self.end_time

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "attempt": attempt,
                "host": host,
                "host_machine": host_machine,
                "job_stage": job_stage,
                "job_health": job_health,
                "failure": failure,
                "dispatch_ms": dispatch_ms,
                "end_ms": end_ms,
                "dispatch_time": dispatch_time,
                "end_time": end_time,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        attempt = d.pop("attempt")

        host = d.pop("host")

        host_machine = d.pop("host_machine")

        job_stage = d.pop("job_stage")

        job_health = d.pop("job_health")

        def _parse_failure(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        failure = _parse_failure(d.pop("failure"))

        dispatch_ms = d.pop("dispatch_ms")

        end_ms = d.pop("end_ms")

        dispatch_time = d.pop("dispatch_time")

        end_time = d.pop("end_time")

        reason = d.pop("reason")

        attempt_view = cls(
            attempt=attempt,
            host=host,
            host_machine=host_machine,
            job_stage=job_stage,
            job_health=job_health,
            failure=failure,
            dispatch_ms=dispatch_ms,
            end_ms=end_ms,
            dispatch_time=dispatch_time,
            end_time=end_time,
            reason=reason,
        )

        attempt_view.additional_properties = d
        return attempt_view

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
