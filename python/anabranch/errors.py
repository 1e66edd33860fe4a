"""Everything this package raises of its own accord descends from one exception, `AnabranchError`.

The message is what the command would print: it names the file, the key and what to do about it. `ScenarioError`,
`SchemeError` and `RunError` come from the native module; the others are raised by the modules they are named after.

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
    "FigureError",
    "PaperError",
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
    """A folder of traces cannot be read, or is not what a run wrote."""


class SweepError(AnabranchError):
    """A sweep is invalid, or did not finish."""


class PlanError(AnabranchError):
    """A plan of a sweep cannot be read, or something in it is wrong."""


class CacheError(AnabranchError):
    """Finished runs cannot be kept or read back."""


class ExecutorError(AnabranchError):
    """An executor cannot be reached, or has stopped."""


class ResultsError(AnabranchError):
    """A folder of results cannot be read or written, or lacks what was asked of it."""


class StatisticsError(AnabranchError):
    """What was asked for cannot be computed from these values."""


class FigureError(AnabranchError):
    """A figure cannot be drawn from what was given."""


class PaperError(AnabranchError):
    """The data of a paper cannot be read, something in it is wrong, or it has no such experiment."""


class ReportError(AnabranchError):
    """A report cannot be made from what is there."""


class QlogError(AnabranchError):
    """A file is no qlog, or something in it is wrong."""


class TransferError(AnabranchError):
    """An association over real sockets could not be opened, or failed."""


class VideoError(AnabranchError):
    """A clip, a bitstream or a file of arrivals cannot be read, or ffmpeg cannot do what was asked of it."""
