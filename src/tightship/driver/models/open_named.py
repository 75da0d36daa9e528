"""Loaded models whose files leave lengths of inputs unknown."""

from tightship.driver.models.open_subgraph_sequence import Rows
from tightship.model import Model


class OpenNamed:
    """Model that also runs with shapes other than those it was loaded for.

    Attributes:
        model: Model with programs for some shapes.
        programs: The model alone.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.programs = (model,)
        self.close = model.close

    def at(self, inputs: Rows) -> tuple[Model, Rows]:
        """Return the model, and the dimensions of its outputs for inputs of these dimensions.

        Raises:
            TightshipError: As from `Model.output_shapes`.
        """
        model = self.model
        shapes = model.output_shapes(dict(zip(model.input_names, inputs, strict=True)))
        return model, tuple(shape or () for shape in shapes.values())
