"""Rows of control flow, sequences and optionals."""

from tightship.graph.operators.row import NOT_REAL, UNWRITTEN, Operator

ROWS = (
    Operator("If", "1 else_branch then_branch", objects="control.if_kernel",
        gradient="control.if_rule"),
    Operator("Loop", "* body", objects="control.loop", gradient="turns_back.differentiate_iterations"),
    Operator("Optional", "1 type", objects="optional.optional_kernel", gradient=UNWRITTEN),
    Operator("OptionalGetElement", "1", objects="optional.get_element", gradient=UNWRITTEN),
    Operator("OptionalHasElement", "1", objects="optional.has_element", gradient=NOT_REAL),
    Operator("Scan", "* body directions num_scan_inputs scan_input_axes scan_input_directions "
        "scan_output_axes scan_output_directions", objects="control.scan",
        gradient="turns_back.differentiate_iterations"),
    Operator("SequenceAt", "2", gradient=UNWRITTEN),
    Operator("SequenceConstruct", "*", gradient=UNWRITTEN),
    Operator("SequenceEmpty", "0 dtype", gradient=UNWRITTEN),
    Operator("SequenceErase", "2", gradient=UNWRITTEN),
    Operator("SequenceInsert", "3", gradient=UNWRITTEN),
    Operator("SequenceLength", "1", gradient=NOT_REAL),
    Operator("SequenceMap", "* body", objects="control.sequence_map", gradient=UNWRITTEN),
    Operator("ConcatFromSequence", "1 axis new_axis", gradient=UNWRITTEN),
    Operator("SplitToSequence", "2 axis keepdims", gradient=UNWRITTEN),
)  # fmt: skip
