from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.submit_rule_then import SubmitRuleThen


T = TypeVar("T", bound="SubmitRule")


@_attrs_define
class SubmitRule:
    """A rule: a submitted job that meets its condition gets new values of some fields.

    Attributes:
        name (str): Its name, different from those of the others.
        if_ (str): The condition, such as `suite ~ 'lkp.*' and account == 'ci'`, at most 1,000 bytes.
        then (SubmitRuleThen): New values of `queue`, `priority`, `need_memory`, `need_cpus`, `timeout`, `tags` or
            `deadline`, as job files have
            them.
    """

    name: str
    if_: str
    then: SubmitRuleThen

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        if_ = self.if_

        then = self.then.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "if": if_,
                "then": then,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.submit_rule_then import SubmitRuleThen

        d = dict(src_dict)
        name = d.pop("name")

        if_ = d.pop("if")

        then = SubmitRuleThen.from_dict(d.pop("then"))

        submit_rule = cls(
            name=name,
            if_=if_,
            then=then,
        )

        return submit_rule
