from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.store_problem import StoreProblem


T = TypeVar("T", bound="StoreRow")


@_attrs_define
class StoreRow:
    """How the store is.

    Attributes:
        name (str): Its name and version. Default: ''.
        well (bool): Whether it answers reads and takes writes. Default: False.
        reads (None | StoreProblem | Unset): Why it answers no reads; absent: it does.
        writes (None | StoreProblem | Unset): Why it takes no writes; absent: it does.
    """

    name: str = ""
    well: bool = False
    reads: None | StoreProblem | Unset = UNSET
    writes: None | StoreProblem | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.store_problem import StoreProblem

        name = self.name

        well = self.well

        reads: dict[str, Any] | None | Unset
        if isinstance(self.reads, Unset):
            reads = UNSET
        elif isinstance(self.reads, StoreProblem):
            reads = self.reads.to_dict()
        else:
            reads = self.reads

        writes: dict[str, Any] | None | Unset
        if isinstance(self.writes, Unset):
            writes = UNSET
        elif isinstance(self.writes, StoreProblem):
            writes = self.writes.to_dict()
        else:
            writes = self.writes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "well": well,
            }
        )
        if reads is not UNSET:
            field_dict["reads"] = reads
        if writes is not UNSET:
            field_dict["writes"] = writes

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.store_problem import StoreProblem

        d = dict(src_dict)
        name = d.pop("name")

        well = d.pop("well")

        def _parse_reads(data: object) -> None | StoreProblem | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                reads_type_0 = StoreProblem.from_dict(data)

                return reads_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StoreProblem | Unset, data)

        reads = _parse_reads(d.pop("reads", UNSET))

        def _parse_writes(data: object) -> None | StoreProblem | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                writes_type_0 = StoreProblem.from_dict(data)

                return writes_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StoreProblem | Unset, data)

        writes = _parse_writes(d.pop("writes", UNSET))

        store_row = cls(
            name=name,
            well=well,
            reads=reads,
            writes=writes,
        )

        store_row.additional_properties = d
        return store_row

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
