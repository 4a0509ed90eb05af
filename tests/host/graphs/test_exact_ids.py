"""Ids in tables: each column holds them exactly, or is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, FormatError
from tests.packages import needs

pandas = needs("pandas", "test")

NOON = datetime.datetime(2020, 1, 1, 12)
EARLY = pandas.Timestamp(1, tz="UTC"), pandas.Timestamp(2, tz="UTC")


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "ids",
    [
        [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 2, 5, 30)],
        [b"a", "a"],
        [7, 7.0],
        [NOON.replace(tzinfo=datetime.UTC), NOON],
        [NOON.replace(tzinfo=datetime.UTC), NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))],
        [Decimal(1), 1],
        [Colour.RED, 2],
        [True, 1],
        [datetime.timedelta(1), pandas.Timedelta(1)],
        [EARLY[0], NOON.replace(tzinfo=datetime.UTC)],
        [1, 2**64],
        [-1, 2**63],
        [datetime.time(1, tzinfo=datetime.UTC), datetime.time(2, tzinfo=datetime.UTC)],
        [(1,), (1.0,)],
    ],
    ids=repr,
)
def test_ids_that_no_dtype_holds(ids: list[Any], tmp_path: Path) -> None:
    graph = gp.Graph.from_edgelist(ids, ["x", "y"], directed=True)
    components = gp.connected_components(gp.Graph.from_edgelist(ids, ids))
    for column in (graph.to_pandas()["source"], components.to_pandas()["vertex"]):
        assert column.dtype == object
        assert sorted(map(repr, column)) == sorted(map(repr, ids))
    with pytest.raises(ArgumentTypeError, match="the ids in column 'source' cannot be stored in a table"):
        graph.to_arrow()
    with pytest.raises(ArgumentTypeError, match=r"m\.csv: the ids in column 'vertex' cannot be stored in a table"):
        components.save(tmp_path / "m.csv")
    with pytest.raises(FormatError, match=r"m\.parquet: \.parquet files require ids that are all"):
        graph.save(tmp_path / "m.parquet")
    assert list(tmp_path.iterdir()) == []


def test_the_error_names_ids_of_different_types() -> None:
    with pytest.raises(ArgumentTypeError, match=r"7 is of type int, 7\.0 of type float.*: use 64-bit integers or st"):
        gp.Graph.from_edgelist([7, 7.0], [8, 9]).to_arrow()


@pytest.mark.parametrize(
    ("ids", "dtype", "kind"),
    [
        (EARLY, "datetime64[ns, UTC]", "timestamp[ns, tz=UTC]"),
        ([pandas.Timestamp(1), pandas.Timestamp("2020")], "datetime64[ns]", "timestamp[ns]"),
        ([pandas.Timedelta(1), pandas.Timedelta(2)], "timedelta64[ns]", "duration[ns]"),
        ([NOON, NOON + datetime.timedelta(1)], "datetime64[us]", "timestamp[us]"),
        ([np.datetime64(1, "ns"), np.datetime64(2, "ns")], "datetime64[ns]", "timestamp[ns]"),
        ([np.datetime64("2020-01"), np.datetime64("2020-02")], "datetime64[s]", "date32[day]"),
        ([1, 2**63], "uint64", "uint64"),
        ([0, 1], "int64", "int64"),
        ([0.5, 1.5], "float64", "double"),
        ([(0, 1), (1, 1)], "object", "list<item: int64>"),
        ([b"a", b"b"], "object", "binary"),
        ([Decimal("0.1"), Decimal("2")], "object", "decimal128(2, 1)"),
        ([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], "object", "date32[day]"),
    ],
    ids=repr,
)
def test_columns_of_ids_of_one_type(ids: list[Any], dtype: str, kind: str) -> None:
    graph = gp.Graph.from_edgelist(ids, [*ids[1:], ids[0]], directed=True)
    column = graph.to_pandas()["source"]
    assert str(column.dtype) == dtype
    assert sorted(column) == list(ids)
    assert str(graph.to_arrow().schema.field("source").type).replace("element", "item") == kind
    assert set(map(str, gp.connected_components(graph).to_pandas().dtypes)) == {dtype}


def test_nanoseconds_stay_distinct() -> None:
    late = pandas.Timestamp(10**9 + 1, tz="UTC")
    times = pandas.DataFrame({"source": EARLY, "target": [late, late]})
    graph = gp.Graph.from_pandas(times, directed=True)
    assert graph.to_pandas()["source"].tolist() == list(EARLY)
    assert gp.Graph.from_arrow(graph, directed=True).to_arrow() == graph.to_arrow()


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_time_zones_of_arrow_and_parquet_remain(unit: str, tmp_path: Path) -> None:
    # At 1603585800 and an hour later, clocks in Oslo show half past two.
    factor = {"s": 1, "us": 10**6, "ns": 10**9}[unit]
    kind = pyarrow.timestamp(unit, "Europe/Oslo")
    moments = [pyarrow.array([seconds * factor], kind) for seconds in (1603585800, 1603589400)]
    table = pyarrow.table(dict(zip(("source", "target"), moments, strict=True)))
    pyarrow.parquet.write_table(table, tmp_path / "times.parquet")
    for graph in (gp.Graph.from_arrow(table), gp.read_graph(tmp_path / "times.parquet")):
        assert graph.num_vertices == 2
        found = graph.to_arrow()
        assert found["source"].type.tz == "Europe/Oslo"
        assert found["source"].cast("int64").to_pylist() != found["target"].cast("int64").to_pylist()
        assert found["source"].cast(kind)[0] == moments[0][0]
