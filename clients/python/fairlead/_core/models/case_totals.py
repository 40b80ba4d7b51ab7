from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="CaseTotals")


@_attrs_define
class CaseTotals:
    """How many test cases had which outcome, and the first that failed.

    Attributes:
        passed (int): Cases that passed.
        failed (int): Cases that failed, errors included.
        skipped (int): Cases that were skipped.
        first_failures (list[str] | Unset): The first three that failed, at most 100 bytes each; of a job with shards
            with the shard's number before it.
    """

    passed: int
    failed: int
    skipped: int
    first_failures: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        passed = self.passed

        failed = self.failed

        skipped = self.skipped

        first_failures: list[str] | Unset = UNSET
        if not isinstance(self.first_failures, Unset):
            first_failures = self.first_failures

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "passed": passed,
                "failed": failed,
                "skipped": skipped,
            }
        )
        if first_failures is not UNSET:
            field_dict["first_failures"] = first_failures

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        passed = d.pop("passed")

        failed = d.pop("failed")

        skipped = d.pop("skipped")

        first_failures = cast(list[str], d.pop("first_failures", UNSET))

        case_totals = cls(
            passed=passed,
            failed=failed,
            skipped=skipped,
            first_failures=first_failures,
        )

        case_totals.additional_properties = d
        return case_totals

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
