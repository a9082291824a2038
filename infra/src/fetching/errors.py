"""The one error that the verbs turn into a line for people."""

from collections.abc import Sequence


class Failure(Exception):
    """Something outside this program is in the way; the message is one line that names the remedy.

    `details` are lines that explain it, such as the end of a log.
    """

    def __init__(self, message: str, *, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.details = details
