"""A run as moving pictures: what the page's viewer shows, step by step, in one GIF.

On a map every robot has its colour: its goal is a diamond, its place in one drawn run a disc with a trail, and the
shade of a cell is how many agents are expected there. On a network the width of a link is its expected load. Loads are
bars against their capacity. Drawn with Pillow, from the same data as the page.
"""

from __future__ import annotations

import colorsys
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmpg.errors import CMPGError
from cmpg.files.containers import check_new_file, checked_ending, write_atomically
from cmpg.report.viewer import View

if TYPE_CHECKING:
    from PIL.Image import Image

COLOURS = ("#2b6cb0", "#c2621b", "#2f855a", "#8a4fa3", "#0f8a8a", "#c53041", "#7a6a1f", "#55606e")
GROUND, PANEL, TEXT, RULE, WALL, WARM = "#fafaf8", "#ffffff", "#1d2430", "#dfe2e6", "#c9cdd2", "#c53041"

LONG_SIDE = 640
"""Pixels of the longer side, about."""

TRAIL = 6
"""Steps that a trail goes back."""


def animate(view: View, path: Path, *, milliseconds: int = 350) -> int:
    """Write a GIF of all steps, and return how many frames it has.

    Raises
    ------
    CMPGError
        Pillow is not installed, or the game has no picture.
    FileError
        There is a file already, or its name is not that of a GIF.
    """
    checked_ending(path, (".gif",))
    check_new_file(path)
    first, *rest = frames(view)
    made = io.BytesIO()
    first.save(made, format="GIF", save_all=True, append_images=rest, duration=milliseconds, loop=0)
    write_atomically(path, lambda stream: stream.write(made.getvalue()))
    return 1 + len(rest)


def frames(view: View) -> list[Image]:
    """Return one picture per step."""
    painters = {"grid": _grid, "network": _network, "loads": _loads}
    if view.kind not in painters:
        raise CMPGError("this game has no picture that could move: it is shown as tables. Use `cmpg show` without it.")
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise CMPGError(
            "a GIF is drawn by Pillow, which is not installed. Install it with: pip install pillow"
        ) from None
    return list(painters[view.kind](view.fields))


def _canvas(width: float, height: float, message: str) -> tuple[Image, Any]:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (round(width), round(height) + 24), GROUND)
    brush = ImageDraw.Draw(image)
    brush.text((6, round(height) + 6), message, fill=TEXT)
    return image, brush


def _mixed(colour: str, share: float, ground: str = PANEL) -> tuple[int, ...]:
    """Return a colour over a ground, as if it were so opaque."""
    parts = [[int(each[place : place + 2], 16) for place in (1, 3, 5)] for each in (colour, ground)]
    return tuple(round(a * share + b * (1 - share)) for a, b in zip(*parts, strict=True))


def _grid(fields: dict[str, Any]) -> Iterator[Image]:
    width, height = fields["width"], fields["height"]
    size = max(6, LONG_SIDE // max(width, height))

    def corner(place: int) -> tuple[float, float]:
        x, y = fields["cells"][place]
        return x * size, (height - 1 - y if fields["upwards"] else y) * size

    def middle(place: int) -> tuple[float, float]:
        x, y = corner(place)
        return x + size / 2, y + size / 2

    for step, name in enumerate(fields["steps"]):
        image, brush = _canvas(
            width * size, height * size, f"step {name}: one drawn run; shade: expected number of agents"
        )
        brush.rectangle((0, 0, width * size, height * size), fill=WALL)
        shade = dict(fields["together"][step])
        for place in range(len(fields["cells"])):
            x, y = corner(place)
            fill = _mixed(COLOURS[7], min(0.6, shade.get(place, 0) / 1600))
            brush.rectangle((x, y, x + size - 1, y + size - 1), fill=fill, outline=RULE)
        for place, _ in fields["hot"][:5]:
            x, y = corner(place)
            brush.rectangle((x, y, x + size - 1, y + size - 1), outline=WARM, width=2)
        for agent, goal in enumerate(fields["goals"]):
            if goal is not None:
                x, y = middle(goal)
                radius = size * 0.44
                corners = [(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)]
                brush.polygon(corners, outline=_colour(agent), width=2)
        for agent, way in enumerate(fields["sample"]):
            trail = [middle(place) for place in way[max(0, step - TRAIL) : step + 1]]
            if len(trail) > 1:
                brush.line(trail, fill=_mixed(_colour(agent), 0.6), width=max(2, size // 8))
            x, y = trail[-1]
            radius = size * 0.28
            brush.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_colour(agent))
        yield image


def _colour(agent: int) -> str:
    """Return a colour of an agent's own, far from that of the one before; the page has the same."""
    red, green, blue = colorsys.hls_to_rgb(agent * 137.508 % 360 / 360, 0.42, 0.62)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _network(fields: dict[str, Any]) -> Iterator[Image]:
    nodes, edge = fields["nodes"], 24
    wide, tall = (edge * 2 + (LONG_SIDE - 2 * edge) * max(node[axis] for node in nodes) for axis in (0, 1))
    places = [(edge + x * (LONG_SIDE - 2 * edge), edge + y * (LONG_SIDE - 2 * edge)) for x, y in nodes]
    most = max([1.0, *(load / 1000 for row in fields["loads"] for _, load in row)])
    for step, name in enumerate(fields["steps"]):
        image, brush = _canvas(wide, tall, f"step {name}: expected load of every link; orange: protected")
        loads = dict(fields["loads"][step])
        for e, (tail, head) in enumerate(fields["links"]):
            load = loads.get(e, 0) / 1000
            careful = e in fields["protected"]
            over = careful and load > fields["limit"] + 5e-4
            colour = WARM if over else COLOURS[1] if careful else COLOURS[0] if load else RULE
            (x1, y1), (x2, y2) = places[tail], places[head]
            length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
            # Both directions of a road lie beside each other.
            off = (-(y2 - y1) / length * 4, (x2 - x1) / length * 4)
            ends = (x1 + off[0], y1 + off[1], x2 + off[0], y2 + off[1])
            brush.line(ends, fill=colour, width=1 + round(6 * load / most))
        for number, (x, y) in enumerate(places, 1):
            brush.ellipse((x - 9, y - 9, x + 9, y + 9), fill=PANEL, outline=TEXT)
            brush.text((x, y), str(number), fill=TEXT, anchor="mm")
        yield image


def _loads(fields: dict[str, Any]) -> Iterator[Image]:
    rows, wide, tall = len(fields["resources"]), LONG_SIDE, 160
    bar = (wide - 40) / len(fields["steps"])
    for step, name in enumerate(fields["steps"]):
        image, brush = _canvas(wide, tall * rows, f"{name}: expected load, and the capacity")
        for e, resource in enumerate(fields["resources"]):
            loads, limits = [load / 1000 for load in fields["loads"][e]], fields["capacities"][e]
            top, base = max(*loads, *limits, 1e-9) * 1.1, tall * (e + 1) - 10
            brush.text((6, tall * e + 4), resource, fill=TEXT)
            for h, load in enumerate(loads):
                x, y = 30 + h * bar, base - load / top * (tall - 40)
                colour = WARM if load > limits[h] else COLOURS[0]
                brush.rectangle((x, y, x + bar - 2, base), fill=colour if h == step else _mixed(colour, 0.35))
                limit = base - limits[h] / top * (tall - 40)
                brush.line((x, limit, x + bar - 1, limit), fill=TEXT)
        yield image
