"""Points of the lines that are drawn of a decoder's sessions."""

from tightship.view.session_picture import PlannedContext, SessionPicture

PARTS = {"weights": 100, "arena": 20}
PLANNED = tuple(PlannedContext(each, PARTS, each) for each in (10, 20, 40))


def picture(asked, largest):
    return SessionPicture("some", PLANNED, (1, 3), frozenset(asked), 150, largest)


def test_a_line_starts_with_what_all_sessions_share():
    assert picture((10, 40), {}).points(3) == [(0, 120), (10, 150), (20, 180), (40, 240)]


def test_a_line_ends_at_the_last_context_asked_for_or_its_largest():
    drawn = picture((10,), {1: 20, 3: 10})
    assert drawn.points(3) == [(0, 120), (10, 150)]
    assert drawn.points(1) == [(0, 120), (10, 130), (20, 140)]
    assert picture((), {1: 40, 3: 10}).points(3) == [(0, 120), (10, 150)]


def test_a_line_of_sessions_that_never_fit_has_two_points():
    assert picture((), {1: 0, 3: 0}).points(3) == [(0, 120), (10, 150)]
