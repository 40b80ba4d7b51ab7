from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.tables import Tables


T = TypeVar("T", bound="Snapshot")


@_attrs_define
class Snapshot:
    """The lab as it is, made once a second while anybody looks.

    Attributes:
        run (str): The run of the replica that made it. Numbers of two runs cannot be compared. Default: ''.
        seq (int): Its number in that run. Default: 0.
        at_ms (int): When it was made, UTC epoch ms. Default: 0.
        tables (Tables): The rows of a snapshot, by name.
    """

    tables: Tables
    run: str = ""
    seq: int = 0
    at_ms: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        run = self.run

        seq = self.seq

        at_ms = self.at_ms

        tables = self.tables.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "run": run,
                "seq": seq,
                "at_ms": at_ms,
                "tables": tables,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.tables import Tables

        d = dict(src_dict)
        run = d.pop("run")

        seq = d.pop("seq")

        at_ms = d.pop("at_ms")

        tables = Tables.from_dict(d.pop("tables"))

        snapshot = cls(
            run=run,
            seq=seq,
            at_ms=at_ms,
            tables=tables,
        )

        snapshot.additional_properties = d
        return snapshot

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
