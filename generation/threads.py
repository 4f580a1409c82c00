"""How many cores torch uses for a piece of work, said before it and not left to chance.

After a parallel operation torch's threads wait for the next by spinning, and so keep the cores from
whatever comes next. A choice among 150,000 tokens gains little from a second core and costs the
compiled step after it the same core: qwen-0.5b made 49 full steps a second (`benchmarks.decode`)
while both shared it, and 86 since they do not.
torch keeps the number for each thread, but a new thread starts with what was set last anywhere;
hence all parallel work says what it wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(usual: int) -> Iterator[None]:
    """torch computes on one core inside, and in this thread on `usual` cores afterwards."""
    if usual > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if usual > 1:
            torch.set_num_threads(usual)
