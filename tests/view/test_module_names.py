import pytest

from tightship.view.module_names import module_of


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("/encoder/layer.0/attention/MatMul", "/encoder/layer.0/attention"),
        ("encoder.layer.0.weight", "encoder.layer.0"),
        ("conv1", ""),
        ("/Relu", ""),
        ("", ""),
    ],
)
def test_modules_by_name(name, module):
    assert module_of(name) == module
