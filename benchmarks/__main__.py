"""Entry point of `python -m benchmarks`."""

from benchmarks.cli import main

main(prog_name="python -m benchmarks")
