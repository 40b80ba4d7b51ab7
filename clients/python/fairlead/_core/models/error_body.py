from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    Self,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ErrorBody")


@_attrs_define
class ErrorBody:
    """The body of every refusal.

    Attributes:
        code (Literal['bad_body'] | Literal['bad_field'] | Literal['bad_job_file'] | Literal['bad_name'] |
            Literal['bad_query'] | Literal['body_timeout'] | Literal['closed'] | Literal['conflict'] | Literal['cross_site']
            | Literal['forbidden'] | Literal['host_conflict'] | Literal['internal'] | Literal['method_not_allowed'] |
            Literal['not_found'] | Literal['outcome_unknown'] | Literal['quota'] | Literal['session_over'] |
            Literal['too_large'] | Literal['too_many'] | Literal['unauthorized'] | Literal['unavailable'] |
            Literal['unreadable_document'] | Literal['unsupported_media_type'] | Literal['wrong_stage']): Why a request was
            refused. The text is stable; clients branch on it, people read the message.
        message (str): What is wrong: the value and the limit, one sentence.
        hint (str): What to do about it.
    """

    code: Literal[
        "bad_body",
        "bad_field",
        "bad_job_file",
        "bad_name",
        "bad_query",
        "body_timeout",
        "closed",
        "conflict",
        "cross_site",
        "forbidden",
        "host_conflict",
        "internal",
        "method_not_allowed",
        "not_found",
        "outcome_unknown",
        "quota",
        "session_over",
        "too_large",
        "too_many",
        "unauthorized",
        "unavailable",
        "unreadable_document",
        "unsupported_media_type",
        "wrong_stage",
    ]
    message: str
    hint: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        code: Literal[
            "bad_body",
            "bad_field",
            "bad_job_file",
            "bad_name",
            "bad_query",
            "body_timeout",
            "closed",
            "conflict",
            "cross_site",
            "forbidden",
            "host_conflict",
            "internal",
            "method_not_allowed",
            "not_found",
            "outcome_unknown",
            "quota",
            "session_over",
            "too_large",
            "too_many",
            "unauthorized",
            "unavailable",
            "unreadable_document",
            "unsupported_media_type",
            "wrong_stage",
        ]
        code = self.code

        message = self.message

        hint = self.hint

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "code": code,
                "message": message,
                "hint": hint,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_code(
            data: object,
        ) -> Literal[
            "bad_body",
            "bad_field",
            "bad_job_file",
            "bad_name",
            "bad_query",
            "body_timeout",
            "closed",
            "conflict",
            "cross_site",
            "forbidden",
            "host_conflict",
            "internal",
            "method_not_allowed",
            "not_found",
            "outcome_unknown",
            "quota",
            "session_over",
            "too_large",
            "too_many",
            "unauthorized",
            "unavailable",
            "unreadable_document",
            "unsupported_media_type",
            "wrong_stage",
        ]:
            componentsschemas_error_code_type_0 = cast(Literal["bad_body"], data)
            if componentsschemas_error_code_type_0 != "bad_body":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_0 must match const 'bad_body', got '{componentsschemas_error_code_type_0}'"
                )
            return componentsschemas_error_code_type_0
            componentsschemas_error_code_type_1 = cast(Literal["bad_field"], data)
            if componentsschemas_error_code_type_1 != "bad_field":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_1 must match const 'bad_field', got '{componentsschemas_error_code_type_1}'"
                )
            return componentsschemas_error_code_type_1
            componentsschemas_error_code_type_2 = cast(Literal["bad_query"], data)
            if componentsschemas_error_code_type_2 != "bad_query":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_2 must match const 'bad_query', got '{componentsschemas_error_code_type_2}'"
                )
            return componentsschemas_error_code_type_2
            componentsschemas_error_code_type_3 = cast(Literal["bad_job_file"], data)
            if componentsschemas_error_code_type_3 != "bad_job_file":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_3 must match const 'bad_job_file', got '{componentsschemas_error_code_type_3}'"
                )
            return componentsschemas_error_code_type_3
            componentsschemas_error_code_type_4 = cast(Literal["bad_name"], data)
            if componentsschemas_error_code_type_4 != "bad_name":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_4 must match const 'bad_name', got '{componentsschemas_error_code_type_4}'"
                )
            return componentsschemas_error_code_type_4
            componentsschemas_error_code_type_5 = cast(Literal["unauthorized"], data)
            if componentsschemas_error_code_type_5 != "unauthorized":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_5 must match const 'unauthorized', got '{componentsschemas_error_code_type_5}'"
                )
            return componentsschemas_error_code_type_5
            componentsschemas_error_code_type_6 = cast(Literal["forbidden"], data)
            if componentsschemas_error_code_type_6 != "forbidden":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_6 must match const 'forbidden', got '{componentsschemas_error_code_type_6}'"
                )
            return componentsschemas_error_code_type_6
            componentsschemas_error_code_type_7 = cast(Literal["cross_site"], data)
            if componentsschemas_error_code_type_7 != "cross_site":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_7 must match const 'cross_site', got '{componentsschemas_error_code_type_7}'"
                )
            return componentsschemas_error_code_type_7
            componentsschemas_error_code_type_8 = cast(Literal["quota"], data)
            if componentsschemas_error_code_type_8 != "quota":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_8 must match const 'quota', got '{componentsschemas_error_code_type_8}'"
                )
            return componentsschemas_error_code_type_8
            componentsschemas_error_code_type_9 = cast(Literal["not_found"], data)
            if componentsschemas_error_code_type_9 != "not_found":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_9 must match const 'not_found', got '{componentsschemas_error_code_type_9}'"
                )
            return componentsschemas_error_code_type_9
            componentsschemas_error_code_type_10 = cast(
                Literal["method_not_allowed"], data
            )
            if componentsschemas_error_code_type_10 != "method_not_allowed":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_10 must match const 'method_not_allowed', got '{componentsschemas_error_code_type_10}'"
                )
            return componentsschemas_error_code_type_10
            componentsschemas_error_code_type_11 = cast(Literal["body_timeout"], data)
            if componentsschemas_error_code_type_11 != "body_timeout":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_11 must match const 'body_timeout', got '{componentsschemas_error_code_type_11}'"
                )
            return componentsschemas_error_code_type_11
            componentsschemas_error_code_type_12 = cast(Literal["wrong_stage"], data)
            if componentsschemas_error_code_type_12 != "wrong_stage":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_12 must match const 'wrong_stage', got '{componentsschemas_error_code_type_12}'"
                )
            return componentsschemas_error_code_type_12
            componentsschemas_error_code_type_13 = cast(Literal["conflict"], data)
            if componentsschemas_error_code_type_13 != "conflict":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_13 must match const 'conflict', got '{componentsschemas_error_code_type_13}'"
                )
            return componentsschemas_error_code_type_13
            componentsschemas_error_code_type_14 = cast(Literal["session_over"], data)
            if componentsschemas_error_code_type_14 != "session_over":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_14 must match const 'session_over', got '{componentsschemas_error_code_type_14}'"
                )
            return componentsschemas_error_code_type_14
            componentsschemas_error_code_type_15 = cast(Literal["host_conflict"], data)
            if componentsschemas_error_code_type_15 != "host_conflict":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_15 must match const 'host_conflict', got '{componentsschemas_error_code_type_15}'"
                )
            return componentsschemas_error_code_type_15
            componentsschemas_error_code_type_16 = cast(Literal["too_large"], data)
            if componentsschemas_error_code_type_16 != "too_large":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_16 must match const 'too_large', got '{componentsschemas_error_code_type_16}'"
                )
            return componentsschemas_error_code_type_16
            componentsschemas_error_code_type_17 = cast(
                Literal["unsupported_media_type"], data
            )
            if componentsschemas_error_code_type_17 != "unsupported_media_type":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_17 must match const 'unsupported_media_type', got '{componentsschemas_error_code_type_17}'"
                )
            return componentsschemas_error_code_type_17
            componentsschemas_error_code_type_18 = cast(Literal["closed"], data)
            if componentsschemas_error_code_type_18 != "closed":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_18 must match const 'closed', got '{componentsschemas_error_code_type_18}'"
                )
            return componentsschemas_error_code_type_18
            componentsschemas_error_code_type_19 = cast(Literal["too_many"], data)
            if componentsschemas_error_code_type_19 != "too_many":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_19 must match const 'too_many', got '{componentsschemas_error_code_type_19}'"
                )
            return componentsschemas_error_code_type_19
            componentsschemas_error_code_type_20 = cast(Literal["internal"], data)
            if componentsschemas_error_code_type_20 != "internal":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_20 must match const 'internal', got '{componentsschemas_error_code_type_20}'"
                )
            return componentsschemas_error_code_type_20
            componentsschemas_error_code_type_21 = cast(Literal["unavailable"], data)
            if componentsschemas_error_code_type_21 != "unavailable":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_21 must match const 'unavailable', got '{componentsschemas_error_code_type_21}'"
                )
            return componentsschemas_error_code_type_21
            componentsschemas_error_code_type_22 = cast(
                Literal["unreadable_document"], data
            )
            if componentsschemas_error_code_type_22 != "unreadable_document":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_22 must match const 'unreadable_document', got '{componentsschemas_error_code_type_22}'"
                )
            return componentsschemas_error_code_type_22
            componentsschemas_error_code_type_23 = cast(
                Literal["outcome_unknown"], data
            )
            if componentsschemas_error_code_type_23 != "outcome_unknown":
                raise ValueError(
                    f"/components/schemas/ErrorCode_type_23 must match const 'outcome_unknown', got '{componentsschemas_error_code_type_23}'"
                )
            return componentsschemas_error_code_type_23

        code = _parse_code(d.pop("code"))

        message = d.pop("message")

        hint = d.pop("hint")

        error_body = cls(
            code=code,
            message=message,
            hint=hint,
        )

        error_body.additional_properties = d
        return error_body

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
