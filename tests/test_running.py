"""Stop flags by session."""

import threading

from ui.running import Running


def test_a_stop_reaches_the_runs_of_its_own_session_only():
    running = Running()
    with running.run("a") as mine, running.run("b") as other:
        running.stop("a")
        assert mine.is_set()
        assert not other.is_set()


def test_nothing_to_stop_is_fine():
    Running().stop("nobody", wait=1)


def test_an_ended_run_is_forgotten():
    running = Running()
    with running.run("a"):
        assert running.active("a")
    assert not running.active("a")


def test_stopping_can_wait_for_the_end():
    running, ended = Running(), []

    def work(started: threading.Event) -> None:
        with running.run("a") as flag:
            started.set()
            flag.wait(5)
            ended.append(True)

    started = threading.Event()
    thread = threading.Thread(target=work, args=[started])
    thread.start()
    started.wait(5)
    running.stop("a", wait=5)
    assert ended
    thread.join()
