"""Uses of a session, one at a time."""

import pytest

import tightship
from tests import decoders
from tightship.errors import InputError


def test_a_session_in_use_refuses_others_and_keeps_its_pages() -> None:
    with tightship.load(decoders.llama()) as model:
        pool = tightship.SessionPool("1MiB", at_cap="evict")
        session = model.session(16, pool=pool)
        session.step([1, 2, 3])
        with session._used():
            with pytest.raises(InputError, match="Another thread uses the session"):
                session.truncate(1)
            assert not session._idle.evict()
        assert session._idle.evict()
        assert pool.used_bytes == 0
        session.close()
        with pytest.raises(InputError, match="The session was closed"), session._used():
            pass
