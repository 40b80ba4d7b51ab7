from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.job_group import JobGroup
    from ..models.job_summary import JobSummary


T = TypeVar("T", bound="JobList")


@_attrs_define
class JobList:
    """A page of jobs. Query: `stage`, `health`, `account`, `queue`, `host`, `suite`, `submit_id`, `group_id`,
    `tbox_group` (each a comma list), `signature` (`*` only at its end), `since_ms`, `until_ms`, `order`
    (`newest`|`oldest`), `after`, `limit`.

        Attributes:
            jobs (list[JobSummary]): The jobs.
            total (int): How many in all.
            groups (list[JobGroup] | Unset): With `group_by`: how many there are with each value, at most 1,000 values; no
                jobs are listed then. Most jobs come first; of submits:
                the newest.
            unsearched (int | None | Unset): Of a search by `kv`: jobs that match all else and are not searched, because an
                older version stored them.
            next_ (None | str | Unset): Give this as `after` for the next page; absent on the last.
    """

    jobs: list[JobSummary]
    total: int
    groups: list[JobGroup] | Unset = UNSET
    unsearched: int | None | Unset = UNSET
    next_: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        jobs = []
        for jobs_item_data in self.jobs:
            jobs_item = jobs_item_data.to_dict()
            jobs.append(jobs_item)

        total = self.total

        groups: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.groups, Unset):
            groups = []
            for groups_item_data in self.groups:
                groups_item = groups_item_data.to_dict()
                groups.append(groups_item)

        unsearched: int | None | Unset
        if isinstance(self.unsearched, Unset):
            unsearched = UNSET
        else:
            unsearched = self.unsearched

        next_: None | str | Unset
        if isinstance(self.next_, Unset):
            next_ = UNSET
        else:
            next_ = self.next_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "jobs": jobs,
                "total": total,
            }
        )
        if groups is not UNSET:
            field_dict["groups"] = groups
        if unsearched is not UNSET:
            field_dict["unsearched"] = unsearched
        if next_ is not UNSET:
            field_dict["next"] = next_

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.job_group import JobGroup
        from ..models.job_summary import JobSummary

        d = dict(src_dict)
        jobs = []
        _jobs = d.pop("jobs")
        for jobs_item_data in _jobs:
            jobs_item = JobSummary.from_dict(jobs_item_data)

            jobs.append(jobs_item)

        total = d.pop("total")

        _groups = d.pop("groups", UNSET)
        groups: list[JobGroup] | Unset = UNSET
        if _groups is not UNSET:
            groups = []
            for groups_item_data in _groups:
                groups_item = JobGroup.from_dict(groups_item_data)

                groups.append(groups_item)

        def _parse_unsearched(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        unsearched = _parse_unsearched(d.pop("unsearched", UNSET))

        def _parse_next_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        next_ = _parse_next_(d.pop("next", UNSET))

        job_list = cls(
            jobs=jobs,
            total=total,
            groups=groups,
            unsearched=unsearched,
            next_=next_,
        )

        job_list.additional_properties = d
        return job_list

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
