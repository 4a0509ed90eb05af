"""Tests of functions as bytes for worker processes."""

from __future__ import annotations

import pickle
import threading
import traceback
from types import FunctionType
from typing import Any

import pytest

from gpu_pregel.host.agents.workers.function_pickles import dump_function


def test_a_traceback_shows_the_line_of_the_function() -> None:
    def fail() -> None:
        def inner() -> None:
            raise ValueError("on purpose")

        inner()

    loaded = pickle.loads(dump_function(fail))
    with pytest.raises(ValueError, match="on purpose") as caught:
        loaded()
    lines = "".join(traceback.format_exception(caught.value))
    assert "inner()" in lines
    assert lines.count(f'File "{__file__}"') >= 2
    assert 'raise ValueError("on purpose")' in lines


@pytest.mark.parametrize("name", ["<dynamic-code>", "<stdin>"])
def test_other_names_stay_as_they_are(name: str) -> None:
    """Also those of code that has no file, and strings that look like the name that cloudpickle uses."""

    def give() -> tuple[str, str]:
        return "<dynamic-code>", name

    code = give.__code__.replace(co_filename=name)
    function: Any = FunctionType(code, {}, None, None, give.__closure__)
    loaded = pickle.loads(dump_function(function))
    assert loaded() == ("<dynamic-code>", name)
    assert loaded.__code__.co_filename == name
    assert loaded.__code__ == code


def test_what_is_no_function_is_pickled_as_by_cloudpickle() -> None:
    class Setting:
        factor = 3

        def scale(self, value: int) -> int:
            return value * self.factor

    loaded = pickle.loads(dump_function({"setting": Setting(), "numbers": [1, 2.5, None]}))
    assert loaded["setting"].scale(5) == 15
    assert loaded["numbers"] == [1, 2.5, None]
    with pytest.raises(TypeError, match="cannot pickle"):
        dump_function(threading.Lock())
