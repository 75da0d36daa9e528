from tests.difference.pictures import chain, plan, step, tensor
from tightship.difference.matching import match


def pairs(found, old, new):
    return {new.rectangles[n].name: old.rectangles[o].name for n, o in found.tensors.items()}


def test_equal_plans_match_whole():
    old = chain(64, 128, 64)
    found = match(old, old)
    assert found.steps == {0: 0, 1: 1, 2: 2}
    assert found.tensors == {0: 0, 1: 1, 2: 2}
    assert found.reversed().steps == found.steps


def test_a_step_more_is_left_out_and_those_behind_it_match_by_name():
    old = chain(64, 128, 64, names=["a", "b", "c"])
    new = chain(
        64, 256, 128, 64, names=["a", "n", "b", "c"], operators=["Op0", "Sin", "Op1", "Op2"]
    )
    assert pairs(match(old, new), old, new) == {"a": "a", "b": "b", "c": "c"}


def test_numbers_that_a_node_more_shifts_do_not_mislead():
    """Numbered names would take the second of four for another tensor of that number."""
    operators = ["Conv", "Relu", "Conv", "Relu", "Conv", "Relu"]
    sizes = [64, 128, 256, 512, 1024, 2048]
    old = chain(*sizes, names=list("123456"), operators=operators)
    new = chain(
        64, 64, *sizes[1:], names=list("1234567"), operators=["Conv", "Relu", *operators[1:]]
    )
    found = pairs(match(old, new), old, new)
    assert {name: found.get(name) for name in "4567"} == {"4": "3", "5": "4", "6": "5", "7": "6"}


def test_plans_without_a_common_name_match_by_structure():
    operators = ["Conv", "Relu", "MatMul"]
    old = chain(64, 128, 64, names=["a", "b", "c"], operators=operators)
    new = chain(64, 128, 64, names=["x", "y", "z"], operators=operators)
    assert pairs(match(old, new), old, new) == {"x": "a", "y": "b", "z": "c"}


def test_steps_that_changed_places_match_by_name():
    names, operators = ["a", "b", "c"], ["Sin", "Cos", "Tan"]
    old = chain(64, 64, 64, names=names, operators=operators)
    new = chain(64, 64, 64, names=["b", "a", "c"], operators=["Cos", "Sin", "Tan"])
    assert match(old, new).steps == {0: 1, 1: 0, 2: 2}


def test_scratch_matches_by_its_step():
    def made(name):
        return plan(
            [step("one", "Conv")],
            [tensor("a", 64, 0, 0, 1), tensor(f"{name}.scratch", 64, 64, 0, 1, kind="scratch")],
        )

    old, new = made("one"), made("two")
    assert match(old, new).tensors == {0: 0, 1: 1}
