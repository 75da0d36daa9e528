"""Options of `tightship serve` about a repository, and the rules that they give."""

import pytest

from tightship.cli.arguments import parser
from tightship.cli.main import main
from tightship.cli.serve_command import _control
from tightship.driver.oip.model_control import ALL, FREE_CONTROL, ModelControl


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ("models", FREE_CONTROL),
        ("--model-repository models", ModelControl((ALL,), takes_calls=False)),
        ("models --model-control-mode none", ModelControl((ALL,), takes_calls=False)),
        ("--model-repository r --model-control-mode explicit", ModelControl(())),
        (
            "--model-control-mode=explicit --load-model b --load-model a --load-model b",
            ModelControl(("b", "a")),
        ),
        ("--model-control-mode poll", ModelControl((ALL,), takes_calls=False, poll_s=15)),
        (
            "--model-control-mode=poll --repository-poll-secs=2",
            ModelControl((ALL,), takes_calls=False, poll_s=2),
        ),
    ],
)
def test_a_mode_decides_what_is_loaded_and_by_whom(given, rules):
    assert _control(parser().parse_args(["serve", *given.split()])) == rules


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--load-model a", "`--load-model` needs `--model-control-mode explicit`"),
        ("--load-model a --model-control-mode poll", "`--load-model` needs"),
        ("--repository-poll-secs 3", "needs `--model-control-mode poll`"),
        ("--model-control-mode poll --repository-poll-secs 0", "`0` is not a time"),
        ("--model-control-mode always", "invalid choice"),
        ("--model-repository /no/where", "model repository `/no/where` cannot be read"),
    ],
)
def test_options_that_do_not_fit_are_refused(capsys, given, said):
    try:
        code = main(["serve", *given.split()])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert said in capsys.readouterr().err
