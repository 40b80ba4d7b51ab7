from __future__ import annotations

from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Self,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.preview_failure import PreviewFailure
    from ..models.preview_item import PreviewItem
    from ..models.preview_share import PreviewShare


T = TypeVar("T", bound="Preview")


@_attrs_define
class Preview:
    """What an action will touch, or has touched.

    Attributes:
        preview_id (str): Its id. Default: ''.
        action (Literal['cancel'] | Literal['change'] | Literal['cordon'] | Literal['drain'] | Literal['hold'] |
            Literal['pause_lab'] | Literal['pause_queue'] | Literal['release'] | Literal['rerun'] | Literal['reserve'] |
            Literal['resume_lab'] | Literal['resume_queue'] | Literal['terminate'] | Literal['uncordon'] |
            Literal['unreserve'] | Literal['weights']): What is to be done.
        by (str): Who asked. Default: ''.
        made_ms (int): When it was made, UTC epoch ms. Default: 0.
        expires_ms (int): Until when it can be run, UTC epoch ms. Default: 0.
        sentence (str): What it does, in one sentence. Default: ''.
        total (int): How many jobs, hosts or queues it touches. Default: 0.
        items (list[PreviewItem]): The first 200 of them.
        items_more (int): How many more there are. Default: 0.
        left_out (list[PreviewFailure]): The first 200 that were asked for and cannot be touched.
        left_out_more (int): How many more there are. Default: 0.
        state (Literal['done'] | Literal['expired'] | Literal['previewed'] | Literal['running']): How far a preview is.
        done (int): How many were tried, those of `failed` among them. Default: 0.
        failed (list[PreviewFailure]): Those that were not changed, and why.
        shares (list[PreviewShare] | Unset): The shares of queues that follow, for weights.
    """

    action: Literal[
        "cancel",
        "change",
        "cordon",
        "drain",
        "hold",
        "pause_lab",
        "pause_queue",
        "release",
        "rerun",
        "reserve",
        "resume_lab",
        "resume_queue",
        "terminate",
        "uncordon",
        "unreserve",
        "weights",
    ]
    items: list[PreviewItem]
    left_out: list[PreviewFailure]
    state: Literal["done", "expired", "previewed", "running"]
    failed: list[PreviewFailure]
    preview_id: str = ""
    by: str = ""
    made_ms: int = 0
    expires_ms: int = 0
    sentence: str = ""
    total: int = 0
    items_more: int = 0
    left_out_more: int = 0
    done: int = 0
    shares: list[PreviewShare] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        preview_id = self.preview_id

        action: Literal[
            "cancel",
            "change",
            "cordon",
            "drain",
            "hold",
            "pause_lab",
            "pause_queue",
            "release",
            "rerun",
            "reserve",
            "resume_lab",
            "resume_queue",
            "terminate",
            "uncordon",
            "unreserve",
            "weights",
        ]
        action = self.action

        by = self.by

        made_ms = self.made_ms

        expires_ms = self.expires_ms

        sentence = self.sentence

        total = self.total

        items = []
        for items_item_data in self.items:
            items_item = items_item_data.to_dict()
            items.append(items_item)

        items_more = self.items_more

        left_out = []
        for left_out_item_data in self.left_out:
            left_out_item = left_out_item_data.to_dict()
            left_out.append(left_out_item)

        left_out_more = self.left_out_more

        state: Literal["done", "expired", "previewed", "running"]
        state = self.state

        done = self.done

        failed = []
        for failed_item_data in self.failed:
            failed_item = failed_item_data.to_dict()
            failed.append(failed_item)

        shares: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.shares, Unset):
            shares = []
            for shares_item_data in self.shares:
                shares_item = shares_item_data.to_dict()
                shares.append(shares_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "preview_id": preview_id,
                "action": action,
                "by": by,
                "made_ms": made_ms,
                "expires_ms": expires_ms,
                "sentence": sentence,
                "total": total,
                "items": items,
                "items_more": items_more,
                "left_out": left_out,
                "left_out_more": left_out_more,
                "state": state,
                "done": done,
                "failed": failed,
            }
        )
        if shares is not UNSET:
            field_dict["shares"] = shares

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.preview_failure import PreviewFailure
        from ..models.preview_item import PreviewItem
        from ..models.preview_share import PreviewShare

        d = dict(src_dict)
        preview_id = d.pop("preview_id")

        def _parse_action(
            data: object,
        ) -> Literal[
            "cancel",
            "change",
            "cordon",
            "drain",
            "hold",
            "pause_lab",
            "pause_queue",
            "release",
            "rerun",
            "reserve",
            "resume_lab",
            "resume_queue",
            "terminate",
            "uncordon",
            "unreserve",
            "weights",
        ]:
            componentsschemas_bulk_action_type_0 = cast(Literal["cancel"], data)
            if componentsschemas_bulk_action_type_0 != "cancel":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_0 must match const 'cancel', got '{componentsschemas_bulk_action_type_0}'"
                )
            return componentsschemas_bulk_action_type_0
            componentsschemas_bulk_action_type_1 = cast(Literal["terminate"], data)
            if componentsschemas_bulk_action_type_1 != "terminate":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_1 must match const 'terminate', got '{componentsschemas_bulk_action_type_1}'"
                )
            return componentsschemas_bulk_action_type_1
            componentsschemas_bulk_action_type_2 = cast(Literal["rerun"], data)
            if componentsschemas_bulk_action_type_2 != "rerun":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_2 must match const 'rerun', got '{componentsschemas_bulk_action_type_2}'"
                )
            return componentsschemas_bulk_action_type_2
            componentsschemas_bulk_action_type_3 = cast(Literal["change"], data)
            if componentsschemas_bulk_action_type_3 != "change":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_3 must match const 'change', got '{componentsschemas_bulk_action_type_3}'"
                )
            return componentsschemas_bulk_action_type_3
            componentsschemas_bulk_action_type_4 = cast(Literal["hold"], data)
            if componentsschemas_bulk_action_type_4 != "hold":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_4 must match const 'hold', got '{componentsschemas_bulk_action_type_4}'"
                )
            return componentsschemas_bulk_action_type_4
            componentsschemas_bulk_action_type_5 = cast(Literal["release"], data)
            if componentsschemas_bulk_action_type_5 != "release":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_5 must match const 'release', got '{componentsschemas_bulk_action_type_5}'"
                )
            return componentsschemas_bulk_action_type_5
            componentsschemas_bulk_action_type_6 = cast(Literal["cordon"], data)
            if componentsschemas_bulk_action_type_6 != "cordon":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_6 must match const 'cordon', got '{componentsschemas_bulk_action_type_6}'"
                )
            return componentsschemas_bulk_action_type_6
            componentsschemas_bulk_action_type_7 = cast(Literal["drain"], data)
            if componentsschemas_bulk_action_type_7 != "drain":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_7 must match const 'drain', got '{componentsschemas_bulk_action_type_7}'"
                )
            return componentsschemas_bulk_action_type_7
            componentsschemas_bulk_action_type_8 = cast(Literal["uncordon"], data)
            if componentsschemas_bulk_action_type_8 != "uncordon":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_8 must match const 'uncordon', got '{componentsschemas_bulk_action_type_8}'"
                )
            return componentsschemas_bulk_action_type_8
            componentsschemas_bulk_action_type_9 = cast(Literal["reserve"], data)
            if componentsschemas_bulk_action_type_9 != "reserve":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_9 must match const 'reserve', got '{componentsschemas_bulk_action_type_9}'"
                )
            return componentsschemas_bulk_action_type_9
            componentsschemas_bulk_action_type_10 = cast(Literal["unreserve"], data)
            if componentsschemas_bulk_action_type_10 != "unreserve":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_10 must match const 'unreserve', got '{componentsschemas_bulk_action_type_10}'"
                )
            return componentsschemas_bulk_action_type_10
            componentsschemas_bulk_action_type_11 = cast(Literal["pause_queue"], data)
            if componentsschemas_bulk_action_type_11 != "pause_queue":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_11 must match const 'pause_queue', got '{componentsschemas_bulk_action_type_11}'"
                )
            return componentsschemas_bulk_action_type_11
            componentsschemas_bulk_action_type_12 = cast(Literal["resume_queue"], data)
            if componentsschemas_bulk_action_type_12 != "resume_queue":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_12 must match const 'resume_queue', got '{componentsschemas_bulk_action_type_12}'"
                )
            return componentsschemas_bulk_action_type_12
            componentsschemas_bulk_action_type_13 = cast(Literal["weights"], data)
            if componentsschemas_bulk_action_type_13 != "weights":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_13 must match const 'weights', got '{componentsschemas_bulk_action_type_13}'"
                )
            return componentsschemas_bulk_action_type_13
            componentsschemas_bulk_action_type_14 = cast(Literal["pause_lab"], data)
            if componentsschemas_bulk_action_type_14 != "pause_lab":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_14 must match const 'pause_lab', got '{componentsschemas_bulk_action_type_14}'"
                )
            return componentsschemas_bulk_action_type_14
            componentsschemas_bulk_action_type_15 = cast(Literal["resume_lab"], data)
            if componentsschemas_bulk_action_type_15 != "resume_lab":
                raise ValueError(
                    f"/components/schemas/BulkAction_type_15 must match const 'resume_lab', got '{componentsschemas_bulk_action_type_15}'"
                )
            return componentsschemas_bulk_action_type_15

        action = _parse_action(d.pop("action"))

        by = d.pop("by")

        made_ms = d.pop("made_ms")

        expires_ms = d.pop("expires_ms")

        sentence = d.pop("sentence")

        total = d.pop("total")

        items = []
        _items = d.pop("items")
        for items_item_data in _items:
            items_item = PreviewItem.from_dict(items_item_data)

            items.append(items_item)

        items_more = d.pop("items_more")

        left_out = []
        _left_out = d.pop("left_out")
        for left_out_item_data in _left_out:
            left_out_item = PreviewFailure.from_dict(left_out_item_data)

            left_out.append(left_out_item)

        left_out_more = d.pop("left_out_more")

        def _parse_state(
            data: object,
        ) -> Literal["done", "expired", "previewed", "running"]:
            componentsschemas_preview_state_type_0 = cast(Literal["previewed"], data)
            if componentsschemas_preview_state_type_0 != "previewed":
                raise ValueError(
                    f"/components/schemas/PreviewState_type_0 must match const 'previewed', got '{componentsschemas_preview_state_type_0}'"
                )
            return componentsschemas_preview_state_type_0
            componentsschemas_preview_state_type_1 = cast(Literal["running"], data)
            if componentsschemas_preview_state_type_1 != "running":
                raise ValueError(
                    f"/components/schemas/PreviewState_type_1 must match const 'running', got '{componentsschemas_preview_state_type_1}'"
                )
            return componentsschemas_preview_state_type_1
            componentsschemas_preview_state_type_2 = cast(Literal["done"], data)
            if componentsschemas_preview_state_type_2 != "done":
                raise ValueError(
                    f"/components/schemas/PreviewState_type_2 must match const 'done', got '{componentsschemas_preview_state_type_2}'"
                )
            return componentsschemas_preview_state_type_2
            componentsschemas_preview_state_type_3 = cast(Literal["expired"], data)
            if componentsschemas_preview_state_type_3 != "expired":
                raise ValueError(
                    f"/components/schemas/PreviewState_type_3 must match const 'expired', got '{componentsschemas_preview_state_type_3}'"
                )
            return componentsschemas_preview_state_type_3

        state = _parse_state(d.pop("state"))

        done = d.pop("done")

        failed = []
        _failed = d.pop("failed")
        for failed_item_data in _failed:
            failed_item = PreviewFailure.from_dict(failed_item_data)

            failed.append(failed_item)

        _shares = d.pop("shares", UNSET)
        shares: list[PreviewShare] | Unset = UNSET
        if _shares is not UNSET:
            shares = []
            for shares_item_data in _shares:
                shares_item = PreviewShare.from_dict(shares_item_data)

                shares.append(shares_item)

        preview = cls(
            preview_id=preview_id,
            action=action,
            by=by,
            made_ms=made_ms,
            expires_ms=expires_ms,
            sentence=sentence,
            total=total,
            items=items,
            items_more=items_more,
            left_out=left_out,
            left_out_more=left_out_more,
            state=state,
            done=done,
            failed=failed,
            shares=shares,
        )

        preview.additional_properties = d
        return preview

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
