"""Client of fairlead, a dispatcher of test labs.

`Lab` is the way in. In the types of answers, such as `JobView`, a field that is absent is `UNSET`, which is false.
"""

from .answers import AccountView, Explanation, HostView, JobAnswer, JobView, QueueView
from .decode import UNSET
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
