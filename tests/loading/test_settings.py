"""Settings that a caller gives: workers, and what does not go with them."""

import pytest

from tightship.errors import InputError
from tightship.loading.settings import settings_of, with_workers

NONE = (None, None)


def of(workers, threads=None, **beside):
    return settings_of(None, threads, (), workers, 1 << 20, beside)


@pytest.mark.parametrize("workers", [NONE, (1, None)])
def test_one_worker_is_none(workers):
    found = of(workers, tune="file")
    assert (found.workers, found.workers_memory, found.limit_bytes) == (1, None, None)


def test_workers_have_a_bound_and_a_limit():
    found = of((3, "1KiB"), tune=None)
    assert (found.workers, found.workers_memory, found.limit_bytes) == (3, 1024, 1 << 20)
    assert of((2, None)).workers_memory is None
    assert with_workers(of(NONE), (2, 0), None, {}).workers_memory == 0


@pytest.mark.parametrize(
    ("workers", "threads", "beside", "message"),
    [
        ((2, None), 2, {}, "one thread each"),
        ((0, None), 1, {}, "from 1 to 1024"),
        ((1025, None), 1, {}, "from 1 to 1024"),
        ((None, "1MiB"), 1, {}, "give `workers` too"),
        ((1, 0), 1, {}, "give `workers` too"),
        ((2, "lots"), 1, {}, "workers_memory"),
        ((2, -1), 1, {}, "workers_memory"),
        ((2, None), 1, {"tune": "file"}, "`tune` does not go with `workers=2`"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(workers, threads, beside, message):
    with pytest.raises(InputError, match=message):
        of(workers, threads, **beside)
