import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import (
    bench_block_product,
    bench_cache,
    bench_cache_types,
    bench_decode,
    bench_large,
    bench_planner,
    bench_resource,
    bench_reuse,
    bench_share,
    bench_text,
    bench_training,
    bench_virtual,
    models,
    record,
    training_steps,
    turn,
)
from benchmarks.buffers import GENERATORS, short
from benchmarks.models import Stored

import tightship
from tests import decoders
from tests.planner.planted import planted
from tests.processor import needs_avx512
from tests.text.vocabularies import chat_model
from tests.training.nets import mlp
from tests.zoo.attention import Heads
from tests.zoo.bert import bert
from tests.zoo.gpt2 import Size, gpt2
from tests.zoo.networks import STATIC
from tightship.cost.squeeze import priced
from tightship.cost.training import updating_graph
from tightship.frontend.onnx import read_bytes
from tightship.graph.backward import Sgd
from tightship.planner.format import write_csv


def run(monkeypatch, capsys, benchmark, *arguments):
    """Return the JSON that a benchmark prints; it must record nothing."""
    monkeypatch.setattr("sys.argv", [benchmark.__name__, "--json", "--quick", *arguments])
    monkeypatch.delattr(record, "append")
    benchmark.main()
    return json.loads(capsys.readouterr().out)


def test_every_suite_of_the_planner_solves_a_small_problem(monkeypatch, capsys, tmp_path):
    made = planted(1, 6, 64)
    for folder, name in (("minimalloc", "A.64.csv"), ("torch_traces", "t.csv")):
        (tmp_path / folder).mkdir()
        write_csv(tmp_path / folder / name, made)
    rows = run(monkeypatch, capsys, bench_planner, "--data", str(tmp_path))["rows"]
    assert {row["suite"] for row in rows} == set(bench_planner.SUITES)
    assert all(row["lower_bound_bytes"] <= row["peak_bytes"] <= 64 for row in rows)
    assert all(row["minimalloc_ms"] is None for row in rows)


def test_many_buffers_are_measured_at_every_count(monkeypatch, capsys, tmp_path):
    for name in bench_large.LARGE[:1]:
        write_csv(tmp_path / name, short(50))
    monkeypatch.setattr(bench_large, "_shell", lambda *_: None)
    monkeypatch.setattr(bench_large, "_working_set", lambda *_: 0)
    found = run(
        monkeypatch, capsys, bench_large, "--counts", "40,80", "--folder", str(tmp_path)
    )  # fmt: skip
    assert [row["ratio"] >= 1 for row in found["large"]] == [True]
    assert [row["buffers"] for row in found["scale"]] == [40, 80] * len(GENERATORS)
    assert all(row["fast_ratio"] >= row["quality_ratio"] >= 1 for row in found["scale"])
    assert sum("fast_slope" in row for row in found["scale"]) == len(GENERATORS)


def test_a_shell_and_a_process_of_its_own_place_buffers(tmp_path):
    row = bench_large.scale_row("short", 40, tmp_path)
    assert row["shell_s"] > 0
    assert row["working_set_bytes"] >= 0


@pytest.mark.parametrize("count", [3, 200])
@pytest.mark.parametrize("kind", sorted(GENERATORS))
def test_a_generator_makes_the_same_buffers_again(kind, count):
    one, other = GENERATORS[kind](count), GENERATORS[kind](count)
    assert one.count == count
    assert np.array_equal(one.columns(), other.columns())


def test_reuse_is_measured_and_its_rule_checked(monkeypatch, capsys, tmp_path):
    def buffer(index, lower):
        lifetime = {"lower": lower, "upper": lower + 1}
        return {"id": index, "name": str(index), "size": 8, "alignment": 1,
                "live_intervals": [lifetime]}  # fmt: skip

    problem = {
        "pools": [{"capacity": 16, "reserved_ranges": []}],
        "buffers": [buffer(index, index) for index in range(3)],
        "constraints": {},
        "cost_model": {"reuse_penalties": [{"first": 0, "second": 1, "cost": 3}]},
    }
    content = json.dumps({"profile": "dsa_rp_v1", "problem": problem}).encode()
    (tmp_path / "tiny.json.gz").write_bytes(gzip.compress(content))
    (row,) = run(monkeypatch, capsys, bench_reuse, str(tmp_path))
    assert (row["first_fit"], row["packed"], row["reduced"]) == (3, 3, 0)
    monkeypatch.setitem(bench_reuse.FIRST_FIT, "tiny", 2)
    with pytest.raises(AssertionError, match="tiny"):
        bench_reuse.row(tmp_path / "tiny.json.gz", 10)


@needs_avx512  # a product that runs on NumPy does not run step by step
def test_patterns_of_use_alternate_and_agree(monkeypatch, tmp_path):
    case = STATIC["residual"]()
    file = Stored(tmp_path / "net.onnx", tmp_path / "net.npz")
    file.model.write_bytes(case.model)
    np.savez(file.feeds, **case.feeds)
    monkeypatch.setattr(bench_cache, "stored", lambda *_: file)
    found = bench_cache.measured("net", tmp_path, 3)
    variants = found["variants"]
    assert set(variants) == {*bench_cache.VARIANTS, bench_cache.PLANNED, bench_cache.YARDSTICK}
    assert all(row["least_ms"] > 0 for row in variants.values())
    assert variants["created"]["primitives_ms"] > variants["on_demand"]["primitives_ms"]
    assert variants["on_demand"]["faults"] > variants["pools"]["faults"]
    assert "pools/planned" in bench_cache.table("net", found)


@pytest.mark.slow
def test_sharing_is_measured_with_all_its_parts(monkeypatch, capsys, tmp_path):
    arguments = ("--width", "64", "--models", "products", "--folder", str(tmp_path))
    found = run(monkeypatch, capsys, bench_share, *arguments)
    assert found["together"]["processes"] == bench_share.PROCESSES
    assert len(found["together"]["contenders"]) == 4
    loaded = found["loading"]["products"]
    assert loaded["imported"] == []
    assert bench_share.ratio(loaded) > 0
    assert loaded["growth"]["file_bytes"] > 16 * 64 * 64 * 4
    assert {"load", "first run", "kernels generated"} <= loaded["parts_ms"].keys()
    assert "products: ONNX Runtime takes" in bench_share.table(found["together"], found["loading"])


def test_our_side_of_a_training_step_makes_steps_on_request(tmp_path):
    case = mlp()
    model, feeds = tmp_path / "net.onnx", tmp_path / "net.npz"
    model.write_bytes(case.model)
    np.savez(feeds, **case.feeds)
    command = [sys.executable, "-m", "benchmarks.own_step", str(model), str(feeds), "1", "0.1"]
    side = training_steps.Side(command)
    taken = side.turn(2)
    side.close()
    assert len(taken["walls"]) == len(taken["cpus"]) == 2
    assert taken["peak"] > side.start["imported"]
    assert side.start["planned"] > 0


def test_a_tree_that_is_not_the_one_imported_is_refused(tmp_path):
    turn.check_source(str(Path(tightship.__file__).parents[1]))
    with pytest.raises(SystemExit, match=r"`tightship@.*` is hidden by `.*tightship`\. Run "):
        turn.check_source(str(tmp_path))


def test_training_steps_say_where_torch_is_missing():
    with pytest.raises(SystemExit, match="has no torch, which"):
        next(training_steps.steps("false"))


@pytest.mark.parametrize("network", [bert, gpt2])
def test_blocks_by_hand_keep_what_goes_from_block_to_block(network):
    case = network(2, 16, Size(3, Heads(2, 16), 50, 32))
    graph = updating_graph(read_bytes(case.model), Sgd())
    schedule, _ = priced(graph)
    ends = bench_training.block_ends(schedule)
    kept = [schedule.values[schedule.steps[end].writes[0]] for end in ends]
    assert [value.size_bytes for value in kept] == [2 * 16 * 32 * 4] * 4
    row = bench_training.by_blocks(graph)
    assert row["peak_mb"] < row["base_mb"]
    assert 20 < row["added_percent"] < 40


@pytest.mark.slow
def test_a_decoder_is_measured_against_its_peer(monkeypatch, capsys):
    rows = run(monkeypatch, capsys, bench_decode)["rows"]
    assert [(row["model"], row["threads"]) for row in rows] == [
        ("llama", 1), ("llama", 2), ("attention23", 1), ("attention23", 2)
    ]  # fmt: skip
    assert all(row["tightship_step_tokens_per_s"] > 0 for row in rows)
    assert rows[0]["onnxruntime_gained_bytes"] > 0


@pytest.mark.slow
def test_a_language_model_is_measured_from_its_file(monkeypatch, capsys, tmp_path):
    path = tmp_path / "chat.gguf"
    path.write_bytes(chat_model())
    found = run(monkeypatch, capsys, bench_text, str(path), "--kinds", "tightship")
    assert [(row["command"], row["threads"]) for row in found["speed"]] == [
        (command, threads) for threads in (1, 2) for command in ("prompt 16", "steps 16")
    ]
    kinds = ["tightship", bench_text.SHARED, *bench_text.COMMANDS]
    assert [row["kind"] for row in found["first_token"]] == kinds
    assert all(row["wall_s"] > 0 and row["processor_s"] > 0 for row in found["first_token"])
    assert [row["threads"] for row in found["together"]] == [1, 2]
    assert all(row["ratio_to_one"] > 0 for row in found["together"])
    assert found["memory"][0]["pss_bytes"] > 0


def test_caches_of_all_types_are_measured(monkeypatch, capsys):
    size = decoders.Size(layers=1, vocabulary=5000, positions=128)
    monkeypatch.setattr(bench_cache_types, "SIZE", size)
    monkeypatch.setattr(bench_cache_types, "STEPS", 2)
    monkeypatch.setattr(bench_cache_types, "TYPES", (None, "int8"))
    rows = run(monkeypatch, capsys, bench_cache_types)["rows"]
    assert [row["cache"] for row in rows] == ["model's", "int8"]
    assert [row["state_bytes_per_token"] for row in rows] == [128, 48]
    assert 0 < rows[1]["logits_rms_error"] < 0.1
    assert all(row["step_ms"] > 0 and row["gained_bytes"] > 0 for row in rows)


def test_products_by_blocks_are_those_of_the_peer(monkeypatch, capsys):
    monkeypatch.setattr(bench_block_product, "TURN_S", 0)
    monkeypatch.setattr(bench_block_product, "ARRAY_BYTES", 1 << 20)
    rows = run(monkeypatch, capsys, bench_block_product)["rows"]
    assert len(rows) == 2 * len(bench_block_product.QUICK)
    assert all(row["difference"] < 1e-5 for row in rows)


@pytest.mark.parametrize("benchmark", [bench_resource, bench_virtual])
def test_sources_of_native_loops_are_where_they_are_looked_for(benchmark):
    """A folder of the core that moves leaves a program that cannot be linked."""
    found = benchmark.sources()
    assert all(each.is_file() for each in found)
    assert {"map.cpp", "stealing_resource.cpp", "pages.cpp"} <= {each.name for each in found}


def test_models_of_two_batches_are_kept_beside_each_other(tmp_path):
    kept = models.stored("squeezenet", tmp_path)
    before = kept.model.read_bytes()
    assert models.stored("squeezenet@2", tmp_path).model.exists()
    assert kept.model.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 4
