from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.leaving_job import LeavingJob


T = TypeVar("T", bound="EmptiesView")


@_attrs_define
class EmptiesView:
    """When a closed host is empty.

    Attributes:
        jobs (list[LeavingJob]): Its jobs, those that stay longest first.
        words (str): The same in one sentence.
        expected_ms (int | None | Unset): When the last one ends, as far as is known of such jobs, UTC epoch ms; absent:
            nothing is known of one.
        latest_ms (int | None | Unset): When the last one is over by its time limits, UTC epoch ms; absent: one has no
            limit.
    """

    jobs: list[LeavingJob]
    words: str
    expected_ms: int | None | Unset = UNSET
    latest_ms: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        jobs = []
        for jobs_item_data in self.jobs:
            jobs_item = jobs_item_data.to_dict()
            jobs.append(jobs_item)

        words = self.words

        expected_ms: int | None | Unset
        if isinstance(self.expected_ms, Unset):
            expected_ms = UNSET
        else:
            expected_ms = self.expected_ms

        latest_ms: int | None | Unset
        if isinstance(self.latest_ms, Unset):
            latest_ms = UNSET
        else:
            latest_ms = self.latest_ms

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "jobs": jobs,
                "words": words,
            }
        )
        if expected_ms is not UNSET:
            field_dict["expected_ms"] = expected_ms
        if latest_ms is not UNSET:
            field_dict["latest_ms"] = latest_ms

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.leaving_job import LeavingJob

        d = dict(src_dict)
        jobs = []
        _jobs = d.pop("jobs")
        for jobs_item_data in _jobs:
            jobs_item = LeavingJob.from_dict(jobs_item_data)

            jobs.append(jobs_item)

        words = d.pop("words")

        def _parse_expected_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        expected_ms = _parse_expected_ms(d.pop("expected_ms", UNSET))

        def _parse_latest_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        latest_ms = _parse_latest_ms(d.pop("latest_ms", UNSET))

        empties_view = cls(
            jobs=jobs,
            words=words,
            expected_ms=expected_ms,
            latest_ms=latest_ms,
        )

        empties_view.additional_properties = d
        return empties_view

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
