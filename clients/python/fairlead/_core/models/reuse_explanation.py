from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.nearest_run import NearestRun
    from ..models.reuse_explanation_parts import ReuseExplanationParts


T = TypeVar("T", bound="ReuseExplanation")


@_attrs_define
class ReuseExplanation:
    """Whether a job has the result of another one, and why or why not.

    Attributes:
        job_id (str): The job. Default: ''.
        verdict (str): `reused`, `joined` (it waited for the result), `audit` (it checks one), `runs` or `ran` (itself),
            `waits` (for other
            jobs), `ended` (before it ran), `shards` (each has an answer of its own), or `never` (it does not reuse).
            Default: ''.
        summary (str): The answer in one sentence. Default: ''.
        within_s (int): How old a result may be, seconds; 0: no result will do. Default: 0.
        reused_from (str | Unset): The job whose result it has.
        joined (str | Unset): The job that ran the same thing when it was submitted.
        audit_of (str | Unset): The job whose result it checks.
        key (str | Unset): The key of what it runs; empty: it has none, or not yet.
        parts (ReuseExplanationParts | Unset): The hash of each part of the key: `inputs`, `script`, `parameters`,
            `image`, `shards`, `requirements`, `salt`.
        nearest (NearestRun | None | Unset): The earlier job of the same account and suite that ran the most similar
            thing.
    """

    job_id: str = ""
    verdict: str = ""
    summary: str = ""
    within_s: int = 0
    reused_from: str | Unset = UNSET
    joined: str | Unset = UNSET
    audit_of: str | Unset = UNSET
    key: str | Unset = UNSET
    parts: ReuseExplanationParts | Unset = UNSET
    nearest: NearestRun | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.nearest_run import NearestRun

        job_id = self.job_id

        verdict = self.verdict

        summary = self.summary

        within_s = self.within_s

        reused_from = self.reused_from

        joined = self.joined

        audit_of = self.audit_of

        key = self.key

        parts: dict[str, Any] | Unset = UNSET
        if not isinstance(self.parts, Unset):
            parts = self.parts.to_dict()

        nearest: dict[str, Any] | None | Unset
        if isinstance(self.nearest, Unset):
            nearest = UNSET
        elif isinstance(self.nearest, NearestRun):
            nearest = self.nearest.to_dict()
        else:
            nearest = self.nearest

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "verdict": verdict,
                "summary": summary,
                "within_s": within_s,
            }
        )
        if reused_from is not UNSET:
            field_dict["reused_from"] = reused_from
        if joined is not UNSET:
            field_dict["joined"] = joined
        if audit_of is not UNSET:
            field_dict["audit_of"] = audit_of
        if key is not UNSET:
            field_dict["key"] = key
        if parts is not UNSET:
            field_dict["parts"] = parts
        if nearest is not UNSET:
            field_dict["nearest"] = nearest

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.nearest_run import NearestRun
        from ..models.reuse_explanation_parts import ReuseExplanationParts

        d = dict(src_dict)
        job_id = d.pop("job_id")

        verdict = d.pop("verdict")

        summary = d.pop("summary")

        within_s = d.pop("within_s")

        reused_from = d.pop("reused_from", UNSET)

        joined = d.pop("joined", UNSET)

        audit_of = d.pop("audit_of", UNSET)

        key = d.pop("key", UNSET)

        _parts = d.pop("parts", UNSET)
        parts: ReuseExplanationParts | Unset
        if isinstance(_parts, Unset):
            parts = UNSET
        else:
            parts = ReuseExplanationParts.from_dict(_parts)

        def _parse_nearest(data: object) -> NearestRun | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                nearest_type_0 = NearestRun.from_dict(data)

                return nearest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(NearestRun | None | Unset, data)

        nearest = _parse_nearest(d.pop("nearest", UNSET))

        reuse_explanation = cls(
            job_id=job_id,
            verdict=verdict,
            summary=summary,
            within_s=within_s,
            reused_from=reused_from,
            joined=joined,
            audit_of=audit_of,
            key=key,
            parts=parts,
            nearest=nearest,
        )

        reuse_explanation.additional_properties = d
        return reuse_explanation

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
