from typing import Literal

UsageBy = Literal["account", "class", "host", "queue", "suite"]

USAGE_BY_VALUES: set[UsageBy] = {
    "account",
    "class",
    "host",
    "queue",
    "suite",
}


def check_usage_by(value: str) -> UsageBy:
    if value in USAGE_BY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {USAGE_BY_VALUES!r}")
