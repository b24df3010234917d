"""What is said of a name that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

FEW = 12  # names that are all said
NEAR = 5  # names that are said of many


def nearest(name: str, names: Iterable[str]) -> str:
    """Return what to say of a name that nobody knows: the one that is meant, if it is near, and
    all there are, or of many the nearest few."""
    known = list(names)
    likely = meant(name, known)
    hint = "." if likely is None else f"; did you mean {likely!r}?"
    if len(known) <= FEW:
        return f"{hint} There are {', '.join(known) or 'none'}"
    found = ", ".join(near(name, known))
    return f"{hint} Of {len(known)} the nearest are {found}" if found else f"{hint} None is like it"


def near(name: str, names: Iterable[str]) -> list[str]:
    """Return the nearest few of many names, the nearest first."""
    return _near(name, names, NEAR, 0.5)


def meant(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is meant by one that nobody knows, if one is near."""
    return next(iter(_near(name, names, 1, 0.6)), None)


def _near(name: str, names: Iterable[str], most: int, cutoff: float) -> list[str]:
    import difflib  # 3 ms of the package's import, for few texts

    return difflib.get_close_matches(name, list(names), most, cutoff)
