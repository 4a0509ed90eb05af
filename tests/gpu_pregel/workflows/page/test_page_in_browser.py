"""The page of a run in headless Chromium: what its scripts render, that nothing leaves it, and how it looks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
import gpu_pregel.agents as agents
from gpu_pregel.agents import Vertex
from gpu_pregel.workflows.page import page_of
from tests.chromium import Browser
from tests.gpu_pregel.workflows.page.runs_to_show import EVIL, make_finished, make_held


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages of a finished and of a held run."""
    folder, store = tmp_path_factory.mktemp("pages"), gp.MemoryStore()
    for run_id, make in (("finished", make_finished), ("held", make_held)):
        make(store, run_id)
        (folder / f"{run_id}.html").write_text(page_of(store, run_id))
    return folder


def scripted(page: Path, script: str) -> Path:
    """Return a copy of a page that runs a script at its end, which its policy would refuse."""
    source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    copy = page.with_name(f"{page.stem}-scripted.html")
    copy.write_text(source.replace("</body>", f"<script>{script}</script></body>"))
    return copy


def test_everything_of_a_run_is_rendered_and_no_request_leaves(browser: Browser, pages: Path) -> None:
    dom = browser.load(pages / "finished.html", "superstep=1")
    assert dom.problems == []
    assert browser.requests == []
    assert dom.by_id("chosen").text == "superstep 1 of 3"
    assert len(dom.of_class("bar", "ok-fill")) == 3
    assert len(dom.of_class("bar", "retry-fill")) == 1
    # The time line: seven attempts and four supersteps.
    assert len(dom.of_class("attempt")) == 7
    kinds = {kind: len(dom.of_class("attempt", f"{kind}-fill")) for kind in ("ok", "fail", "ask", "retry")}
    assert kinds == {"ok": 4, "fail": 1, "ask": 1, "retry": 1}
    assert len(dom.of_class("step")) == 4
    # The graph.
    assert [one.attributes["aria-label"] for one in dom.of_class("node")] == [
        "plan",
        "search 1 active",
        "search 2 active",
        "ask",
    ]
    assert len(dom.of_class("edge")) == 5
    assert len(dom.of_class("edge", "message")) == 1
    assert len(dom.of_class("edge", "sent")) == 2
    # The superstep.
    details = dom.by_id("details").text
    assert f"search 2 attempt 1: OSError no answer {EVIL} – tried again" in details
    assert "Traceback (most recent call last)" in details
    assert [one.text for one in dom.of_class("aggregate")] == ["state+search 13+search 23"]
    assert [one.text for one in dom.of_class("item", "vertex")] == [
        "search 1~valueNonelist (1)0: search 1",
        "search 2~valueNonelist (1)0: search 2",
    ]
    assert dom.by_id("state").text.startswith(
        "State after superstep 3Shared state 1statedict (2)search 1: 3search 2: 3"
    )


def test_text_of_a_run_neither_runs_nor_loads(browser: Browser, pages: Path) -> None:
    dom = browser.load(pages / "finished.html", "superstep=0")
    assert browser.requests == []
    assert "finished · completed" in [one.text for one in dom.elements if one.tag == "title"]
    assert not any(one.tag == "img" for one in dom.elements)
    assert [one.text for one in dom.of_class("emitted")] == [f"first {EVIL}"]
    assert dom.text.count(EVIL) >= 3  # as a value, as a message and as what was emitted


def test_the_browser_of_these_tests_sees_requests_and_scripts(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><title>good</title><body><img src=http://leak.invalid/>"
        "<script>document.title='hacked'; nothing()</script>"
    )
    dom = browser.load(page)
    assert any("leak.invalid" in line for line in browser.requests)
    assert [one.text for one in dom.elements if one.tag == "title"] == ["hacked"]
    assert len(dom.problems) == 1


def test_the_policy_of_the_page_refuses_scripts_and_requests(browser: Browser, pages: Path) -> None:
    """Even if text of a run became markup."""
    page = pages / "refused.html"
    added = "<img src=http://leak.invalid/><script>document.title='hacked'</script></body>"
    page.write_text((pages / "finished.html").read_text().replace("</body>", added))
    dom = browser.load(page)
    assert browser.requests == []
    assert not any(one.text == "hacked" for one in dom.elements)
    assert dom.of_class("attempt")


def test_a_held_run_shows_its_question(browser: Browser, pages: Path) -> None:
    dom = browser.load(pages / "held.html")
    assert dom.by_id("asking").text.startswith("1 open questionask asksdict (1)question: publish?")
    assert "waits for an answer" in dom.by_id("details").text
    assert len(dom.of_class("bar", "ask-fill")) == 1
    assert [one.attributes["aria-label"] for one in dom.of_class("node", "asking")] == ["ask asking"]


_PRESSES = """
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
press("ArrowLeft"); press("ArrowLeft");
const after = [document.getElementById("chosen").textContent, location.hash];
const enter = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true });
document.querySelectorAll(".node")[2].dispatchEvent(enter);
const number = (name) => document.querySelectorAll(name).length;
after.push(document.activeElement.getAttribute("aria-label"), number(".attempt"), number(".item.vertex"));
[...document.querySelectorAll("button")].find((one) => one.textContent === "this superstep").click();
after.push(number(".attempt"), number(".step"));
[...document.querySelectorAll("button")].find((one) => one.textContent === "show all").click();
after.push(number(".attempt"));
const slider = document.querySelector("input[type=range]");
slider.value = 0; slider.dispatchEvent(new Event("input"));
after.push(document.getElementById("chosen").textContent);
const measure = document.querySelector("select");
measure.value = "messages"; measure.dispatchEvent(new Event("change"));
after.push(document.querySelector(".overview").getAttribute("aria-label").split(" of ")[0]);
const trace = document.getElementById("trace");
trace.open = true;
setTimeout(() => {
  after.push(trace.querySelectorAll("tbody tr").length);
  const result = document.createElement("output");
  result.id = "result"; result.textContent = JSON.stringify(after); document.body.append(result);
}, 100);
"""


def test_the_page_can_be_used_with_the_keyboard(browser: Browser, pages: Path) -> None:
    dom = browser.load(scripted(pages / "finished.html", _PRESSES))
    assert json.loads(dom.by_id("result").text) == [
        "superstep 1 of 3",
        "#superstep=1",
        "search 2 active",
        2,
        1,
        2,
        1,
        3,
        "superstep 0 of 3",
        "messages",
        4,
    ]


_WIDTHS = """
const result = document.createElement("output");
result.id = "result";
result.textContent = document.documentElement.scrollWidth - window.innerWidth;
document.body.append(result);
"""


def make_mixed(store: gp.MemoryStore) -> None:
    """A run of both kinds of vertices."""
    spread = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: value + 1,
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
    )
    path = gp.Graph.from_edgelist(range(5), range(1, 6), directed=True)
    chosen = gp.Agents(lambda ctx: ctx.emit("seen"), vertices=[3], observer=agents.Timeline(store))
    gp.run(path, spread, device="python", agents=chosen, checkpoint=gp.Checkpoint(store, "run"))


def make_numeric(store: gp.MemoryStore) -> None:
    smallest = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex,
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),
    )
    graph = gp.Graph.from_edgelist(range(4), range(1, 5))
    gp.run(graph, smallest, device="python", checkpoint=gp.Checkpoint(store, "run", every=1))


def make_large(store: gp.MemoryStore) -> None:
    def talk(ctx: Any) -> None:
        ctx.send((ctx.vertex_id * 7 + 1) % 100, "x" * 400)
        ctx.value = {"a" * 300: f"{ctx.superstep} {'b' * 3000}"}

    options: dict[str, Any] = {"max_supersteps": 8, "on_limit": "return", "durability": "process"}
    agents.run(
        [Vertex(k) for k in range(100)], talk, store=store, run_id="run", observer=agents.Timeline(store), **options
    )


@pytest.mark.parametrize(
    ("make", "bars", "words"),
    [
        (make_mixed, 2 * 4, ["seen", "int64", "numeric vertices6"]),
        (make_numeric, 2 * 6, ["pull", "value0"]),
        (make_large, 8, ["1 node for 100 vertices", "more changed vertices"]),
    ],
)
def test_other_runs_in_a_narrow_window(
    browser: Browser, tmp_path: Path, make: Callable[[gp.MemoryStore], None], bars: int, words: list[str]
) -> None:
    store, page = gp.MemoryStore(), tmp_path / "page.html"
    make(store)
    page.write_text(page_of(store, "run"))
    dom = browser.load(scripted(page, _WIDTHS), size=(500, 900))
    assert dom.problems == []
    assert len([one for one in dom.of_class("bar") if one.tag == "rect"]) == bars
    for word in words:
        assert word in dom.text
    assert int(dom.by_id("result").text) <= 0


def test_colours_follow_the_system(browser: Browser, pages: Path) -> None:
    light, dark = (browser.picture(pages / "finished.html", dark=is_dark, size=(900, 600)) for is_dark in (False, True))
    assert light.mean() > 0.85
    assert dark.mean() < 0.25
    for picture in (light, dark):  # it is drawn, and in colours
        assert (picture.max(axis=2) - picture.min(axis=2) > 0.3).mean() > 0.005
