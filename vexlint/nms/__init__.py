"""Non-maximum suppression inside the graph: the head, the tail as a piece of its own, the graft, the proof."""
