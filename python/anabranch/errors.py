"""Exceptions of this package, which all derive from `AnabranchError`.

The message is the one that the command prints: it names the file, the key and a remedy. `ScenarioError`, `SchemeError`
and `RunError` come from the native module. The others are raised by the modules that they are named after.

    try:
        anabranch.run("two-path.toml", "cmt", seed=1)
    except anabranch.errors.ScenarioError as error:
        print(error)
"""

from __future__ import annotations

from anabranch._native import AnabranchError, RunError, ScenarioError, SchemeError

__all__ = [
    "AnabranchError",
    "CacheError",
    "ExecutorError",
    "ExperimentError",
    "FigureError",
    "PlanError",
    "ReportError",
    "ResultsError",
    "RunError",
    "ScenarioError",
    "SchemeError",
    "StatisticsError",
    "SweepError",
    "TraceError",
    "TransferError",
    "VideoError",
]


class TraceError(AnabranchError):
    """A folder of traces cannot be read, or does not contain the traces of a run."""


class SweepError(AnabranchError):
    """A sweep is invalid, or did not finish."""


class PlanError(AnabranchError):
    """A plan of a sweep cannot be read or is invalid."""


class CacheError(AnabranchError):
    """Finished runs cannot be stored or read."""


class ExecutorError(AnabranchError):
    """An executor cannot be reached, or has stopped."""


class ResultsError(AnabranchError):
    """A folder of results cannot be read or written, or lacks requested content."""


class StatisticsError(AnabranchError):
    """A statistic cannot be computed from these values."""


class FigureError(AnabranchError):
    """A figure cannot be drawn from the given data."""


class ExperimentError(AnabranchError):
    """Experiments or claims cannot be read or are invalid, or the requested experiment does not exist."""


class ReportError(AnabranchError):
    """A report cannot be made from the given data."""


class QlogError(AnabranchError):
    """A file is not a qlog, or its content is invalid."""


class TransferError(AnabranchError):
    """An association over real sockets could not be opened, or failed."""


class VideoError(AnabranchError):
    """A clip, a bitstream or a file of arrivals cannot be read, or ffmpeg failed."""
