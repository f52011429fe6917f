"""The distribution holds our four packages, whole, and no generic name."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "tique": ROOT,
    "tique_rewriter": ROOT / "rewriter",
    "tique_backends": ROOT / "backends",
    "tique_udfs": ROOT / "udfs",
}
KINDS = {".py", ".c", ".h", ".sql", ".out", ".control", ".typed"}
GENERIC = {"rewriter", "backends", "udfs", "tests", "benchmarks", "jepsen"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_top_level_names(unpacked):
    names = {entry.name for entry in unpacked.iterdir()}
    assert {name for name in names if not name.endswith(".dist-info")} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_is_left_out(unpacked, package):
    source = PACKAGES[package]
    wanted = {
        path.relative_to(source)
        for path in (source / package).rglob("*")
        if path.suffix in KINDS or path.name == "Makefile"
    }
    packed = {path.relative_to(unpacked) for path in (unpacked / package).rglob("*")}
    assert wanted
    assert wanted <= packed


def test_import_brings_in_no_generic_name(unpacked):
    program = (
        "import importlib, json, sys\n"
        f"sys.path.insert(0, {str(unpacked)!r})\n"
        f"modules = [importlib.import_module(name) for name in {list(PACKAGES)!r}]\n"
        "print(json.dumps([[m.__file__ for m in modules], sorted(sys.modules)]))\n"
    )
    output = subprocess.run(
        [sys.executable, "-I", "-c", program],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    files, modules = json.loads(output)
    assert all(Path(file).is_relative_to(unpacked) for file in files)
    assert not GENERIC & set(modules)
