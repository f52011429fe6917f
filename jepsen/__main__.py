"""Entry point of `python -m jepsen`."""

from jepsen.cli import main

main(prog_name="python -m jepsen")
