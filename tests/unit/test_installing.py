"""pip installs tique as the README says, where nothing else is installed.

pip builds in an environment of its own that has the build requirements alone, and
installs into an empty one.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, blocks
from tests.effort import effort

pytestmark = [pytest.mark.engine_free, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
QUIET = ("--quiet", "--disable-pip-version-check", "--no-input")
USES = {
    "duckdb": "import duckdb, pyarrow",
    "monetdb": "import pymonetdb, tique_backends.monetdb.engine",
    "postgresql": "import psycopg, tique_backends.postgresql.engine",
    "sqlalchemy": "import tique.sqlalchemy.duckdb, tique.sqlalchemy.asynchronous",
    "cli": "from tique.cli import main; main(['--help'], standalone_mode=False)",
    "otel": "from tique.observability import *",
    "fast": "import sqlglot.tokenizer_core as c; assert not c.__file__.endswith('.py')",
}
"""What each extra brings, used."""


def run(*command, folder):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_"))}
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip_wheel(source, folder):
    """Build a wheel in an environment that has the build requirements alone."""
    pip = (sys.executable, "-m", "pip", "wheel", *QUIET)
    run(*pip, "--no-deps", "-w", str(folder), str(source), folder=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, made of the source distribution."""
    folder = tmp_path_factory.mktemp("built")
    sdist = ("-m", "hatchling", "build", "-t", "sdist", "-d", str(folder))
    run(sys.executable, *sdist, folder=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    return pip_wheel(archive, folder)


@pytest.fixture
def install(tmp_path):
    """Install something into an empty environment; its interpreter."""

    def installed(*requirements):
        folder = tmp_path / "empty"
        venv.create(folder, with_pip=True)
        python = folder / "bin" / "python"
        run(python, "-m", "pip", "install", *QUIET, *requirements, folder=tmp_path)
        return python

    return installed


def run_ten_lines(python, folder):
    page = blocks("README.md", PAGES["README.md"].read_text())
    (block,) = [block for block in page if "import tique" in block.text]
    assert block.output
    assert run(python, "-c", block.text, folder=folder) == block.output


def test_a_checkout_builds(tmp_path):
    """What ``pip install '.[duckdb]'`` does first."""
    assert pip_wheel(ROOT, tmp_path).name.startswith("tique-")


@pytest.mark.parametrize("extra", effort(["duckdb"], list(USES)))
def test_every_extra_brings_what_it_is_for(install, wheel, tmp_path, extra):
    """The README's ten lines run beside it."""
    python = install(f"{wheel}[{','.join({'duckdb', extra})}]")
    run(python, "-c", USES[extra], folder=tmp_path)
    run_ten_lines(python, tmp_path)


@pytest.mark.parametrize("release", effort([], ["2.0.44", "2.0.*"]))
def test_another_sqlalchemy_is_refused_by_name(install, wheel, tmp_path, release):
    """By pip where the extra is asked for, else by the dialects."""
    python = install(f"{wheel}[duckdb]", f"sqlalchemy[asyncio]=={release}")
    for dialect in ("duckdb", "monetdb", "postgresql", "asynchronous"):
        program = (
            f"try: import tique.sqlalchemy.{dialect}\n"
            "except ImportError as error: print(error)"
        )
        said = run(python, "-c", program, folder=tmp_path)
        assert said.startswith("tique's dialects need SQLAlchemy 2.1; installed is 2.0")
    both = (f"{wheel}[sqlalchemy]", f"sqlalchemy=={release}")
    with pytest.raises(AssertionError, match=r"ResolutionImpossible|conflict"):
        run(python, "-m", "pip", "install", *QUIET, *both, folder=tmp_path)
