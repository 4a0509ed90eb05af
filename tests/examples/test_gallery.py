"""The gallery: every script draws its picture, and what it draws is right."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import gpu_pregel as gp

GALLERY = ("bottlenecks", "communities", "influence", "map_coloring", "maze", "percolation", "roads")
WITH_AGENTS = ("investigators", "reading_list", "rumour")
"""Scripts that ``test_agents_gallery.py`` compares with simulations."""
PICTURES = Path(__file__).resolve().parents[2] / "examples" / "pictures"


def script(name: str) -> Any:
    return import_module(f"gpu_pregel.examples.{name}")


def small(name: str) -> list[Any]:
    """Return arguments of ``draw`` for a small picture."""
    sizes: dict[str, list[Any]] = {"investigators": [9, (3, 8)], "reading_list": [10]}
    return [gp.kronecker(8)] if name in ("influence", "rumour") else sizes.get(name, [])


@pytest.mark.parametrize("name", GALLERY + WITH_AGENTS)
def test_scripts_draw_a_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    path = tmp_path / "picture.png"
    script(name).draw(path, *small(name))
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert capsys.readouterr().out == f"picture: {path}\n"
    assert f"gpu_pregel.examples.{name} " in script(name).__doc__


def test_every_picture_is_one_of_the_gallery() -> None:
    assert {path.stem for path in PICTURES.glob("*.png")} == set(GALLERY + WITH_AGENTS)
    readme = PICTURES.parents[1] / "README.md"
    if not readme.exists():
        pytest.skip("README.md is part of a checkout, not of the package")
    shown = set(re.findall(r"examples/pictures/(\w+)\.png", readme.read_text()))
    assert shown == set(GALLERY + WITH_AGENTS)


def test_clusters_are_components_and_holes_belong_to_none() -> None:
    picture, largest = script("percolation").clusters(0.3, size=20)
    graph = gp.grid(20, holes=0.3).to_networkx()
    clusters = [component for component in networkx.connected_components(graph) if len(component) > 1]
    assert np.isnan(picture).sum() == 400 - sum(map(len, clusters))
    for cluster in clusters:
        assert len(set(picture.ravel()[sorted(cluster)])) == 1
    assert largest == max(map(len, clusters)) / sum(map(len, clusters))


def test_countries_with_a_common_border_have_different_colours() -> None:
    module = script("map_coloring")
    image = module.countries(count=20, size=60)
    colors = gp.greedy_color(module.borders(image)).to_numpy()[image]
    for axis in (0, 1):
        one, other = (np.delete(image, place, axis) for place in (0, -1))
        differ = one != other
        assert (np.delete(colors, 0, axis) != np.delete(colors, -1, axis))[differ].all()
        assert differ.any()


def test_communities_are_the_groups() -> None:
    graph = script("communities").groups(count=4, size=30)
    labels = gp.leiden(graph).to_numpy()
    group = np.random.default_rng(4).permutation(120) % 4
    assert len(set(zip(labels, group, strict=True))) == len(set(labels)) == 4


def test_scores_of_a_star() -> None:
    star = gp.Graph.from_edgelist([1, 2, 3], [0, 0, 0], directed=True)
    degrees, ranks, cores = script("influence").scores(star)
    assert degrees.tolist() == [3, 0, 0, 0]
    assert ranks.argmax() == 0
    assert cores.tolist() == [1, 1, 1, 1]


def test_a_maze_is_a_tree_and_the_way_leads_through_it() -> None:
    passages, way = script("maze").carve(size=12)
    maze = passages.to_networkx()
    assert networkx.is_tree(maze)
    assert set(maze) == set(range(144))
    assert way == networkx.shortest_path(maze, 0, 143)


def test_travel_times_are_those_of_dijkstra() -> None:
    roads = script("roads").city(size=30)
    lengths = networkx.single_source_dijkstra_path_length(roads.to_networkx(), 465)
    assert gp.sssp(roads, 465).to_numpy() == pytest.approx([lengths.get(v, np.inf) for v in range(900)])
    assert len(lengths) > 800


def test_the_ends_of_a_bridge_are_the_bottlenecks() -> None:
    city = script("bottlenecks").river(11, bridges=(6,))
    scores = gp.betweenness_centrality(city).to_numpy()
    expected = networkx.betweenness_centrality(city.to_networkx())
    assert scores == pytest.approx([expected[v] for v in range(121)])
    assert set(np.argsort(scores)[-2:]) == {6 * 11 + 5, 6 * 11 + 6}


def test_batches_have_every_vertex_once_with_its_neighbours() -> None:
    graph = gp.kronecker(7)
    seen = []
    for chosen, sample in script("mini_batches").batches(graph, 50, [-1]):
        seen += chosen.tolist()
        assert sample.summary()["edges"] == graph.out_degrees[chosen].sum()
    assert sorted(seen) == list(range(128))


def test_features_of_neighbours_are_averaged() -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2], num_vertices=4, directed=True)
    features = np.array([[1.0, 0.0], [3.0, 2.0], [5.0, 8.0], [7.0, 7.0]])
    sample = gp.sample_neighbors(graph, [3, 0, 1], [-1], device="cpu")
    means = script("mini_batches").averages(sample, features)
    assert means[:3].tolist() == [[0.0, 0.0], [4.0, 5.0], [5.0, 8.0]]
