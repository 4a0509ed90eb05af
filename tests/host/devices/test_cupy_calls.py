"""Tests that the calls of CuPy exist; importing CuPy needs no GPU, although using it does."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel
from gpu_pregel.host.devices import cupy_calls

_PACKAGE = Path(gpu_pregel.__file__).parent
_SOURCES = sorted(path for folder in ("", "host", "kernels") for path in (_PACKAGE / folder).rglob("*.py"))


def _parse_call(text: str) -> ast.Call:
    tree = ast.parse(text, mode="eval").body
    assert isinstance(tree, ast.Call)
    return tree


def _lookup(name: str) -> Any:
    import cupy

    found = cupy
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _signature(name: str) -> inspect.Signature:
    """Return the signature of a callable, from the first line of its docstring for Cython functions without one."""
    function = _lookup(name)
    documented = [line.strip() for line in str(inspect.getdoc(function)).split("\n")]
    try:
        signature = inspect.signature(function)
    except ValueError:
        signature = None
    if signature is None or set(signature.parameters) >= {"args", "kwargs"}:
        line = next((line for line in documented if line.startswith("__init__(")), documented[0])
        typed = re.fullmatch(r"[\w.]+\((.*)\)(?: -> .*)?", line)
        assert typed, f"{name} is documented as {line!r}"
        parameters = re.sub(r"(?<![\w.=])[\w.]+ (?=\w)", "", typed[1])  # Cython writes types before names
        namespace: dict[str, Any] = {"_malloc": None}
        exec(f"def function({parameters}): pass", namespace)
        signature = inspect.signature(namespace["function"])
    assert signature is not None
    first = next(iter(signature.parameters), None)
    return signature.replace(parameters=list(signature.parameters.values())[1:]) if first == "self" else signature


@pytest.mark.nvidia
@pytest.mark.parametrize("text", cupy_calls.CALLS)
def test_a_declared_call_binds_to_the_real_function(text: str) -> None:
    call = _parse_call(text)
    signature = _signature(ast.unparse(call.func))
    positional = [argument.id for argument in call.args if isinstance(argument, ast.Name)]
    assert len(positional) == len(call.args)
    bound = signature.bind(*positional, **{str(keyword.arg): None for keyword in call.keywords})
    assert [name for name in bound.arguments if name in positional] == positional
    assert all(bound.arguments[name] == name for name in positional)


def _calls_made() -> Iterator[str]:
    """Yield the declared form of each call in ``cupy_calls``."""
    declared = {ast.unparse(_parse_call(text).func): text for text in cupy_calls.CALLS}
    by_last = {name.rsplit(".", 1)[-1]: name for name in declared}
    assert len(by_last) < len(declared)
    for node in ast.walk(ast.parse(inspect.getsource(cupy_calls))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        text = ast.unparse(node.func)
        if text.startswith("np."):
            continue
        name = text.removeprefix("cupy.")
        if name not in declared:
            owner = {"event": "cuda.Event", "end": "cuda.Event", "stream": "cuda.Stream", "device": "cuda.Device"}.get(
                text.split(".", 1)[0]
            )
            name = by_last[node.func.attr] if owner is None else f"{owner}.{node.func.attr}"
        call = _parse_call(declared[name])
        assert len(node.args) == len(call.args), text
        assert [one.arg for one in node.keywords] == [one.arg for one in call.keywords], text
        yield declared[name]


def test_the_table_lists_exactly_the_calls_made() -> None:
    assert set(_calls_made()) == set(cupy_calls.CALLS)


@pytest.mark.nvidia
def test_an_invalid_call_is_detected() -> None:
    for name, arguments in (("cuda.get_elapsed_time", 3), ("ndarray.set", 3), ("cuda.MemoryPointer.memset_async", 4)):
        with pytest.raises(TypeError, match="too many"):
            _signature(name).bind(*range(arguments))
    with pytest.raises(TypeError, match="unexpected"):
        _signature("ndarray.get").bind(into=None)
    assert list(_signature("cuda.MemoryPointer.memset_async").parameters) == ["value", "size", "stream"]


@pytest.mark.nvidia
def test_devices_and_streams_are_context_managers() -> None:
    import cupy

    for kind in (cupy.cuda.Device, cupy.cuda.Stream):
        assert {"__enter__", "__exit__"} <= set(dir(kind))


@pytest.mark.nvidia
def test_attributes_of_a_real_array() -> None:
    import cupy

    memory = cupy.cuda.UnownedMemory(0x1000, 4096, None, 0)
    array = cupy.ndarray((16,), np.uint32, cupy.cuda.MemoryPointer(memory, 0))
    assert cupy_calls.pointer(array) == 0x1000
    part = array[4:7]
    assert cupy_calls.pointer(part) == 0x1010
    assert (part.size, part.nbytes, part.dtype, part.ndim, part.flags.c_contiguous) == (3, 12, np.uint32, 1, True)
    assert not array[::2].flags.c_contiguous
    signed = array.view(np.int64)
    assert (signed.size, signed.dtype, cupy_calls.pointer(signed)) == (8, np.int64, 0x1000)
    assert re.match(r"\d+\.\d+", cupy_calls.version())


def test_no_other_module_imports_cupy() -> None:
    importing = set()
    for path in _SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] in ("cupy", "cupyx") for name in names):
                importing.add(path.name)
    assert len(_SOURCES) > 50
    assert importing == {"cupy_calls.py"}
