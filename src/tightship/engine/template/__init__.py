"""A model's graph for lengths that nobody has given yet."""

from tightship.engine.template.template import Template, template_of

__all__ = ["Template", "template_of"]
