from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="WebhookView")


@_attrs_define
class WebhookView:
    """A message to a receiver that a job names.

    Attributes:
        webhook_id (str): What the receiver knows it by, the same for each try.
        job_id (str): The job that it tells of.
        my_account (str): Whose job that is.
        field (str): The field that asks for it: `callback` or `notify`, which the account may say for its jobs.
            Default: ''.
        on (list[str]): Which events were asked for: `ended`, `failed`, `passed_again`, `failing`.
        event (str): What it tells: one of those. Until the job has ended: `ended`, or `failing` of the first failure of
            a shard.
        standing (str): `waiting` for the event, `trying`, `sent`, `dead`: given up, or `skipped`: no event came that
            was asked for.
        tries (int): How often it was tried.
        since_ms (int): When it was made, or became `sent`, `dead` or `skipped`, UTC epoch ms.
        next_ms (int | None | Unset): When it is tried again, UTC epoch ms; absent: it is not.
        problem (str | Unset): Why the receiver did not take it, or why it was skipped; empty: it was taken, or not
            tried yet.
    """

    webhook_id: str
    job_id: str
    my_account: str
    on: list[str]
    event: str
    standing: str
    tries: int
    since_ms: int
    field: str = ""
    next_ms: int | None | Unset = UNSET
    problem: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        webhook_id = self.webhook_id

        job_id = self.job_id

        my_account = self.my_account

        field = self.field

        on = self.on

        event = self.event

        standing = self.standing

        tries = self.tries

        since_ms = self.since_ms

        next_ms: int | None | Unset
        if isinstance(self.next_ms, Unset):
            next_ms = UNSET
        else:
            next_ms = self.next_ms

        problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "webhook_id": webhook_id,
                "job_id": job_id,
                "my_account": my_account,
                "field": field,
                "on": on,
                "event": event,
                "standing": standing,
                "tries": tries,
                "since_ms": since_ms,
            }
        )
        if next_ms is not UNSET:
            field_dict["next_ms"] = next_ms
        if problem is not UNSET:
            field_dict["problem"] = problem

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        webhook_id = d.pop("webhook_id")

        job_id = d.pop("job_id")

        my_account = d.pop("my_account")

        field = d.pop("field")

        on = cast(list[str], d.pop("on"))

        event = d.pop("event")

        standing = d.pop("standing")

        tries = d.pop("tries")

        since_ms = d.pop("since_ms")

        def _parse_next_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        next_ms = _parse_next_ms(d.pop("next_ms", UNSET))

        problem = d.pop("problem", UNSET)

        webhook_view = cls(
            webhook_id=webhook_id,
            job_id=job_id,
            my_account=my_account,
            field=field,
            on=on,
            event=event,
            standing=standing,
            tries=tries,
            since_ms=since_ms,
            next_ms=next_ms,
            problem=problem,
        )

        webhook_view.additional_properties = d
        return webhook_view

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
