"""Other people's planners of recomputation, written from their papers, and graphs for them."""
