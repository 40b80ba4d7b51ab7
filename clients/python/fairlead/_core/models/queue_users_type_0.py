from typing import Literal

QueueUsersType0 = Literal["all", "own"]

QUEUE_USERS_TYPE_0_VALUES: set[QueueUsersType0] = {
    "all",
    "own",
}


def check_queue_users_type_0(value: str) -> QueueUsersType0:
    if value in QUEUE_USERS_TYPE_0_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUEUE_USERS_TYPE_0_VALUES!r}"
    )
