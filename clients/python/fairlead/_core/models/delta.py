from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.changed_tables import ChangedTables


T = TypeVar("T", bound="Delta")


@_attrs_define
class Delta:
    """What changed since the event before, in the stream of `GET /scheduler/v1/live`.

    Attributes:
        run (str): See [`Snapshot::run`]. Default: ''.
        seq (int): See [`Snapshot::seq`]. Default: 0.
        at_ms (int): When it was made, UTC epoch ms. Default: 0.
        tables (ChangedTables): Rows that changed; null: it is gone.
        jobs (list[str]): Jobs that changed, at most 200.
        jobs_more (int): How many more jobs changed, at least. Default: 0.
    """

    tables: ChangedTables
    jobs: list[str]
    run: str = ""
    seq: int = 0
    at_ms: int = 0
    jobs_more: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        run = self.run

        seq = self.seq

        at_ms = self.at_ms

        tables = self.tables.to_dict()

        jobs = self.jobs

        jobs_more = self.jobs_more

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "run": run,
                "seq": seq,
                "at_ms": at_ms,
                "tables": tables,
                "jobs": jobs,
                "jobs_more": jobs_more,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.changed_tables import ChangedTables

        d = dict(src_dict)
        run = d.pop("run")

        seq = d.pop("seq")

        at_ms = d.pop("at_ms")

        tables = ChangedTables.from_dict(d.pop("tables"))

        jobs = cast(list[str], d.pop("jobs"))

        jobs_more = d.pop("jobs_more")

        delta = cls(
            run=run,
            seq=seq,
            at_ms=at_ms,
            tables=tables,
            jobs=jobs,
            jobs_more=jobs_more,
        )

        delta.additional_properties = d
        return delta

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
