"""Values between stages, and sets of stages that are not a model."""

import pytest

from tests.cluster.test_splitting import chain
from tests.cluster.test_stage_file import stages_of
from tightship.cluster.stage_graph import CALLER, StageGraph
from tightship.errors import InputError


def test_a_skip_goes_to_the_stage_that_reads_it():
    graph = StageGraph.of(stages_of(chain(skip=True), 3))
    pairs = {(flow.sender, flow.receiver) for flow in graph.flows}
    assert pairs == {(CALLER, 0), (0, 1), (1, 2), (0, 2), (2, CALLER)}
    assert graph.inputs == {"x": "1x64 float32"}


def test_a_stage_with_a_missing_input_is_refused():
    stages = stages_of(chain(), 3)
    with pytest.raises(InputError, match="which no stage before it computes; give all stages"):
        StageGraph.of(stages[1:])
    with pytest.raises(InputError, match="which no stage before it computes"):
        StageGraph.of([stages[0], stages[2]])
    with pytest.raises(InputError, match="which no stage before it computes"):
        StageGraph.of(stages[::-1])


def test_a_stage_whose_results_are_not_taken_is_refused():
    with pytest.raises(InputError, match="which no stage behind it takes"):
        StageGraph.of(stages_of(chain(), 3)[:2])


def test_stages_of_other_models_and_none_are_refused():
    first, *_ = stages_of(chain(), 2)
    _, second = stages_of(chain(tied=True), 2)
    with pytest.raises(InputError, match="are stages of different models"):
        StageGraph.of([first, second])
    with pytest.raises(InputError, match="0 stages were given"):
        StageGraph.of([])


def test_names_of_inputs_are_checked():
    graph = StageGraph.of(stages_of(chain(), 2))
    with pytest.raises(InputError, match=r"`x` is missing; the model's inputs are `x` \(1x64"):
        graph.divided({})
