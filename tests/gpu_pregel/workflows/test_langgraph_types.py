"""Types in checkpoints: those of LangGraph, LangChain and users come back as they were; others are refused."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, registered
from gpu_pregel.host.agents.codec import types as codec_types
from gpu_pregel.host.agents.codec.adapters import adapt
from tests.packages import needs

needs("langgraph.checkpoint.conformance", "test")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.messages import (  # noqa: E402
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command, Interrupt, Overwrite, Send  # noqa: E402
from pydantic import BaseModel  # noqa: E402

from gpu_pregel import workflows  # noqa: E402
from tests.gpu_pregel.workflows.checkpoints import config_of, put  # noqa: E402


@gp.agents.register(name="langgraph test Note")
@dataclass
class Note:
    text: str
    seen: set[int]


@gp.agents.register(name="langgraph test Plan")
class Plan(BaseModel):
    steps: list[str]
    note: Any = None


@gp.agents.register(name="langgraph test Colour")
class Colour(Enum):
    RED = 1


@gp.agents.register(name="langgraph test Point")
class Point(NamedTuple):
    x: int
    y: int


class NotRegistered(BaseModel):
    x: int


class Text(str):
    __slots__ = ()


TOOL_CALLS: Any = [{"name": "look", "args": {"at": (1, 2)}, "id": "1"}]
USAGE: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
VALUES = [
    Interrupt({"question": (1, 2)}, id="id"),
    Interrupt("question", response_schema={"type": "string"}),
    Send("node", {"x": {1, 2}}),
    Send("node", (1, 2), timeout=3),
    Command(update={"x": (1,)}, resume={"id": 1}, goto=[Send("a", 1), "b"], graph=Command.PARENT),
    Command(),
    Overwrite([1, 2]),
    AIMessage("text", id="1", tool_calls=TOOL_CALLS, usage_metadata=USAGE, response_metadata={"at": Decimal("1.0")}),
    AIMessageChunk("text", id="1", chunk_position="last"),
    HumanMessage([{"type": "text", "text": "x"}, "y"], name="me", example=True, extra={"more": (1,)}),
    SystemMessage("text"),
    ToolMessage("text", tool_call_id="1", artifact=Note("a", {1}), status="error"),
    ChatMessage("text", role="critic"),
    FunctionMessage("text", name="f"),
    RemoveMessage("1"),
    Document("text", metadata={"page": 3}),
    Note("a", {1, 2}),
    Plan(steps=["a"], note=Point(1, 2)),
    Colour.RED,
    Point(1, 2),
    (1, [2, (3,)], {4: frozenset({5})}),
    {1, "x", (2, 3), frozenset({4})},
    datetime(2026, 1, 2, tzinfo=UTC),
    date(2026, 1, 2),
    timedelta(seconds=1.5),
    UUID(int=1),
    b"bytes",
    bytearray(b"bytes"),
    1 << 100,
    float("inf"),
    None,
    True,
]


def shape(x: Any) -> Any:
    """Return data with the types of all parts."""
    if isinstance(x, dict):
        return dict, [(shape(key), shape(value)) for key, value in x.items()]
    if isinstance(x, (set, frozenset)):
        return type(x), frozenset(map(shape, x))
    if isinstance(x, (list, tuple)):
        return type(x), tuple(shape(item) for item in x)
    if isinstance(x, BaseModel):
        parts = (x.__dict__, x.__pydantic_extra__, sorted(x.__pydantic_fields_set__), x.__pydantic_private__)
        return type(x), [shape(part) for part in parts]
    if isinstance(x, (Interrupt, Send, Command, Overwrite, Note)):
        slots = getattr(type(x), "__slots__", ()) or tuple(vars(x))
        return type(x), [(name, shape(getattr(x, name))) for name in slots if not name.startswith("__")]
    return type(x), x


@pytest.fixture(scope="module")
def saver() -> Any:
    return workflows.LangGraphSaver(gp.MemoryStore())


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_back_as_they_were(saver: Any, value: Any) -> None:
    thread = config_of(next(number for number, one in enumerate(VALUES) if one is value))
    config = put(saver, thread, 1, {"value": value, "list": [value] * 3})
    saver.put_writes(config, [("value", value)], "task")
    found = saver.get_tuple(config)
    for again in (found.checkpoint["channel_values"]["value"], found.checkpoint["channel_values"]["list"][2]):
        assert shape(again) == shape(value)
    assert shape(found.pending_writes[0][2]) == shape(value)
    assert shape(saver.serde.loads_typed(saver.serde.dumps_typed(value))) == shape(value)


def test_array_comes_back(saver: Any) -> None:
    found = saver.get_tuple(put(saver, config_of("array"), 1, {"x": np.arange(6.0).reshape(2, 3)}))
    array = found.checkpoint["channel_values"]["x"]
    assert array.dtype == np.float64
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "value, message",
    [
        (
            NotRegistered(x=1),
            r"^channel_values\['bad'\] is of type .*\.NotRegistered, which is not registered: put @gp",
        ),
        ({"a": [AIMessage("x", additional_kwargs={"f": print})]}, r"\['a'\]\[0\]\.additional_kwargs\['f'\] is of type"),
        (Send("node", [NotRegistered(x=1)]), r"^channel_values\['bad'\]\.arg\[0\] is of type .*\.NotRegistered, which"),
        (Interrupt(1, response_schema=int), r"^channel_values\['bad'\]\.response_schema is of type type, which"),
        ([ValueError("x")], r"^channel_values\['bad'\]\[0\] is of type ValueError, which cannot be encoded"),
        (HumanMessage.model_construct(name="x"), r"^channel_values\['bad'\] has no value for the field 'content'"),
        (deque([1]), r"^channel_values\['bad'\] is of type collections\.deque, which cannot be encoded"),
        (Text("x"), r"^channel_values\['bad'\] is of type .*\.Text, a subclass of str: convert it to str"),
    ],
)
def test_other_types_are_refused_with_the_path(value: Any, message: str) -> None:
    with gp.MemoryStore() as store:
        saver: Any = workflows.LangGraphSaver(store)
        config = put(saver, config_of(), 1, {"good": 1})
        before = store.counts.transactions
        with pytest.raises(CodecError, match=message):
            put(saver, config, 2, {"good": 2, "bad": value})
        assert store.counts.transactions == before
        assert saver.get_tuple(config_of()).config == config


def test_type_that_is_no_longer_registered_is_named(monkeypatch: pytest.MonkeyPatch, saver: Any) -> None:
    config = put(saver, config_of("gone"), 1, {"x": [Note("a", {1})]})
    kind = codec_types.by_name["langgraph test Note"]
    monkeypatch.delitem(codec_types.by_name, kind.name)
    monkeypatch.delitem(codec_types.by_head, kind.head)
    with pytest.raises(
        CodecError, match=r"^channel_values\['x'\]\[0\] has the type 'langgraph test Note', which is not"
    ):
        saver.get_tuple(config)


def test_another_format_is_refused(saver: Any) -> None:
    with pytest.raises(ArgumentError, match="the data are in the format 'pickle', not 'gpu_pregel'"):
        saver.serde.loads_typed(("pickle", b""))


class Former:
    """What a release of another package had, and what it has now."""

    name: str

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)


def test_data_of_another_release_of_a_package_are_read() -> None:
    class Now(Former):
        pass

    def kept(parts: dict[str, Any]) -> dict[str, Any]:
        parts["rest"] = {key: parts.pop(key) for key in ["old"] if key in parts}
        return parts

    adapt(Former, "langgraph test Former", ("name", "old"))
    data = encode(Former(name="a", old=1))
    kind = codec_types.by_name.pop("langgraph test Former")
    del codec_types.by_head[kind.head]
    adapt(Now, "langgraph test Former", ("name", "rest", "new"), defaults={"new": [2]}, migrate=kept)
    found = decode(data)
    assert type(found) is Now
    assert vars(found) == {"name": "a", "rest": {"old": 1}, "new": [2]}
    assert "langgraph test Former" not in registered()


def test_types_of_langgraph_are_not_sent_to_workers(saver: Any) -> None:
    assert not [name for name in registered() if name.startswith(("langgraph.", "langchain."))]


PROGRAM = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("langgraph", "langchain_core"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import gpu_pregel.workflows
try:
    gpu_pregel.workflows.LangGraphSaver
except ImportError as error:
    print(error)
try:
    gpu_pregel.workflows.Nothing
except AttributeError as error:
    print(error)
"""


def test_package_is_imported_without_langgraph() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == [
        "gpu_pregel.workflows.LangGraphSaver needs the package langgraph.checkpoint.base: "
        "pip install gpu-pregel[langgraph]",
        "module 'gpu_pregel.workflows' has no attribute 'Nothing'",
    ]
