"""Boxes lie inside their picture and never upon each other; charts keep to their frame."""

from itertools import combinations

import pytest

from console_svc.drawing import Box, Picture, draw_chart, draw_narrow, draw_wide
from console_svc.road import Link, build_road
from shared.runtime.declarations import load_declarations

ROAD = build_road(load_declarations(), {})
PICTURES = [draw_wide(ROAD), draw_narrow(ROAD)]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_every_place_is_inside_the_picture_and_apart_from_the_others(picture: Picture) -> None:
    assert {box.node.id for box in picture.boxes} == {node.id for node in ROAD.nodes}
    for box in picture.boxes:
        assert box.x >= 0
        assert box.x + box.width <= picture.width + 1
        assert box.y >= 0
        assert box.y + box.height <= picture.height + 1
    assert not [
        (one.node.id, other.node.id)
        for one, other in combinations(picture.boxes, 2)
        if overlap(one, other)
    ]


def overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


@pytest.mark.parametrize(
    ("rate", "is_broken", "pace"),
    [
        (None, False, "idle"),
        (0.0, False, "idle"),
        (0.2, False, "slow"),
        (20.0, False, "medium"),
        (200.0, False, "fast"),
        (20.0, True, "broken"),
    ],
)
def test_a_hop_is_drawn_at_the_pace_of_its_events(
    rate: float | None, is_broken: bool, pace: str
) -> None:
    [first, *others] = ROAD.links
    changed = Link(source=first.source, target=first.target, rate=rate, is_broken=is_broken)
    road = type(ROAD)(columns=ROAD.columns, links=[changed, *others], verdict="", is_well=True)

    assert draw_wide(road).lines[0].pace == pace


def test_a_chart_ends_at_its_right_edge_and_has_gaps() -> None:
    chart = draw_chart([1.0, 3.0, None, 2.0], 11, width=100, height=30)

    assert chart.strokes == ["70.0,19.5 80.0,1.5", "90.0,10.5 100.0,10.5"]
    assert (chart.top, chart.last) == (3.0, 2.0)


def test_a_chart_of_nothing_is_a_line_at_zero() -> None:
    assert draw_chart([0.0, 0.0], 3, width=10, height=20).strokes == ["5.0,18.5 10.0,18.5"]
    assert draw_chart([], 3, width=10, height=20).strokes == []
