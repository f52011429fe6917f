"""Runs the blocks of a page, one after the other, as a reader would."""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import re
import shlex
import sys
import types
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import tique
from tique.cli._program import main

if TYPE_CHECKING:
    from tests.docs.blocks import Block

_DOCUMENTED = re.compile(
    r"(?P<scheme>(?P<engine>postgresql|monetdb)(?:\+\w+)?)"
    r"://\w+:\w+@[\w.]+(?::\d+)?/shop(?P<options>\?)?"
)


class Session:
    """A page's run on one engine: a namespace, a connection for SQL, the database.

    Parameters
    ----------
    engine
        The engine's name.
    url
        The database that stands for those of the page's URLs.
    """

    def __init__(self, engine: str, url: str) -> None:
        self._engine = engine
        self._url = url
        self._module = types.ModuleType("__main__")
        self._module.__dict__["URL"] = url
        self._runner = asyncio.Runner()
        self._sql: Any = None

    def run(self, block: Block) -> None:
        """Run a block, and compare what it prints."""
        text = self._here(block.text)
        if block.language == "console":
            self._console(block, text)
            return
        run = self._python if block.language == "python" else self._statements
        if block.refused is None:
            shown = run(text, block)
        else:
            shown = ""
            for statement in statements(text) if block.language == "sql" else [text]:
                shown = _expect(block, lambda one=statement: run(one, block))
        if block.output is not None:
            check_output(block, shown, block.output)

    def close(self) -> None:
        """Close what the page has left open."""
        for value in list(vars(self._module).values()):
            if isinstance(value, tique.AsyncConnection):
                self._runner.run(value.close())
            elif isinstance(value, tique.Connection):
                value.close()
            elif hasattr(value, "dispose"):
                disposed = value.dispose()
                if inspect.iscoroutine(disposed):
                    self._runner.run(disposed)
        if self._sql is not None:
            self._sql.close()
        self._runner.close()

    def _here(self, text: str) -> str:
        """The text with the test's database in place of the page's."""

        def url(found: re.Match[str]) -> str:
            if found["engine"] != self._engine:
                return found[0]
            _, _, rest = self._url.partition(":")
            options = found["options"] and ("&" if "?" in rest else "?")
            return f"{found['scheme']}:{rest}{options or ''}"

        return _DOCUMENTED.sub(url, text)

    def _python(self, text: str, block: Block) -> str:
        # Errors and docstrings name the page's lines.
        tree = ast.increment_lineno(ast.parse(text), block.line)
        code = compile(tree, block.page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        shown = io.StringIO()
        before = sys.modules["__main__"]
        sys.modules["__main__"] = self._module
        try:
            with redirect_stdout(shown):
                result = eval(code, vars(self._module))
                if inspect.iscoroutine(result):
                    self._runner.run(result)
        finally:
            sys.modules["__main__"] = before
        return shown.getvalue()

    def _statements(self, text: str, _block: Block) -> str:
        if self._sql is None:
            self._sql = tique.connect(self._url, autocommit=True)
        cursor = None
        for statement in statements(text):
            cursor = self._sql.execute(statement)
        if cursor is None or cursor.description is None:
            return ""
        names = [column[0] for column in cursor.description]
        rows = [["NULL" if v is None else str(v) for v in row] for row in cursor]
        return "\n".join(" | ".join(row) for row in [names, *rows])

    def _console(self, block: Block, text: str) -> None:
        for command, output in commands(text):
            program, *arguments = shlex.split(command, comments=True)
            assert program == "tique", f"{block}: a test runs no {program}"
            result = CliRunner().invoke(main, arguments, prog_name="tique")
            if result.exception and not isinstance(result.exception, SystemExit):
                raise result.exception
            if block.refused is None:
                assert result.exit_code == 0, f"{block}: {result.output}"
            else:
                assert result.exit_code != 0, f"{block}: {command} did not fail"
                assert block.refused in result.output, f"{block}: {result.output}"
            if output:
                check_output(block, result.output, output)


def statements(text: str) -> list[str]:
    """The statements of a block of SQL, each of which ends where a line ends."""
    found = re.split(r";[ \t]*(?:--[^\n]*)?(?:\n|$)", text)
    return [each for each in map(str.strip, found) if _without_comments(each)]


def _without_comments(sql: str) -> str:
    return re.sub(r"--[^\n]*", "", sql).strip()


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output below it."""
    found: list[tuple[str, str]] = []
    for line in text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), ""))
        elif found:
            command, output = found[-1]
            found[-1] = (command, f"{output}{line}\n")
    return found


def check_output(block: Block, shown: str, wanted: str) -> None:
    """Compare by words: pages and terminals break and align lines differently."""
    pattern = r"\s+".join(
        ".*?".join(map(re.escape, word.split("…"))) for word in wanted.split()
    )
    assert re.fullmatch(rf"\s*{pattern}\s*", shown, re.DOTALL), (
        f"{block} prints\n{shown}\nand not\n{wanted}"
    )


def _expect(block: Block, run: Any) -> str:
    """Run what is refused; the error's message."""
    with pytest.raises(tique.Error) as raised:
        run()
    names = {each.__name__ for each in raised.type.__mro__}
    assert block.refused in names or block.refused in str(raised.value), (
        f"{block}: {raised.type.__name__}: {raised.value}"
    )
    return str(raised.value)


def parse(block: Block) -> None:
    """Read a block without running it; an exception says what is wrong with it."""
    if block.language == "python":
        compile(block.text, block.page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    elif block.language == "console":
        for command, _ in commands(block.text):
            _parse_command(shlex.split(command, comments=True))
    elif block.language == "toml":
        import tomllib

        tomllib.loads(block.text)
    elif block.language == "json":
        import json

        json.loads(block.text)


def _parse_command(words: list[str]) -> None:
    """Check options and names of the programs that are ours."""
    from tests.docs.blocks import ROOT

    match words:
        case ["make", *targets]:
            makefile = (ROOT / "Makefile").read_text()
            for target in targets:
                if "=" not in target:
                    assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        case ["pip", "install", *packages]:
            import tomllib

            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            for package in packages:
                for extra in re.findall(r"\[([\w,]+)\]", package):
                    known = project["optional-dependencies"].keys()
                    assert set(extra.split(",")) <= known, package
        case ["tique", *arguments]:
            _parse_click(main, arguments)
        case ["python", "-m", "benchmarks", *arguments]:
            from benchmarks.cli import main as benchmarks

            _parse_click(benchmarks, arguments)
        case ["python", "-m", "jepsen", *arguments]:
            from jepsen.cli import main as jepsen

            _parse_click(jepsen, arguments)


def _parse_click(command: Any, arguments: list[str]) -> None:
    import click

    context = None
    while True:
        with suppress(click.exceptions.Exit):
            context = command.make_context(
                command.name, list(arguments), parent=context
            )
        if context is None or not isinstance(command, click.Group):
            return
        arguments = [*context._protected_args, *context.args]
        if not arguments:
            return
        name, *arguments = arguments
        found = command.get_command(context, name)
        assert found is not None, name
        command = found
