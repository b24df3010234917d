"""Small pictures of numbers, as SVG made here. Each has a text beside it that says the same."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT, GAP = 640, 120, 2  # px of a chart of bars


def bars(parts: Sequence[Sequence[int]], kinds: Sequence[str], label: str) -> Markup:
    """Return stacked bars: for each moment a number of each kind, which names its colour.

    `label` is what is read in place of the picture. Nothing of it comes from outside.
    """
    most = max((sum(one) for one in parts), default=0) or 1
    step = WIDTH / max(len(parts), 1)
    shapes = []
    for place, one in enumerate(parts):
        top = float(HEIGHT)
        for kind, value in zip(kinds, one, strict=True):
            if value:
                tall = max(1.5, value / most * (HEIGHT - 4))
                top -= tall
                shapes.append(
                    f'<rect class="b-{kind}" x="{place * step + GAP / 2:.1f}" y="{max(top, 0):.1f}"'
                    f' width="{max(step - GAP, 0.5):.1f}" height="{tall:.1f}" rx="1.5"/>'
                )
    head = Markup(
        '<svg class="bars" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">'
    ).format(WIDTH, HEIGHT, label)
    # Numbers and names of our own: nothing in it came from outside.
    return head + Markup("".join(shapes)) + Markup("</svg>")  # noqa: S704
