"""Draws a plan as its network: steps as nodes, coloured by the bytes that their values hold.

network      nodes, values and edges of a picture
bands        colours of addresses
moments      counters and free boxes, step by step
blocks       groups of nodes that a large network is drawn by
levels       the network, or its blocks and what is in each, laid out
ranks, ordering, coordinates, columns, layered
             a layered layout after Sugiyama
svg, page, as_json
             the picture, the page and the JSON values
"""
