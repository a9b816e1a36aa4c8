"""Who may use what there are few of: in turn, and nobody who gave up keeps a place."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from outvote.run.places import Places


def started(places: Places, name: str, told: list[str], first: bool = False) -> threading.Thread:
    """Somebody who wants a place, and waits in the row when this returns."""

    def use() -> None:
        with places.one(first):
            told.append(name)

    waiting = len(places._waiting)
    thread = threading.Thread(target=use)
    thread.start()
    until(lambda: len(places._waiting) > waiting)
    return thread


def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.001)


def test_places_are_given_in_the_order_of_asking_but_to_who_asks_one_alone() -> None:
    places, told = Places(), list[str]()
    with places.one():
        waiting = [started(places, name, told) for name in "abc"]
        waiting.append(started(places, "now", told, first=True))
    for thread in waiting:
        thread.join()
    assert told == ["now", "a", "b", "c"]


def test_there_are_as_many_places_as_were_said() -> None:
    places, told = Places(2), list[str]()
    with places.one(), places.one():
        thread = started(places, "a", told)
        assert told == []
    thread.join()
    assert told == ["a"]


def test_who_gives_up_leaves_the_row_or_passes_the_place_on() -> None:
    places = Places()
    with places.one():
        called = threading.Lock()
        places._waiting.append(called)
        places._give_up(called)
        assert not places._waiting
        with pytest.raises(ZeroDivisionError), Places().one():
            _ = 1 / 0
    places._take(first=False)
    places._give_up(threading.Lock())  # the place had come meanwhile
    with places.one():
        pass
