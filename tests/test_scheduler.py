"""Turns: one at a time, in order, given back whatever happens."""

from __future__ import annotations

import threading
import time

import pytest

from generation.scheduler import Busy, Cancelled, Scheduler


def test_one_at_a_time_and_in_the_order_of_asking():
    scheduler = Scheduler()
    active, order = [], []

    def work(name):
        with scheduler.turn(name):
            active.append(name)
            assert len(active) == 1
            order.append(name)
            time.sleep(0.02)
            active.remove(name)

    threads = []
    for n in range(6):
        threads.append(threading.Thread(target=work, args=(f"s{n}",)))
        threads[-1].start()
        time.sleep(0.005)
    for thread in threads:
        thread.join(10)
    assert order == [f"s{n}" for n in range(6)]
    assert scheduler.waiting == 0


def test_an_error_gives_the_turn_back():
    scheduler = Scheduler()
    with pytest.raises(RuntimeError), scheduler.turn("a"):
        raise RuntimeError("out of memory")
    with scheduler.turn("b"):
        pass


def test_a_full_queue_says_so_at_once():
    scheduler = Scheduler(max_waiting=0)
    with scheduler.turn("a"):
        started = time.perf_counter()
        with pytest.raises(Busy), scheduler.turn("b"):
            pass
        assert time.perf_counter() - started < 0.1


def test_a_session_has_one_turn_at_most():
    scheduler = Scheduler()
    with scheduler.turn("a"), pytest.raises(Busy), scheduler.turn("a"):
        pass
    with scheduler.turn("a"):
        pass


def test_who_waits_can_leave():
    scheduler = Scheduler()
    with scheduler.turn("a"):
        leave = threading.Event()
        threading.Timer(0.05, leave.set).start()
        with pytest.raises(Cancelled), scheduler.turn("b", leave.is_set):
            pass
        assert scheduler.waiting == 0


def test_closing_ends_who_is_in_and_takes_nobody_else():
    scheduler = Scheduler()
    entered, ended = threading.Event(), threading.Event()

    def work():
        stopped = scheduler.stopping(None)
        with scheduler.turn("a", stopped):
            entered.set()
            while not stopped():
                time.sleep(0.01)
        ended.set()

    threading.Thread(target=work).start()
    assert entered.wait(5)
    scheduler.close(5)
    assert ended.wait(5)
    with pytest.raises(Busy), scheduler.turn("b"):
        pass


def test_a_stop_of_ones_own_still_stops():
    scheduler = Scheduler()
    assert not scheduler.stopping(None)()
    assert not scheduler.stopping(lambda: False)()
    assert scheduler.stopping(lambda: True)()
