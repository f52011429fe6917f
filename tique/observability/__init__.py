"""OpenTelemetry: spans and metrics of this process's databases, once it is asked for.

Nothing of OpenTelemetry is imported before :func:`instrument` is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique import _observer
from tique.errors import InterfaceError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["instrument", "uninstrument"]


def instrument(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Give OpenTelemetry spans and metrics of all databases that the process has open.

    Parameters
    ----------
    tracer_provider, meter_provider
        Where they go; by default OpenTelemetry's global providers.

    Raises
    ------
    InterfaceError
        If opentelemetry-api is not installed, or this was called before.
    """
    if _observer.observer is not None:
        raise InterfaceError(
            "tique is instrumented already; call tique.observability.uninstrument() first"
        )
    try:
        from tique.observability._opentelemetry import Telemetry
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise InterfaceError(
            "opentelemetry-api is not installed; run: pip install 'tique[otel]'"
        ) from error
    _observer.observer = Telemetry(tracer_provider, meter_provider)


def uninstrument() -> None:
    """Give OpenTelemetry nothing from now on. Idempotent."""
    _observer.observer = None
