from tests.graph.operators.page import PAGE, page


def test_the_page_of_operators_is_as_the_table_has_it() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.graph.operators.page`"
