"""Client of fairlead, a dispatcher of test labs.

`Lab` is the way in. The types of answers, such as `JobView`, come from the generated core. There, a field that is absent is
`UNSET`, which is false.
"""

from ._core.models import (
    AccountView,
    Explanation,
    HostView,
    JobAnswer,
    JobView,
    QueueView,
)
from ._core.types import UNSET
from .errors import Error, Refused, Unreachable
from .lab import Job, Lab, Submit

__all__ = [
    "UNSET",
    "AccountView",
    "Error",
    "Explanation",
    "HostView",
    "Job",
    "JobAnswer",
    "JobView",
    "Lab",
    "QueueView",
    "Refused",
    "Submit",
    "Unreachable",
]
