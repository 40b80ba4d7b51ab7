from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.outlook import Outlook
    from ..models.rule_applied import RuleApplied


T = TypeVar("T", bound="SubmitItem")


@_attrs_define
class SubmitItem:
    """One item of the answer to a submit, in the order of the request.

    Attributes:
        job_id (str): The new job's id; `"0"` when it was refused; empty when a dry run accepts it.
        message (str): Empty when accepted; else why not.
        errcode (str | Unset): compass-ci's field: empty when accepted, else the code.
        code (str | Unset): The same, in our own name.
        hint (str | Unset): What to do about a refusal, or a warning about an accepted job (no known host can run it).
        warnings (list[str] | Unset): Keys of the job that were probably meant to be fields, a sentence each.
        version (str | Unset): The scheduler's version.
        job_state (str | Unset): `submit` when accepted; `finish` of a job that has the result of another one.
        result_root (str | Unset): Where its results will be.
        submit_id (str | Unset): The submit it belongs to.
        cluster_id (str | Unset): The same for all nodes of a cluster, which one job of the request became; empty: it is
            one job.
        shard_of (str | Unset): The job that has the one result of the group that it joined; empty: it joined none.
        rerun_of (str | Unset): The job that it runs again; empty: it is new.
        reused_from (str | Unset): The job whose result it has: nothing runs for it. Empty: it runs itself.
        joined (str | Unset): The job that runs the same thing, and for whose result it waits; empty: for none.
        rule (None | RuleApplied | Unset): The submit rule that it met, also if it was refused.
        outlook (None | Outlook | Unset): Of a dry run: what the job may expect. The first job of each kind has it, of
            at most 16 kinds.
    """

    job_id: str
    message: str
    errcode: str | Unset = UNSET
    code: str | Unset = UNSET
    hint: str | Unset = UNSET
    warnings: list[str] | Unset = UNSET
    version: str | Unset = UNSET
    job_state: str | Unset = UNSET
    result_root: str | Unset = UNSET
    submit_id: str | Unset = UNSET
    cluster_id: str | Unset = UNSET
    shard_of: str | Unset = UNSET
    rerun_of: str | Unset = UNSET
    reused_from: str | Unset = UNSET
    joined: str | Unset = UNSET
    rule: None | RuleApplied | Unset = UNSET
    outlook: None | Outlook | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.outlook import Outlook
        from ..models.rule_applied import RuleApplied

        job_id = self.job_id

        message = self.message

        errcode = self.errcode

        code = self.code

        hint = self.hint

        warnings: list[str] | Unset = UNSET
        if not isinstance(self.warnings, Unset):
            warnings = self.warnings

        version = self.version

        job_state = self.job_state

        result_root = self.result_root

        submit_id = self.submit_id

        cluster_id = self.cluster_id

        shard_of = self.shard_of

        rerun_of = self.rerun_of

        reused_from = self.reused_from

        joined = self.joined

        rule: dict[str, Any] | None | Unset
        if isinstance(self.rule, Unset):
            rule = UNSET
        elif isinstance(self.rule, RuleApplied):
            rule = self.rule.to_dict()
        else:
            rule = self.rule

        outlook: dict[str, Any] | None | Unset
        if isinstance(self.outlook, Unset):
            outlook = UNSET
        elif isinstance(self.outlook, Outlook):
            outlook = self.outlook.to_dict()
        else:
            outlook = self.outlook

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "message": message,
            }
        )
        if errcode is not UNSET:
            field_dict["errcode"] = errcode
        if code is not UNSET:
            field_dict["code"] = code
        if hint is not UNSET:
            field_dict["hint"] = hint
        if warnings is not UNSET:
            field_dict["warnings"] = warnings
        if version is not UNSET:
            field_dict["version"] = version
        if job_state is not UNSET:
            field_dict["job_state"] = job_state
        if result_root is not UNSET:
            field_dict["result_root"] = result_root
        if submit_id is not UNSET:
            field_dict["submit_id"] = submit_id
        if cluster_id is not UNSET:
            field_dict["cluster_id"] = cluster_id
        if shard_of is not UNSET:
            field_dict["shard_of"] = shard_of
        if rerun_of is not UNSET:
            field_dict["rerun_of"] = rerun_of
        if reused_from is not UNSET:
            field_dict["reused_from"] = reused_from
        if joined is not UNSET:
            field_dict["joined"] = joined
        if rule is not UNSET:
            field_dict["rule"] = rule
        if outlook is not UNSET:
            field_dict["outlook"] = outlook

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.outlook import Outlook
        from ..models.rule_applied import RuleApplied

        d = dict(src_dict)
        job_id = d.pop("job_id")

        message = d.pop("message")

        errcode = d.pop("errcode", UNSET)

        code = d.pop("code", UNSET)

        hint = d.pop("hint", UNSET)

        warnings = cast(list[str], d.pop("warnings", UNSET))

        version = d.pop("version", UNSET)

        job_state = d.pop("job_state", UNSET)

        result_root = d.pop("result_root", UNSET)

        submit_id = d.pop("submit_id", UNSET)

        cluster_id = d.pop("cluster_id", UNSET)

        shard_of = d.pop("shard_of", UNSET)

        rerun_of = d.pop("rerun_of", UNSET)

        reused_from = d.pop("reused_from", UNSET)

        joined = d.pop("joined", UNSET)

        def _parse_rule(data: object) -> None | RuleApplied | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                rule_type_0 = RuleApplied.from_dict(data)

                return rule_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RuleApplied | Unset, data)

        rule = _parse_rule(d.pop("rule", UNSET))

        def _parse_outlook(data: object) -> None | Outlook | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                outlook_type_0 = Outlook.from_dict(data)

                return outlook_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Outlook | Unset, data)

        outlook = _parse_outlook(d.pop("outlook", UNSET))

        submit_item = cls(
            job_id=job_id,
            message=message,
            errcode=errcode,
            code=code,
            hint=hint,
            warnings=warnings,
            version=version,
            job_state=job_state,
            result_root=result_root,
            submit_id=submit_id,
            cluster_id=cluster_id,
            shard_of=shard_of,
            rerun_of=rerun_of,
            reused_from=reused_from,
            joined=joined,
            rule=rule,
            outlook=outlook,
        )

        submit_item.additional_properties = d
        return submit_item

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
