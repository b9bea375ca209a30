"""Errors that only this package has."""

__all__ = ["ForkError"]


class ForkError(OSError):
    """A volume or file was opened before `os.fork`, and is used in the child."""

    __module__ = "holdfast"
