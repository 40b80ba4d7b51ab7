from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.usage_row import UsageRow


T = TypeVar("T", bound="UsageReport")


@_attrs_define
class UsageReport:
    """What ran between two times.

    Attributes:
        by (str): What the rows are: `account`, `queue`, `host`, `suite` or `class`.
        since_ms (int): Begin, UTC epoch ms; of long times rounded down to the hour.
        until_ms (int): End, UTC epoch ms.
        rows (list[UsageRow]): Most busy first. Of each minute, the names with the fewest jobs are summed up as
            `(others)`.
    """

    by: str
    since_ms: int
    until_ms: int
    rows: list[UsageRow]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        by = self.by

        since_ms = self.since_ms

        until_ms = self.until_ms

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "by": by,
                "since_ms": since_ms,
                "until_ms": until_ms,
                "rows": rows,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.usage_row import UsageRow

        d = dict(src_dict)
        by = d.pop("by")

        since_ms = d.pop("since_ms")

        until_ms = d.pop("until_ms")

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = UsageRow.from_dict(rows_item_data)

            rows.append(rows_item)

        usage_report = cls(
            by=by,
            since_ms=since_ms,
            until_ms=until_ms,
            rows=rows,
        )

        usage_report.additional_properties = d
        return usage_report

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
