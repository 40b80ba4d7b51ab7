from typing import Literal

AnswerFormat = Literal["html", "json"]

ANSWER_FORMAT_VALUES: set[AnswerFormat] = {
    "html",
    "json",
}


def check_answer_format(value: str) -> AnswerFormat:
    if value in ANSWER_FORMAT_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {ANSWER_FORMAT_VALUES!r}"
    )
