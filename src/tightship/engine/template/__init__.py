"""A model's graph for lengths that nobody has given yet."""

from tightship.engine.template.template import Template, rewritten_template, template_of

__all__ = ["Template", "rewritten_template", "template_of"]
