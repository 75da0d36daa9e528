"""A model's graph for lengths that nobody has given yet."""

from tightship.engine.template.template import Declared, Template, template_of

__all__ = ["Declared", "Template", "template_of"]
