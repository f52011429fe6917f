"""``tique explain``."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn

import click
from rich.syntax import Syntax

from tique._connect import connect
from tique.cli._output import console, json_option, print_json
from tique.cli._target import opened, url_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

_ABOUT_FORMS = ("form of ", "no uncommitted fold")


@click.command("explain")
@url_argument
@click.argument("sql")
@click.option(
    "--param",
    "parameters",
    metavar="VALUE",
    multiple=True,
    help="The value of the next %s in SQL: a JSON number, string, true, false or "
    "null; anything else is text.",
)
@json_option
def explain_command(
    url: str, sql: str, parameters: Sequence[str], as_json: bool
) -> None:
    """Show a rewritten statement, its tables' forms, and the engine's plan.

    SQL is a SELECT, UPDATE, DELETE or INSERT ... SELECT; it is not run.
    """
    values = [_value(text) for text in parameters] or None
    with opened(url, instead="EXPLAIN") as database:
        # Its errors name places in SQL, which EXPLAIN would shift.
        database.rewriters["pyformat"].plan(sql, values is not None)
        with connect(url, autocommit=True) as connection:
            rows = connection.execute(f"EXPLAIN {sql}", values).fetchall()
    (_, statement), *rest = rows
    forms = [row for row in rest if row[0].startswith(_ABOUT_FORMS)]
    plans = [row for row in rest if row not in forms]
    if as_json:
        print_json(
            {
                "statement": statement,
                "forms": [{"name": name, "text": text} for name, text in forms],
                "plans": [{"name": name, "text": text} for name, text in plans],
            }
        )
    else:
        _show(statement, forms, plans, console())


def _show(
    statement: str,
    forms: Sequence[tuple[str, str]],
    plans: Sequence[tuple[str, str]],
    output: Console,
) -> None:
    highlighted = Syntax("", "sql", background_color="default").highlight(statement)
    highlighted.rstrip()
    output.print("Rewritten statement", style="bold")
    output.print(highlighted, soft_wrap=True)
    if forms:
        output.print("\nForms of tables", style="bold")
    for name, text in forms:
        line = f"{name.removeprefix('form of ')}: {text}"
        output.print(line, soft_wrap=True, markup=False, highlight=False)
    for name, text in plans:
        output.print(f"\n{name.replace('_', ' ').capitalize()}", style="bold")
        output.print(text.rstrip(), soft_wrap=True)


def _value(text: str) -> object:
    try:
        value = json.loads(text, parse_float=Decimal, parse_constant=_refuse)
    except ValueError:
        return text
    return text if isinstance(value, list | dict) else value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
