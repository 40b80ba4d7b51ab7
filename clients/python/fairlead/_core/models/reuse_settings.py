from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.suite_reuse import SuiteReuse


T = TypeVar("T", bound="ReuseSettings")


@_attrs_define
class ReuseSettings:
    """How the lab reuses results.

    Attributes:
        salt (str | Unset): Any text that is part of all keys, at most 256 bytes: with another one, nothing that ran
            before is reused.
        audit_percent (int | None | Unset): Of a hundred jobs that could take a result, how many run all the same, so
            that results are compared: 0 to 100.
            Absent: 1.
        performance (list[str] | Unset): Suites that measure: their jobs always run. Names, with `*` and `?`, at most
            100.
        suites (list[SuiteReuse] | Unset): What holds for jobs that say nothing of `reuse`: the first one whose suite
            fits. At most 100.
    """

    salt: str | Unset = UNSET
    audit_percent: int | None | Unset = UNSET
    performance: list[str] | Unset = UNSET
    suites: list[SuiteReuse] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        salt = self.salt

        audit_percent: int | None | Unset
        if isinstance(self.audit_percent, Unset):
            audit_percent = UNSET
        else:
            audit_percent = self.audit_percent

        performance: list[str] | Unset = UNSET
        if not isinstance(self.performance, Unset):
            performance = self.performance

        suites: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.suites, Unset):
            suites = []
            for suites_item_data in self.suites:
                suites_item = suites_item_data.to_dict()
                suites.append(suites_item)

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if salt is not UNSET:
            field_dict["salt"] = salt
        if audit_percent is not UNSET:
            field_dict["audit_percent"] = audit_percent
        if performance is not UNSET:
            field_dict["performance"] = performance
        if suites is not UNSET:
            field_dict["suites"] = suites

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.suite_reuse import SuiteReuse

        d = dict(src_dict)
        salt = d.pop("salt", UNSET)

        def _parse_audit_percent(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        audit_percent = _parse_audit_percent(d.pop("audit_percent", UNSET))

        performance = cast(list[str], d.pop("performance", UNSET))

        _suites = d.pop("suites", UNSET)
        suites: list[SuiteReuse] | Unset = UNSET
        if _suites is not UNSET:
            suites = []
            for suites_item_data in _suites:
                suites_item = SuiteReuse.from_dict(suites_item_data)

                suites.append(suites_item)

        reuse_settings = cls(
            salt=salt,
            audit_percent=audit_percent,
            performance=performance,
            suites=suites,
        )

        return reuse_settings
