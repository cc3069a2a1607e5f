"""The one exception for what a user can put right, and the one warning."""


class InputError(ValueError):
    """Something that came in cannot be used: the message says what came, what was expected and what to do."""


class InputWarning(UserWarning):
    """Something that came in was usable only after a change, or deserves a second look."""
