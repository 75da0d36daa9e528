import numpy as np
import pytest

from tests.engine.graphs import (
    EVERY_PASS,
    REWRITES,
    SELECTIONS,
    assert_close,
    expected,
    graph_of,
    implementations,
    lowered,
    operators,
    run,
)
from tests.models import filled
from tests.processor import PRODUCT
from tightship import _core
from tightship.engine.lower.pipeline import GRAPH_PASSES, pass_names, run_passes
from tightship.errors import GraphError, InputError
from tightship.planner import AliasKind


@pytest.fixture(scope="module")
def graph():
    """Something for every pass to do."""
    return graph_of(
        """g (float[1, 8, 9, 9] x) => (float[1, 8, 81] y, float[1, 8, 1, 1] mean,
              float[1, 81, 8] turned) {
            t = Transpose <perm = [1, 0, 2, 3]> (w)
            pp = Pad (x, around)
            c = Conv (pp, t)
            n = BatchNormalization (c, s, b, m, v)
            r = Relu (n)
            ii = Identity (r)
            e = Reshape (ii, split)
            p = Transpose <perm = [0, 2, 1, 3, 4]> (e)
            f = Reshape (p, join)
            d = Conv <pads = [1, 1, 1, 1]> (f, t)
            a = Add (d, r)
            u = Relu (a)
            mean = ReduceMean (u, image)
            g = Conv (u, k)
            uu = Reshape (u, even)
            a1 = Slice (uu, zero, four, last)
            a2 = Slice (uu, four, eight, last)
            a3 = Neg (a2)
            a4 = Concat <axis = -1> (a3, a1)
            a5 = Mul (uu, cosine)
            a6 = Mul (a4, sine)
            turned = Add (a5, a6)
            q = Add (g, u)
            z = Pow (q, two)
            i = Sigmoid (z)
            j = Mul (z, i)
            mm = ReduceMean (j, last)
            o = Sub (j, mm)
            h = Mul (o, o)
            l = ReduceMean (h, last)
            aa = Add (l, two)
            bb = Sqrt (aa)
            cc = Div (o, bb)
            dd = Reshape (cc, rows)
            ee = MatMul (dd, rows_turned)
            ff = Softmax (ee)
            gg = MatMul (ff, rows_other)
            hh = Reshape (gg, lines)
            jj = Gemm (hh, square)
            kk = Reshape (jj, flat)
            ll = Reshape (kk, lines)
            nn = Gemm <alpha = 2.0> (ll, square)
            y = Reshape (nn, flat)
        }""",
        w=filled(8, 8, 3, 3), s=filled(8), b=filled(8), m=filled(8), v=np.abs(filled(8)),
        k=filled(8, 8, 1, 1), split=np.array([1, 2, 4, 9, 9]), join=np.array([1, 8, 9, 9]),
        rows=np.array([1, 8, 81]), rows_turned=filled(1, 81, 8), rows_other=filled(1, 8, 81),
        flat=np.array([1, 8, 81]), two=np.array(2, np.float32),
        last=np.array([-1]), image=np.array([2, 3]), lines=np.array([-1, 81]),
        around=np.array([0, 0, 1, 1] * 2), square=filled(81, 81) / 9,
        even=np.array([1, 81, 8]), zero=np.array([0]), four=np.array([4]), eight=np.array([8]),
        cosine=filled(81, 8) / 99, sine=filled(1, 81, 8) / 99,
    )  # fmt: skip


def test_every_pass_does_its_part(graph):
    found = operators(run_passes(graph))
    assert found == [
        "Conv+Relu", "ChannelShuffle", "Conv+Add+Relu", "GlobalAveragePool", "Conv+Add",
        "Reshape", "Rotary", "Mul", "Swish", "LayerNormalization", "Reshape", "Attention", "MatMul",
        "Reshape", "MatMul+Mul", "Reshape",
    ]  # fmt: skip


LEFT_OUT = {
    "expand_power": {"Pow"},
    "expand_product": {"Gemm"},
    "fold_constants": {"Transpose", "BatchNormalization"},
    "fuse_attention": {"Softmax"},
    "common_subexpressions": {"Identity"},
    "pool_means": {"ReduceMean"},
    "lift_gemm": {"Gemm"},
    "fold_pad": {"Pad"},
    "recognize_rotary": {"Neg"},
    "recognize_activation": {"Sigmoid"},
    "recognize_normalization": {"ReduceMean"},
    "fold_batch_norm": {"BatchNormalization+Relu"},
    "shuffle_channels": {"Transpose"},
    "fuse_activation": {"Relu"},
    "fuse_residual": {"Add+Relu", "Add"},
}


ELSEWHERE = {
    "expand_loss": "test_expand_loss",
    "expand_einsum": "test_expand_einsum",
    "expand_lp_pool": "test_expand_lp_pool",
    "expand_outer": "test_expand_outer",
    "expand_quantized": "test_quantized",
    "convolve_planes": "test_convolve_planes",
    "fuse_depthwise": "test_fuse_depthwise",
    "lift_scale": "test_lift_scale",
    "merge_convolutions": "test_merge_convolutions",
    "multiply_pixels": "test_multiply_pixels",
    "multiply_quantized": "test_multiply_quantized",
    "read_stored_rows": "test_read_stored_rows",
    "recognize_group_norm": "test_recognize_group_norm",
    "recognize_quantized": "test_recognize_quantized",
    "scale_weights": "test_scale_weights",
    "split_batch_norm": "test_split_batch_norm",
    "widen_floats": "test_widen_floats",
    "sink_dequantize": "test_quantized",
    "split_integers": "test_split_integers",
    "split_recurrent": "test_split_recurrent",
    "transpose_gradients": "test_transpose_gradients",
    "split_recurrent_gradient": "test_split_recurrent_gradient",
    "fuse_quantize": "test_quantized",
}
"""Passes that this graph gives nothing to do, and the test module that has one for them."""


def test_every_pass_is_left_out_somewhere():
    assert set(LEFT_OUT) | set(ELSEWHERE) == set(REWRITES)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_pass_left_out_leaves_its_part(graph, name):
    kept = set(operators(run_passes(graph, [name])))
    assert kept & LEFT_OUT[name]
    assert kept != set(operators(run_passes(graph)))


def test_with_every_pass_left_out_the_graph_is_what_it_was(graph):
    assert run_passes(graph, REWRITES) is graph


@pytest.mark.parametrize("name", EVERY_PASS)
def test_results_do_not_depend_on_a_pass(graph, name):
    assert_close(run(graph, (name,)), expected(graph))


def test_results_do_not_depend_on_all_passes(graph):
    assert_close(run(graph), expected(graph))
    assert_close(run(graph, SELECTIONS), expected(graph))


def test_the_names_are_those_of_the_passes_each_once():
    assert set(pass_names()) == {p.__name__ for p in GRAPH_PASSES} | set(SELECTIONS)
    assert len(pass_names()) == len(set(pass_names()))


def test_what_only_the_reference_runs_is_refused_where_it_is_left_out():
    text = "g (float[2, 3, 3] x) => (float[2] y) { y = Det (x) }"
    assert implementations(graph_of(text))
    with pytest.raises(GraphError, match=r"\(ai.onnx Det\) needs `onnx.reference`"):
        implementations(graph_of(text), ("reference",))


def test_what_only_the_reference_runs_is_refused_within_a_graph_too():
    text = """g (bool c, float[2, 3, 3] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Det (x) },
                    else_branch = e () => (float[2] b) { b = Det (x) }> }"""
    with pytest.raises(GraphError, match=r"Det\) needs `onnx.reference`"):
        implementations(graph_of(text), ("reference",))


@pytest.mark.parametrize("name", ["fold", "", "Onednn", "fold_constants "])
def test_a_name_that_is_no_pass_is_refused_with_those_there_are(graph, name):
    with pytest.raises(InputError, match=f"Unknown pass `{name}`; .*fold_constants, .*onednn"):
        run_passes(graph, ["onednn", name])


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_selection_obeys_what_is_left_out(graph):
    kernels = [kernel for _, kernel, _ in implementations(graph)]
    assert {"onednn"} <= set(kernels) <= {"onednn", "native", PRODUCT}
    assert "onednn" not in {kernel for _, kernel, _ in implementations(graph, ("onednn",))}
    kinds = {s.kind for step in lowered(graph).steps for s in step.sharing}
    assert AliasKind.TIED in kinds
    kinds = {s.kind for step in lowered(graph, ("in_place",)).steps for s in step.sharing}
    assert AliasKind.TIED not in kinds


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_layouts_are_row_major_where_the_library_may_not_choose(graph):
    def layouts(without):
        steps = lowered(graph, without).steps
        return {o.desc.format for s in steps if "Conv" in s.operator for o in s.writes}

    assert layouts(("library_layouts",)) == {"abcd"}
    assert layouts(()) != {"abcd"}


def test_nodes_of_one_name_are_kept_apart():
    graph = graph_of(
        """g (float[2, 4] x) => (float[2, 4] y) {
            [same] a = MatMul (x, w)
            [same] b = Relu (a)
            [same] c = MatMul (b, w)
            [same] y = Relu (c)
        }""",
        w=filled(4, 4),
    )
    assert operators(run_passes(graph)) == ["MatMul+Relu", "MatMul+Relu"]
    assert_close(run(graph), expected(graph))
