"""`generation.threads`: one core inside, as many as before afterwards, whatever happens."""

import pytest
import torch

from generation.threads import one_thread


@pytest.fixture(autouse=True)
def restored():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_one_core_inside_and_the_usual_number_afterwards():
    with one_thread(2):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_an_error_leaves_the_usual_number():
    with pytest.raises(KeyError), one_thread(2):
        raise KeyError
    assert torch.get_num_threads() == 2


def test_where_one_is_usual_nothing_is_touched():
    torch.set_num_threads(2)
    with one_thread(1):
        assert torch.get_num_threads() == 2
