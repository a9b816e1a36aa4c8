"""All that the workbench shows: the folders, what is known of each, and one table of causes.

One thread looks for what is new, however many browsers there are; pages read what it has found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from outvote.serve.causes import Causes
from outvote.serve.places import Place, places_below
from outvote.serve.track import Track

_WALK = 5  # so many looks between two at the folders
_AT_ONCE = 500  # findings that are held on their way into the table


class Shelf:
    """What there is to see. `refresh` brings it up to date."""

    def __init__(self, roots: Sequence[Path], known: Callable[[], dict[str, str]]) -> None:
        self.roots = tuple(roots)
        self.causes = Causes()
        self._known = known
        self._tracks: dict[str, Track] = {}
        self._looks = 0
        self._one = threading.Lock()  # at a time brings it up to date

    def refresh(self, *, walk: bool = False) -> None:
        """Look at every store that has changed; now and then, for new folders."""
        with self._one:
            if walk or self._looks % _WALK == 0:
                self._walk()
            self._looks += 1
            for track in list(self._tracks.values()):
                self._read(track)
            self.causes.know(self._known())

    def _walk(self) -> None:
        there = {place.key: place for place in places_below(self.roots)}
        for key in self._tracks.keys() - there.keys():
            del self._tracks[key]
            self.causes.forget(key)
        for key in there.keys() - self._tracks.keys():
            self._tracks[key] = Track(there[key])

    def _read(self, track: Track) -> None:
        ended, key, found = track.ended, track.place.key, track.refresh()
        some = list(islice(found, _AT_ONCE))
        if track.ended is not None and track.ended is not ended:
            self.causes.forget(key)  # the last word: what is not in it has gone
        while some:
            self.causes.put(key, track.created, some)
            some = list(islice(found, _AT_ONCE))
            track.version += 1

    def tracks(self) -> list[Track]:
        """Every folder, the latest first; those at work before all others."""
        busy = {"running": 0, "paused": 0}
        found = list(self._tracks.values())
        return sorted(found, key=lambda t: (busy.get(t.state, 1), -t.began, t.place.name))

    def track(self, key: str) -> Track | None:
        return self._tracks.get(key)

    def holding(self, fingerprint: str) -> list[Place]:
        """The folders that hold a finding, where it was met last first."""
        keys = self.causes.places_of(fingerprint)
        return [self._tracks[key].place for key in keys if key in self._tracks]
