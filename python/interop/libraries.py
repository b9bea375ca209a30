"""Libraries over the package: each writes, reads and compares."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import dask.bag
import dask.dataframe
import duckdb
import fsspec
import numpy
import pandas
import polars
import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest
import tqdm
import xarray
import zarr

import holdfast
from holdfast.spec import HoldfastFileSystem


@pytest.fixture(params=["memory", "volume"])
def fs(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Any]:
    """The file system of fsspec over an empty file system."""
    if request.param == "memory":
        inside = holdfast.memory()
    else:
        inside = holdfast.Volume(tmp_path / "data.hf", create=True, size=256 << 20)
    with inside:
        yield HoldfastFileSystem(volume=inside, skip_instance_cache=True)


@pytest.fixture
def url(tmp_path: pathlib.Path) -> Iterator[str]:
    """The address of a volume, for libraries that take one: `{}` is the path."""
    image = tmp_path / "data.hf"
    holdfast.Volume(image, create=True, size=256 << 20).close()
    yield f"holdfast:///{{}}?volume={image}"
    fs, _ = fsspec.url_to_fs(f"holdfast:///?volume={image}")
    fs.inside.close()
    HoldfastFileSystem.clear_instance_cache()


def frame() -> pandas.DataFrame:
    return pandas.DataFrame(
        {
            "number": numpy.arange(10_000),
            "part": [f"part{n % 4}" for n in range(10_000)],
            "real": numpy.linspace(0, 1, 10_000),
        }
    )


def test_pyarrow_parquet_and_datasets(fs: Any) -> None:
    table = pyarrow.Table.from_pandas(frame(), preserve_index=False)
    arrow = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fs))
    pyarrow.parquet.write_table(table, "/table.parquet", filesystem=arrow)
    assert pyarrow.parquet.read_table("/table.parquet", filesystem=arrow).equals(table)
    pyarrow.dataset.write_dataset(
        table, "/set", filesystem=arrow, format="parquet", partitioning=["part"]
    )
    found = pyarrow.dataset.dataset(
        "/set", filesystem=arrow, format="parquet", partitioning=["part"]
    )
    assert len(found.files) == 4
    # Partitions are text of the other kind.
    back = found.to_table().sort_by("number").select(table.column_names).cast(table.schema)
    assert back.equals(table.sort_by("number"))
    half = found.to_table(filter=pyarrow.dataset.field("part") == "part1")
    assert half.num_rows == 2500
    info = arrow.get_file_info("/table.parquet")
    assert info.size == fs.info("/table.parquet")["size"] and info.is_file


def test_columns_are_taken_by_all(fs: Any) -> None:
    fs.pipe({f"/dir/{n}": b"x" * n for n in range(1000)})
    walk = fs.inside.walk("/")
    sizes = {f"/dir/{n}": n for n in range(1000)}
    table = pyarrow.table(walk)
    files = table.filter(pyarrow.compute.equal(table["type"], "file"))
    assert dict(zip(files["path"].to_pylist(), files["size"].to_pylist())) == sizes
    polar = polars.DataFrame(walk)
    polar_files = polar.filter(polars.col("type") == "file")
    assert dict(zip(polar_files["path"], polar_files["size"])) == sizes
    columns = walk.columns()
    total = duckdb.sql("select sum(size), count(*) from columns where type = 'file'").fetchall()
    assert total == [(sum(range(1000)), 1000)]
    panda = pandas.DataFrame.from_arrow(walk)
    assert panda[panda["type"] == "file"]["size"].sum() == sum(range(1000))
    everything = pyarrow.table(fs.inside.bulkstat(paths="str"))
    assert set(files["path"].to_pylist()) < set(everything["path"].to_pylist())


def test_pandas(url: str) -> None:
    expected = frame()
    expected.to_csv(url.format("table.csv"), index=False)
    pandas.testing.assert_frame_equal(pandas.read_csv(url.format("table.csv")), expected)
    expected.to_parquet(url.format("table.parquet"))
    pandas.testing.assert_frame_equal(pandas.read_parquet(url.format("table.parquet")), expected)
    expected.to_json(url.format("table.json"), orient="records", lines=True)
    back = pandas.read_json(url.format("table.json"), orient="records", lines=True)
    assert back["number"].tolist() == expected["number"].tolist()


def test_polars(fs: Any) -> None:
    expected = polars.from_pandas(frame())
    with fs.open("/table.parquet", "wb") as file:
        expected.write_parquet(file)
    with fs.open("/table.parquet", "rb") as file:
        assert polars.read_parquet(file).equals(expected)
    with fs.open("/table.csv", "wb") as file:
        expected.write_csv(file)
    with fs.open("/table.csv", "rb") as file:
        assert polars.read_csv(file).select("number", "part").equals(
            expected.select("number", "part")
        )


def test_duckdb(fs: Any) -> None:
    numbers = frame()
    base = duckdb.connect()
    base.register_filesystem(fs)
    base.execute("copy numbers to 'holdfast:///numbers.parquet' (format parquet)")
    base.execute("copy numbers to 'holdfast:///numbers.csv' (format csv, header)")
    for name in ("numbers.parquet", "numbers.csv"):
        query = f"select count(*), sum(number), max(part) from 'holdfast:///{name}'"
        assert base.execute(query).fetchone() == (10_000, sum(range(10_000)), "part3")
    base.execute(
        "copy numbers to 'holdfast:///parted' (format parquet, partition_by (part))"
    )
    query = "select count(*) from 'holdfast:///parted/*/*.parquet' where part = 'part2'"
    assert base.execute(query).fetchone() == (2500,)


def test_zarr(fs: Any) -> None:
    expected = numpy.arange(100 * 100, dtype="f8").reshape(100, 100)
    store = zarr.storage.FsspecStore.from_mapper(fs.get_mapper("/array.zarr"))
    array = zarr.create_array(store, shape=(100, 100), chunks=(10, 10), dtype="f8")
    array[:] = expected
    assert len(fs.find("/array.zarr")) > 100
    back = zarr.open_array(store, mode="r")
    assert numpy.array_equal(back[:], expected)
    assert numpy.array_equal(back[5:17, 3:95], expected[5:17, 3:95])


def test_xarray(fs: Any) -> None:
    expected = xarray.Dataset(
        {"field": (("x", "y"), numpy.random.default_rng(1).random((40, 50)))},
        coords={"x": numpy.arange(40)},
    )
    store = zarr.storage.FsspecStore.from_mapper(fs.get_mapper("/set.zarr"))
    expected.to_zarr(store, consolidated=False)
    back = xarray.open_zarr(store, consolidated=False)
    xarray.testing.assert_identical(back.load(), expected)


def test_dask(url: str) -> None:
    expected = frame()
    parts = dask.dataframe.from_pandas(expected, npartitions=5)
    parts.to_parquet(url.format("parts"), write_index=False)
    back = dask.dataframe.read_parquet(url.format("parts")).compute(scheduler="threads")
    back = back.sort_values("number").reset_index(drop=True)
    assert back["number"].tolist() == expected["number"].tolist()
    assert back["part"].astype(str).tolist() == expected["part"].tolist()
    lines = dask.bag.from_sequence(["a", "b", "c"], npartitions=3)
    # A volume is open in one process: other schedulers than threads need a mount.
    lines.to_textfiles(url.format("lines-*.txt"), scheduler="threads")
    read = dask.bag.read_text(url.format("lines-*.txt")).compute(scheduler="threads")
    assert sorted(line.strip() for line in read) == ["a", "b", "c"]


def test_tqdm_takes_the_progress(fs: Any) -> None:
    fs.pipe({f"/{n}": b"" for n in range(500)})
    with tqdm.tqdm(total=500, disable=False, file=open("/dev/null", "w")) as bar:
        fs.inside.read_many([f"/{n}" for n in range(500)], progress=bar.update)
        assert bar.n == 500
