"""Templates: a model's graph with symbolic lengths, bound when a run brings input shapes."""

from tightship.engine.template.template import Template, rewritten_template, template_of

__all__ = ["Template", "rewritten_template", "template_of"]
