"""Rows of control flow, sequences and optionals."""

from tightship.graph.operators.row import HANDS_ON, NOT_REAL, UNWRITTEN, Operator

ROWS = (
    Operator("If", "1 else_branch then_branch", half=HANDS_ON, objects="control.if_kernel",
        native="control.choice", gradient="control.if_rule", sized="sized.native.if_operator"),
    Operator("Loop", "* body", half=HANDS_ON, objects="control.loop",
        native="control.loop", gradient="loop_gradient.differentiate_iterations"),
    Operator("Optional", "1 type", half=HANDS_ON, objects="optional.optional_kernel",
        gradient=UNWRITTEN),
    Operator("OptionalGetElement", "1", half=HANDS_ON, objects="optional.get_element",
        gradient=UNWRITTEN),
    Operator("OptionalHasElement", "1", half=HANDS_ON, objects="optional.has_element",
        gradient=NOT_REAL),
    Operator("Scan", "* body directions num_scan_inputs scan_input_axes scan_input_directions "
        "scan_output_axes scan_output_directions", half=HANDS_ON, objects="control.scan",
        native="control.scan", gradient="loop_gradient.differentiate_iterations"),
    Operator("SequenceAt", "2", half=HANDS_ON, gradient=UNWRITTEN),
    Operator("SequenceConstruct", "*", half=HANDS_ON, gradient=UNWRITTEN),
    Operator("SequenceEmpty", "0 dtype", half=HANDS_ON, gradient=UNWRITTEN),
    Operator("SequenceErase", "2", half=HANDS_ON, gradient=UNWRITTEN),
    Operator("SequenceInsert", "3", half=HANDS_ON, gradient=UNWRITTEN),
    Operator("SequenceLength", "1", half=HANDS_ON, gradient=NOT_REAL),
    Operator("SequenceMap", "* body", half=HANDS_ON, objects="control.sequence_map",
        gradient=UNWRITTEN),
    Operator("ConcatFromSequence", "1 axis new_axis", half=HANDS_ON, gradient=UNWRITTEN),
    Operator("SplitToSequence", "2 axis keepdims", half=HANDS_ON, gradient=UNWRITTEN),
)  # fmt: skip
