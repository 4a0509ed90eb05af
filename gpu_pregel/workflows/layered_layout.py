"""The places of boxes and arrows in a picture: layers, the order in each, coordinates, and the paths of arrows.

The method is Sugiyama's: arrows that would lead back are turned round, layers are longest paths, arrows over several
layers get a place in each, crossings are reduced by barycenters, and each box is moved as near to its neighbours as the
others permit.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

GAP_X, GAP_Y = 28.0, 34.0
"""Between two boxes of a layer, and between two layers."""
_LOOP, _PORT = 24.0, 14.0
"""The width of an arrow from a box to itself, and the most between two arrows at a side of a box."""
_SWEEPS = 12
Point = tuple[float, float]


@dataclass
class Box:
    """A box, or a place that an arrow passes.

    Attributes
    ----------
    width, height : float
    room : float
        What is kept free to its right.
    layer : int
    x, y : float
        Its centre.
    """

    width: float
    height: float
    room: float = 0.0
    layer: int = 0
    x: float = 0.0
    y: float = 0.0


@dataclass
class Arrow:
    """An arrow from one box to another.

    Attributes
    ----------
    source, target : int
        Positions of boxes.
    label_size : tuple of float or None
        Width and height of its label, if it has one.
    is_light : bool
        Whether the arrow has no influence on the places of boxes.
    is_back : bool
        Whether it leads to an earlier layer.
    points : list of tuple of float
        Where it passes, vertically, from the border of its source to that of its target. One from a box to itself has
        the centre of the right side of the box only.
    label : int or None
        The place in ``points`` that is the centre of the label.
    """

    source: int
    target: int
    label_size: tuple[float, float] | None = None
    is_light: bool = False
    is_back: bool = False
    points: list[Point] = field(default_factory=list)
    label: int | None = None

    @property
    def is_loop(self) -> bool:
        """Whether it leads from a box to itself."""
        return self.source == self.target

    @property
    def ends(self) -> tuple[int, int]:
        """The upper and the lower box."""
        return (self.target, self.source) if self.is_back else (self.source, self.target)


def place(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> tuple[float, float]:
    """Set the places of boxes, the first of which is the entry, and the points of arrows; return width and height."""
    solid = [one for one in arrows if not one.is_light and not one.is_loop]
    for arrow in arrows:
        if arrow.is_loop:
            label = 0.0 if arrow.label_size is None else arrow.label_size[0]
            boxes[arrow.source].room = max(boxes[arrow.source].room, _LOOP + label)
    for arrow in _find_back(len(boxes), solid):
        arrow.is_back = True
    _set_layers(boxes, solid)
    places = _Places(boxes, solid)
    places.order()
    places.set_x()
    height = places.set_y()
    places.route(arrows)
    left = min(one.x - one.width / 2 for one in places.boxes)
    right = max(one.x + one.width / 2 + one.room for one in places.boxes)
    for box in boxes:
        box.x -= left
    for arrow in arrows:
        arrow.points = [(x - left, y) for x, y in arrow.points]
    return right - left, height


def _find_back(count: int, arrows: Sequence[Arrow]) -> Iterator[Arrow]:
    """Yield the arrows that lead to a box from which their source was reached."""
    following: list[list[Arrow]] = [[] for _ in range(count)]
    for arrow in arrows:
        following[arrow.source].append(arrow)
    entered, left = [False] * count, [False] * count
    for root in range(count):
        stack = [] if entered[root] else [(root, iter(following[root]))]
        entered[root] = True
        while stack:
            box, rest = stack[-1]
            for arrow in rest:
                if not entered[arrow.target]:
                    entered[arrow.target] = True
                    stack.append((arrow.target, iter(following[arrow.target])))
                    break
                if not left[arrow.target]:
                    yield arrow
            else:
                left[box] = True
                stack.pop()


def _set_layers(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> None:
    """Put each box below all that lead to it, with room for labels between."""
    leading, missing = [[] for _ in boxes], [0] * len(boxes)  # type: list[list[Arrow]], list[int]
    for arrow in arrows:
        upper, lower = arrow.ends
        leading[upper].append(arrow)
        missing[lower] += 1
    roots = [box for box, count in enumerate(missing) if count == 0]
    for root in roots[1:] if roots and roots[0] == 0 else []:  # what only light arrows lead to
        boxes[root].layer = max(1, boxes[root].layer)
    while roots:
        for arrow in leading[roots.pop()]:
            upper, lower = arrow.ends
            after = boxes[upper].layer + (1 if arrow.label_size is None else 2)
            boxes[lower].layer = max(boxes[lower].layer, after)
            missing[lower] -= 1
            if missing[lower] == 0:
                roots.append(lower)


class _Places:
    """The boxes by layer, with the places where arrows pass through the layers between source and target."""

    def __init__(self, boxes: Sequence[Box], arrows: Sequence[Arrow]) -> None:
        self.boxes, self._arrows = list(boxes), arrows
        self.chains: list[list[int]] = []
        """The places that each arrow passes, from the upper box to the lower one."""
        for arrow in arrows:
            upper, lower = arrow.ends
            first, last = boxes[upper].layer, boxes[lower].layer
            chain = [upper]
            for layer in range(first + 1, last):
                is_label = arrow.label_size is not None and layer == (first + last) // 2
                width, height = arrow.label_size if is_label and arrow.label_size else (4.0, 4.0)
                chain.append(len(self.boxes))
                self.boxes.append(Box(width, height, layer=layer))
            self.chains.append([*chain, lower])
        self._positions = [0] * len(self.boxes)
        """The position of each place in its layer."""
        self._bounds: list[Point] = []
        """The top and the bottom of each layer."""
        self.layers: list[list[int]] = [[] for _ in range(1 + max(one.layer for one in self.boxes))]
        for place, box in enumerate(self.boxes):
            self.layers[box.layer].append(place)
        self._above: list[list[int]] = [[] for _ in self.boxes]
        self._below: list[list[int]] = [[] for _ in self.boxes]
        for chain in self.chains:
            for upper, lower in pairwise(chain):
                self._below[upper].append(lower)
                self._above[lower].append(upper)

    # Order.

    def order(self) -> None:
        """Order the layers so that few arrows cross."""
        for layer in self.layers:
            self._number(layer)
        best, fewest = [layer[:] for layer in self.layers], self._crossings()
        for sweep in range(_SWEEPS):
            if fewest == 0:
                break
            is_down = sweep % 2 == 0
            for layer in self.layers if is_down else reversed(self.layers):
                self._order_layer(layer, self._above if is_down else self._below)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [layer[:] for layer in self.layers], crossings
        self.layers = best

    def _number(self, layer: list[int]) -> None:
        for position, place in enumerate(layer):
            self._positions[place] = position

    def _order_layer(self, layer: list[int], neighbours: list[list[int]]) -> None:
        def barycenter(place: int) -> float:
            near = [self._positions[one] for one in neighbours[place]]
            return sum(near) / len(near) if near else self._positions[place]

        layer.sort(key=barycenter)
        self._number(layer)

    def _crossings(self) -> int:
        """Count the crossings between neighbouring layers."""
        count = 0
        for layer in self.layers:
            ends: list[int] = []  # of the arrows further left
            for place in layer:
                below = sorted(self._positions[one] for one in self._below[place])
                count += sum(len(ends) - bisect_right(ends, end) for end in below)
                for end in below:
                    insort(ends, end)
        return count

    # Coordinates.

    def set_x(self) -> None:
        """Set the horizontal places: each near the mean of its neighbours."""
        for layer in self.layers:
            self._spread(layer, [0.0] * len(layer))
        for sweep in range(_SWEEPS):
            is_down = sweep % 2 == 0
            for layer in self.layers if is_down else reversed(self.layers):
                wanted = []
                for place in layer:
                    near = (self._above if is_down else self._below)[place] or [place]
                    wanted.append(sum(self.boxes[one].x for one in near) / len(near))
                self._spread(layer, wanted)

    def _spread(self, layer: list[int], wanted: list[float]) -> None:
        """Move a layer as near as possible, by least squares, to the places that are wanted, without overlaps."""
        offsets, offset = [], 0.0
        for left, right in zip([None, *layer], layer, strict=False):
            if left is not None:
                offset += (self.boxes[left].width + self.boxes[right].width) / 2 + self.boxes[left].room + GAP_X
            offsets.append(offset)
        blocks: list[tuple[float, int]] = []  # sum and number of neighbours that touch
        for want, offset in zip(wanted, offsets, strict=True):
            total, count = want - offset, 1
            while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
                before = blocks.pop()
                total, count = total + before[0], count + before[1]
            blocks.append((total, count))
        means = [total / count for total, count in blocks for _ in range(count)]
        for place, mean, offset in zip(layer, means, offsets, strict=True):
            self.boxes[place].x = mean + offset

    def set_y(self) -> float:
        """Set the vertical places; return the height of all."""
        y = 0.0
        for layer in self.layers:
            height = max((self.boxes[one].height for one in layer), default=0.0)
            for one in layer:
                self.boxes[one].y = y + height / 2
            self._bounds.append((y, y + height))
            y += height + GAP_Y
        return y - GAP_Y

    # Paths.

    def route(self, arrows: Sequence[Arrow]) -> None:
        """Set the points of all arrows: they are vertical within layers, and bend between."""
        below, above = self._ports(0), self._ports(-1)
        for number, (arrow, chain) in enumerate(zip(self._arrows, self.chains, strict=True)):
            self._route(arrow, chain, below[number], above[number])
        for arrow in arrows:
            upper, lower = (self.boxes[one] for one in arrow.ends)
            if arrow.is_loop:
                arrow.points = [(upper.x + upper.width / 2, upper.y)]
            elif arrow.is_light:
                down = 1 if upper.layer < lower.layer else -1
                start, end = upper.y + down * upper.height / 2, lower.y - down * lower.height / 2
                arrow.points = [(upper.x, start), (lower.x, end)]

    def _ports(self, end: int) -> dict[int, float]:
        """Return the horizontal place of one end of each arrow: side by side, in the order of where they go."""
        ends: dict[int, list[int]] = {}
        for number, chain in enumerate(self.chains):
            ends.setdefault(chain[end], []).append(number)
        ports = {}
        for place, numbers in ends.items():
            box, step = self.boxes[place], min(_PORT, (self.boxes[place].width - 16) / len(numbers))
            numbers.sort(key=lambda number: self.boxes[self.chains[number][1 if end == 0 else -2]].x)
            for index, number in enumerate(numbers):
                ports[number] = box.x + (index - (len(numbers) - 1) / 2) * step
        return ports

    def _route(self, arrow: Arrow, chain: Sequence[int], below: float, above: float) -> None:
        upper, lower = self.boxes[chain[0]], self.boxes[chain[-1]]
        points = [(below, upper.y + upper.height / 2), (below, self._bounds[upper.layer][1])]
        for one in chain[1:-1]:
            box = self.boxes[one]
            top, bottom = self._bounds[box.layer]
            if arrow.label_size is not None and box.width == arrow.label_size[0]:
                arrow.label = len(points) + 1
                points += [(box.x, top), (box.x, box.y), (box.x, bottom)]
            else:
                points += [(box.x, top), (box.x, bottom)]
        points += [(above, self._bounds[lower.layer][0]), (above, lower.y - lower.height / 2)]
        arrow.points = points[::-1] if arrow.is_back else points
        if arrow.is_back and arrow.label is not None:
            arrow.label = len(points) - 1 - arrow.label
