"""Put the compiled sequencer into the wheel."""

from __future__ import annotations

import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_ENGINES = ("duckdb", "monetdb")


class SequencerHook(BuildHookInterface[Any]):
    """Compile the sequencer, and tag the wheel with the platform that it is for.

    An editable install stays as it is: it compiles at the first ``connect()``. So does
    a wheel that was built without a C compiler, which the build says; such a wheel has
    the tag of pure Python.
    """

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is packed.

        Parameters
        ----------
        version
            Of the wheel: ``"standard"`` or ``"editable"``.
        build_data
            What hatchling packs, changed in place.
        """
        if version != "standard":
            return
        sys.path.insert(0, str(Path(self.root) / "udfs"))
        from tique_udfs.build import PACKAGED, BuildError, compile_into

        self._folder = tempfile.TemporaryDirectory()
        try:
            libraries = [
                compile_into(Path(self._folder.name), engine) for engine in _ENGINES
            ]
        except BuildError as error:
            self.app.display_warning(
                f"the wheel carries no compiled sequencer; every machine that it is "
                f"installed on needs a C compiler: {error}"
            )
            return
        package = f"tique_udfs/{PACKAGED.name}"
        for library in libraries:
            build_data["force_include"][str(library)] = f"{package}/{library.name}"
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"

    def finalize(
        self, version: str, build_data: dict[str, Any], artifact_path: str
    ) -> None:
        """Remove what was compiled.

        Parameters
        ----------
        version, build_data, artifact_path
            As hatchling gives them; not used.
        """
        if self._folder is not None:
            self._folder.cleanup()
