"""Rows of operators that choose elements by index or condition."""

from tightship.graph.operators.row import ALLOCATES, NOT_REAL, ROUNDED, UNWRITTEN, Half, Operator

ROWS = (
    Operator("Compress", "2 axis", half=ALLOCATES, operands="indexed.compress", gradient=UNWRITTEN),
    Operator("Gather", "2 axis", half=Half.MOVED, shape="indexing.gather", known="evaluate.gather",
        lengths="values.gather", numpy="gather.gather_kernel", native="indexed.gather",
        gradient="movement.gather"),
    Operator("GatherElements", "2 axis", half=Half.MOVED, shape="indexing.gather_elements",
        operands="indexed.gather_elements", numpy="gather.gather_elements",
        native="indexed.gather_elements", gradient="movement.gather"),
    Operator("GatherND", "2 batch_dims", half=Half.MOVED, shape="indexing.gather_tuples",
        operands="indexed.gather_nd", numpy="gather.gather_tuples", native="indexed.gather_nd",
        gradient="scatter.gather_tuples"),
    Operator("NonZero", "1", half=ALLOCATES, known="evaluate.non_zero", gradient=NOT_REAL),
    Operator("Scatter", "3 axis", shape="rules.same", operands="indexed.scatter_elements",
        numpy="gather.scatter", native="indexed.scatter", gradient=UNWRITTEN),
    Operator("ScatterElements", "3 axis reduction", half=Half.MOVED, shape="rules.same",
        operands="indexed.scatter_elements", numpy="gather.scatter", native="indexed.scatter",
        gradient="scatter.scatter_elements"),
    Operator("ScatterND", "3 reduction", half=Half.MOVED, shape="rules.same",
        operands="indexed.scatter_nd", numpy="gather.scatter_nd", native="indexed.scatter_nd",
        gradient="scatter.scatter_tuples"),
    Operator("TensorScatter", "3 axis mode", half=Half.MOVED, shape="rules.same",
        operands="indexed.tensor_scatter", native="sequence.tensor_scatter", gradient=UNWRITTEN),
    Operator("TopK", "2 axis @k largest ~sorted", half=ROUNDED, shape="indexing.best",
        operands="parameters.ones:1", native="ranks.top_k", gradient="scatter.largest"),
    Operator("Unique", "1 axis sorted", half=ALLOCATES, gradient=UNWRITTEN),
)  # fmt: skip
