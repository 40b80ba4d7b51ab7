from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="TestHistory")


@_attrs_define
class TestHistory:
    """The history of a test in a group of hosts.

    Attributes:
        test (str): Its whole name.
        group (str): The group of the hosts that it ran on; empty: they have none.
        passed (int): How often it passed.
        failed (int): How often it failed.
        last_ms (int): When it last ran, UTC epoch ms.
        seconds (float | None | Unset): How long it takes as of late, seconds; absent: not known.
    """

    test: str
    group: str
    passed: int
    failed: int
    last_ms: int
    seconds: float | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        test = self.test

        group = self.group

        passed = self.passed

        failed = self.failed

        last_ms = self.last_ms

        seconds: float | None | Unset
        if isinstance(self.seconds, Unset):
            seconds = UNSET
        else:
            seconds = self.seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "test": test,
                "group": group,
                "passed": passed,
                "failed": failed,
                "last_ms": last_ms,
            }
        )
        if seconds is not UNSET:
            field_dict["seconds"] = seconds

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        test = d.pop("test")

        group = d.pop("group")

        passed = d.pop("passed")

        failed = d.pop("failed")

        last_ms = d.pop("last_ms")

        def _parse_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds = _parse_seconds(d.pop("seconds", UNSET))

        test_history = cls(
            test=test,
            group=group,
            passed=passed,
            failed=failed,
            last_ms=last_ms,
            seconds=seconds,
        )

        test_history.additional_properties = d
        return test_history

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
