"""Messages of every class, with numbers that no rule would allow among them."""

from hypothesis import strategies as st

from tightship.driver.protocol import messages, replies
from tightship.driver.protocol.codec import TEXT_BYTES_MAX
from tightship.driver.protocol.messages import CacheFiles
from tightship.driver.types.model import Model, Operand, Operation, Subgraph
from tightship.driver.types.request import Request, RequestArgument, RequestPool
from tightship.driver.types.status import ErrorStatus

SHORT = st.text(max_size=20)
NARROW = st.integers(-(2**31), 2**31 - 1)
WIDE = st.integers(-(2**63), 2**63 - 1)


def few(entries):
    return st.lists(entries, max_size=2).map(tuple)


FILES = few(NARROW)

st.register_type_strategy(int, NARROW)
st.register_type_strategy(str, SHORT)
st.register_type_strategy(
    CacheFiles, st.builds(CacheFiles, FILES, FILES, st.binary(min_size=32, max_size=32))
)
st.register_type_strategy(
    replies.DriverCapabilities,
    st.builds(
        replies.DriverCapabilities,
        st.integers(0, 2**32 - 1),
        st.lists(SHORT, max_size=5).map(tuple),
        st.integers(0, 32),
        st.integers(0, 32),
    ),
)
st.register_type_strategy(
    replies.Failed,
    st.builds(replies.Failed, st.sampled_from(ErrorStatus), st.text(max_size=TEXT_BYTES_MAX // 4)),
)

st.register_type_strategy(float, st.floats(allow_nan=False))
st.register_type_strategy(
    Subgraph,
    st.builds(
        Subgraph,
        few(st.builds(Operand)),
        few(st.builds(Operation, NARROW, few(NARROW), few(NARROW))),
        few(NARROW),
        few(NARROW),
    ),
)
st.register_type_strategy(
    Model,
    st.builds(
        Model,
        st.from_type(Subgraph),
        few(st.from_type(Subgraph)),
        st.binary(max_size=9),
        few(NARROW),
    ),
)
st.register_type_strategy(
    Request,
    st.builds(
        Request,
        few(st.builds(RequestArgument)),
        few(st.builds(RequestArgument)),
        few(st.builds(RequestPool)),
    ),
)

CALL_CLASSES = messages.Call.__args__
REPLY_CLASSES = replies.Reply.__args__

calls = st.one_of(*[st.from_type(kind) for kind in CALL_CLASSES])
answers = st.one_of(*[st.from_type(kind) for kind in REPLY_CLASSES])
numbers = st.integers(0, 2**64 - 1)
