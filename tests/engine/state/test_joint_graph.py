"""Graphs for a token of each of several sessions."""

import tightship
from tests.text.vocabularies import chat_model
from tightship.engine.state.joint_graph import joint_graph, named


def test_products_stand_once_and_what_reads_caches_for_each_session() -> None:
    with tightship.load(chat_model()) as model, model.session(64) as session:
        decoder = session._programs.decoder
        one, joint = decoder.graph(1, last=False), joint_graph(decoder, 4)
    count = {
        operator: [sum(n.operator == operator for n in g.nodes) for g in (one, joint)]
        for operator in ("MatMul", "RMSNormalization", "RotaryEmbedding", "Attention")
    }
    assert count["Attention"][1] == 4 * count["Attention"][0]
    assert all(a == b for name, (a, b) in count.items() if name != "Attention")
    assert joint.value(decoder.logits).shape == (1, 4, 70)
    for cache in decoder.caches:
        for i in range(4):
            assert joint.value(named(cache.pair.past, i)).shape == cache.shape
            assert named(cache.pair.present, i) in joint.outputs
