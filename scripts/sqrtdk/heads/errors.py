"""A verdict on given attention heads: facts with intervals, and diagnoses judged against a declared convention."""


class InputError(ValueError):
    """A file, array or option that cannot be used: one sentence that names it."""
