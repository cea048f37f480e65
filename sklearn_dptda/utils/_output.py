"""Transformers whose output is a list of objects rather than a table."""

from typing import Self


class ListOutputMixin:
    """Accept ``set_output`` and leave the output alone.

    A pipeline passes ``set_output`` on to each of its steps; a step that
    returns filtrations or diagrams has no table to wrap and says yes to any
    choice.
    """

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing: the output is a list, whatever container is asked for.

        Parameters
        ----------
        transform : str or None
            Ignored.

        Returns
        -------
        self
        """
        return self
