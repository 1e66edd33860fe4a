"""Flow, `[[flow]]`: an association and its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anabranch.scenario import tables


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Flow(tables.Flow):
    """One association and its traffic, `[[flow]]`.

    >>> Flow(kind="file", size="8 MB").kind
    'file'
    """

    @classmethod
    def of_clip(cls, clip: str, *, frames: int | None = None, **keys: Any) -> Flow:
        """Returns the flow of a clip: `photographs`, `synthetic` or a file, of which the first `frames` are sent.

        The clip is encoded as by `anabranch video encode`, and stored in the user's cache folder. `keys` are those of a
        flow. Needs `pip install 'anabranch[video]'`. Raises `VideoError` if the clip cannot be read or encoded.
        """
        from anabranch.video.clip_cache import cached_clip
        from anabranch.video.user_clip import ReadOptions

        return cls(kind="video", trace=str(cached_clip(clip, ReadOptions(frames=frames)).folder / "trace.csv"), **keys)
