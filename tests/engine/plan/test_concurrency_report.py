"""Reports of plans for several workers."""

from dataclasses import replace

from tightship.engine.plan.concurrency_report import concurrency_json, concurrency_text
from tightship.planner.parallel.concurrency import Concurrency, PlanChoice

SERIAL = PlanChoice("one after another", 2048, 3, 6, 60)
FREE = PlanChoice("as soon as they can", 3072, 0, 3, 30)
FOUND = Concurrency(2, (SERIAL, FREE), 1, (), 60)


def test_both_plans_and_the_price_are_said():
    text = concurrency_text(FOUND)
    assert "steps on 2 workers" in text
    assert "chosen: as soon as they can, 1.00 KiB more than for one worker" in text
    assert "--threads" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_bound_says_what_it_passed_over():
    text = concurrency_text(replace(FOUND, chosen=0, bound_bytes=2048, edges=((0, 1),)))
    assert "chosen: one after another, as many bytes as for one worker" in text
    assert "passed over: as soon as they can, above the bound of 2.00 KiB" in text


def test_little_to_gain_names_threads():
    assert "`--threads 2`" in concurrency_text(replace(FOUND, chosen=0))


def test_nothing_is_said_of_one_worker():
    assert concurrency_text(None) == ""


def test_json_has_plans_and_waits():
    found = concurrency_json(replace(FOUND, chosen=0, edges=((0, 1), (2, 4))))
    assert found["edges"] == [[0, 1], [2, 4]]
    assert [plan["longest_chain"] for plan in found["plans"]] == [6, 3]
    assert [plan["speed"] for plan in found["plans"]] == [1.0, 2.0]
    assert (found["chosen"], found["added_bytes"], found["bound_bytes"]) == (0, 0, None)
